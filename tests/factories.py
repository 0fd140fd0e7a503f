"""One factory for each table, with the cast of the field cases."""

import hashlib
from typing import Any

import factory
from django.conf import settings
from django.core.files.base import ContentFile
from django.utils import timezone
from factory.django import DjangoModelFactory

from personas.models import Persona, PersonaAddress, Responsibility
from resolvers.models import ChainRevision, ChainStep
from threads import models


class UserFactory(DjangoModelFactory):
    class Meta:
        model = settings.AUTH_USER_MODEL
        skip_postgeneration_save = True

    username = factory.Sequence("user{}".format)
    email = factory.LazyAttribute(lambda user: f"{user.username}@desk.example")
    password = factory.django.Password("secret")


class PersonaFactory(DjangoModelFactory):
    class Meta:
        model = Persona

    slug = factory.Sequence("helper{}".format)
    name = "Helper"
    address = factory.LazyAttribute(lambda persona: f"{persona.slug}@{persona.tenant}.example")
    instructions = "You are Helper. You answer questions about orders."
    model = "offline:echo"
    tenant = "desk"


class PersonaAddressFactory(DjangoModelFactory):
    class Meta:
        model = PersonaAddress

    persona = factory.SubFactory(PersonaFactory)
    address = factory.Sequence("alias{}@desk.example".format)


class ResponsibilityFactory(DjangoModelFactory):
    class Meta:
        model = Responsibility

    persona = factory.SubFactory(PersonaFactory)
    slug = factory.Sequence("duty{}".format)
    name = "Weekly report"
    instructions = "Write the weekly report."
    schedule = "0 8 * * 1"
    recipients = factory.LazyFunction(lambda: ["ana@client.example"])
    subject = "Weekly report"


class EmailThreadFactory(DjangoModelFactory):
    class Meta:
        model = models.EmailThread

    persona = factory.SubFactory(PersonaFactory)
    tenant = factory.SelfAttribute("persona.tenant")
    correspondent = "ana@client.example"
    subject = "Where is my order?"


class ParticipantFactory(DjangoModelFactory):
    class Meta:
        model = models.Participant

    thread = factory.SubFactory(EmailThreadFactory)
    address = factory.Sequence("person{}@client.example".format)


class ThreadTagFactory(DjangoModelFactory):
    class Meta:
        model = models.ThreadTag

    thread = factory.SubFactory(EmailThreadFactory)
    name = factory.Sequence("tag{}".format)


class _AnyMessageFactory(DjangoModelFactory):
    class Meta:
        model = models.Message
        abstract = True

    thread = factory.SubFactory(EmailThreadFactory)
    persona = factory.SelfAttribute("thread.persona")
    message_id = factory.Sequence("<message-{}@client.example>".format)
    subject = "Where is my order?"
    text_body = factory.SelfAttribute("readable_body")
    received_at = factory.LazyFunction(timezone.now)

    @factory.lazy_attribute
    def sequence(self) -> int | None:
        """The thread's next number, unless the status has none."""
        if self.status in models.UNSEQUENCED:
            return None
        return models.EmailThread.objects.take_sequence(self.thread.pk)


class MessageFactory(_AnyMessageFactory):
    """A mail from Ana to the persona."""

    direction = models.Direction.INBOUND
    status = models.MessageStatus.RECEIVED
    from_address = "ana@client.example"
    from_name = "Ana Moßner"
    to = factory.LazyAttribute(lambda message: [{"name": "", "address": message.persona.address}])
    readable_body = "Where is order 77?"
    sent_at = factory.SelfAttribute("received_at")


class OutboundFactory(_AnyMessageFactory):
    """A mail from the persona to Ana."""

    direction = models.Direction.OUTBOUND
    status = models.MessageStatus.SENT
    origin = models.Origin.ANSWER
    from_address = factory.LazyAttribute(lambda message: message.persona.address)
    from_name = factory.LazyAttribute(lambda message: message.persona.name)
    to = factory.LazyFunction(lambda: [{"name": "Ana Moßner", "address": "ana@client.example"}])
    readable_body = "It is on its way."


class AttachmentFactory(DjangoModelFactory):
    """A text file of nine bytes, unless `data` says otherwise."""

    class Meta:
        model = models.Attachment
        exclude = ["data"]

    data = b"some text"
    message = factory.SubFactory(MessageFactory)
    filename = "notes.txt"
    content_type = "text/plain"
    size = factory.LazyAttribute(lambda attachment: len(attachment.data))
    sha256 = factory.LazyAttribute(lambda attachment: hashlib.sha256(attachment.data).hexdigest())
    file = factory.LazyAttribute(lambda attachment: ContentFile(attachment.data, name="file"))


class RawMailFactory(DjangoModelFactory):
    class Meta:
        model = models.RawMail
        exclude = ["raw"]

    raw = b"From: ana@client.example\r\nTo: helper@desk.example\r\nSubject: Hi\r\n\r\nHello\r\n"
    sha256 = factory.LazyAttribute(lambda mail: hashlib.sha256(mail.raw).hexdigest())
    content = factory.LazyAttribute(lambda mail: models.RawMail.pack(mail.raw))


class InboundMailFactory(DjangoModelFactory):
    class Meta:
        model = models.InboundMail

    raw = factory.SubFactory(RawMailFactory)
    source = "test"


class ImapCursorFactory(DjangoModelFactory):
    class Meta:
        model = models.ImapCursor

    account = factory.Sequence("imap.desk.example/helper/INBOX{}".format)
    uid_validity = 1


class RunFactory(DjangoModelFactory):
    """A finished reply run of a mail; its thread and persona are the mail's."""

    class Meta:
        model = models.Run

    message: Any = factory.SubFactory(MessageFactory)
    thread = factory.LazyAttribute(lambda run: run.message.thread if run.message else None)
    persona = factory.LazyAttribute(lambda run: run.message.persona)
    kind = models.RunKind.REPLY
    status = models.RunStatus.SUCCEEDED


class ToolUseFactory(DjangoModelFactory):
    """A finished call of `look_up`."""

    class Meta:
        model = models.ToolUse

    run = factory.SubFactory(RunFactory)
    message = factory.SelfAttribute("run.message")
    turn_index = 0
    position = 0
    tool_call_id = factory.Sequence("call_{}".format)
    name = "look_up"
    input = factory.LazyFunction(lambda: {"order": 77})
    result = '{"state": "sent"}'
    status = models.ToolUseStatus.OK


class PromptTextFactory(DjangoModelFactory):
    class Meta:
        model = models.PromptText

    text = "You are Helper."
    sha256 = factory.LazyAttribute(lambda prompt: hashlib.sha256(prompt.text.encode()).hexdigest())


class TokenRateFactory(DjangoModelFactory):
    class Meta:
        model = models.TokenRate

    model = factory.Sequence("openai-chat:model-{}".format)
    rate = 3.5


class SearchTextFactory(DjangoModelFactory):
    class Meta:
        model = models.SearchText

    message = factory.SubFactory(MessageFactory)
    thread = factory.SelfAttribute("message.thread")
    text = "where is order 77"


class ThreadVectorFactory(DjangoModelFactory):
    class Meta:
        model = models.ThreadVector

    thread = factory.SubFactory(EmailThreadFactory)
    provider = "test"
    model = "test"
    dimension = 1
    vector = b"\x00\x00\x80\x3f"


class ChainStepFactory(DjangoModelFactory):
    class Meta:
        model = ChainStep

    persona = factory.SubFactory(PersonaFactory)
    trigger = "message"
    position = factory.Sequence(int)
    resolver = "load_text"
    options = factory.LazyFunction(lambda: {"text": "You are {{ persona.name }}."})


class ChainRevisionFactory(DjangoModelFactory):
    class Meta:
        model = ChainRevision

    persona = factory.SubFactory(PersonaFactory)
    trigger = "message"
    number = factory.Sequence(lambda number: number + 1)
    steps = factory.LazyFunction(
        lambda: [{"resolver": "thread_history", "options": {}, "enabled": True, "on_error": "fail"}]
    )
