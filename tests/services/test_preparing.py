from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.models import Persona
from protege.exceptions import ModelNameError
from protege.messages import DocumentPart, ImagePart, TextPart
from protege.services import chains, inbox, runs
from resolvers import Resolver, ResolverChain
from resolvers.builtin import LoadTextResolver, ThreadHistoryResolver
from tests.factories import (
    AttachmentFactory,
    EmailThreadFactory,
    MessageFactory,
    OutboundFactory,
    PersonaFactory,
    ResponsibilityFactory,
    RunFactory,
    ToolUseFactory,
)
from tests.mails import mail
from threads.models import EmailThread, Message

pytestmark = pytest.mark.django_db

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 20


def texts(prepared: runs.Prepared) -> list[tuple[str, str]]:
    return [(traced.message.role.value, traced.message.text) for traced in prepared.traced]


@pytest.fixture
def persona() -> Persona:
    persona = PersonaFactory()
    chains.save_defaults(persona)
    return persona


class Saying(Resolver):
    """Says what it is given."""

    name = "saying"

    def __init__(self, *said: Any) -> None:
        self.said = said

    def resolve(self, context: Any) -> Any:
        return [self.message(role, text) for role, text in self.said]


class TestReply:
    def test_the_chain_comes_first_and_the_mail_last(self, persona: Persona) -> None:
        message = MessageFactory(thread__persona=persona)
        prepared = runs.prepare(persona, message=message)
        assert texts(prepared) == [("system", persona.instructions), ("user", message.to_llm_text())]
        assert [traced.step for traced in prepared.traced] == [0, None]
        assert prepared.traced[-1].sources == (f"message:{message.pk}",)
        assert prepared.chain_revision == 1
        assert prepared.refusal is None

    def test_invariant_2_chain_order_is_message_order(self, persona: Persona) -> None:
        said = [("system", "a"), ("user", "b"), ("system", "c"), ("assistant", "d"), ("system", "e"), ("user", "f")]
        chain = ResolverChain().use(Saying, *said[:3]).use(Saying, *said[3:])
        message = MessageFactory(thread__persona=persona)
        assert texts(runs.prepare(persona, message=message, chain=chain))[:-1] == said

    def test_documents_stand_in_the_trailing_turn(self, persona: Persona) -> None:
        message = MessageFactory(thread__persona=persona)
        AttachmentFactory(message=message, filename="photo.png", content_type="image/png", data=PNG)
        AttachmentFactory(message=message, filename="invoice.pdf", content_type="application/pdf", data=b"%PDF-1.4")
        AttachmentFactory(message=message, filename="list.docx", content_type="application/x-docx", data=b"PK")
        AttachmentFactory(message=message, filename="logo.png", content_type="image/png", data=PNG, inline=True)
        parts = runs.prepare(persona, message=message).traced[-1].message.parts
        assert [type(part) for part in parts] == [TextPart, ImagePart, TextPart, DocumentPart, TextPart, TextPart]
        assert isinstance(parts[0], TextPart)
        assert parts[0].text.startswith("Picture photo.png (image/png, 28 bytes, id ")
        assert "File list.docx" in parts[4].text  # type: ignore[union-attr]
        assert parts[5] == TextPart(message.to_llm_text())
        assert "logo.png" not in str(parts)

    @pytest.mark.parametrize("fault", ["gone", "changed", "empty", "damaged"])
    def test_a_file_that_cannot_be_shown_is_named(self, persona: Persona, fault: str) -> None:
        message = MessageFactory(thread__persona=persona)
        file = AttachmentFactory(
            message=message, filename="photo.png", content_type="image/png", data=b"" if fault == "empty" else PNG
        )
        if fault == "gone":
            file.file.delete(save=False)
        if fault == "changed":
            type(file).objects.update(sha256="0" * 64)
        if fault == "damaged":
            type(file).objects.update(damaged=True)
        parts = runs.prepare(persona, message=message).traced[-1].message.parts
        assert all(isinstance(part, TextPart) for part in parts)
        assert "photo.png" in parts[0].text  # type: ignore[union-attr]

    def test_rounds_of_earlier_runs_of_the_same_mail_follow_it(self, persona: Persona) -> None:
        message = MessageFactory(thread__persona=persona)
        earlier = RunFactory(message=message, status="failed")
        ToolUseFactory(run=earlier, tool_call_id="a")
        again = RunFactory(message=message, status="queued")
        ToolUseFactory(run=RunFactory(message=message, status="failed"), tool_call_id="b")
        roles = [traced.message.role for traced in runs.prepare(persona, message=message).traced]
        assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
        of_run = runs.prepare(persona, message=message, run=again)
        assert [traced.message.tool_call_id for traced in of_run.traced][-1] == "a"
        assert of_run.traced[-1].step is None

    def test_history_that_opens_with_an_answer_gets_a_user_turn_before_it(self, persona: Persona) -> None:
        thread = EmailThreadFactory(persona=persona)
        first = MessageFactory(thread=thread)
        OutboundFactory(thread=thread, answers=first)
        chain = ResolverChain().use(ThreadHistoryResolver, limit=1)
        prepared = runs.prepare(persona, message=MessageFactory(thread=thread), chain=chain)
        assert texts(prepared)[0] == ("user", "[Earlier messages are not shown.]")
        assert prepared.traced[0].step is None

    def test_a_thread_that_the_persona_began_says_so(self, persona: Persona) -> None:
        duty = ResponsibilityFactory(persona=persona, slug="weekly-report")
        thread = EmailThreadFactory(persona=persona)
        run = RunFactory(
            message=None, persona=persona, thread=thread, kind="responsibility", responsibility=duty,
            responsibility_label=duty.slug,
        )  # fmt: skip
        OutboundFactory(thread=thread, run=run)
        prepared = runs.prepare(persona, message=MessageFactory(thread=thread))
        assert texts(prepared)[1] == ("user", "[You wrote first: weekly-report.]")

    def test_c13_no_word_of_another_thread_of_the_same_sender(self, persona: Persona) -> None:
        MessageFactory(thread__persona=persona, readable_body="Invoice 77 is wrong")
        holiday = MessageFactory(thread__persona=persona, readable_body="Holiday plan")
        assert "Invoice" not in str(texts(runs.prepare(persona, message=holiday)))

    def test_a06_a_stranger_reads_no_word_of_the_thread(self, persona: Persona) -> None:
        thread = EmailThreadFactory(persona=persona)
        answer = OutboundFactory(thread=thread, answers=MessageFactory(thread=thread), message_id="<a@desk.example>")
        stranger = inbox.parse(mail(from_="cora@rival.example", In_Reply_To=answer.message_id), persona)
        prepared = runs.prepare(persona, message=stranger)
        assert "on its way" not in str(texts(prepared))
        assert len(prepared.traced) == 2


class TestScheduled:
    def test_the_default_chain_states_the_instructions_as_the_user(self, persona: Persona) -> None:
        duty = ResponsibilityFactory(persona=persona)
        prepared = runs.prepare(persona, responsibility=duty)
        assert texts(prepared) == [("system", persona.instructions), ("user", "Write the weekly report.")]
        assert prepared.trigger == "responsibility"

    def test_a_chain_without_a_user_turn_refuses(self, persona: Persona) -> None:
        chain = ResolverChain().use(LoadTextResolver, lambda context: "You are Ada.")
        prepared = runs.prepare(persona, responsibility=ResponsibilityFactory(persona=persona), chain=chain)
        assert prepared.refusal is not None
        assert prepared.refusal.code == "no_user_turn"
        assert runs.preview(prepared).to_dict()["notices"][0]["code"] == "no_user_turn"

    def test_exactly_one_trigger(self, persona: Persona) -> None:
        with pytest.raises(ValueError, match="exactly one"):
            runs.prepare(persona)


class TestModel:
    def test_another_model_than_the_personas(self, persona: Persona) -> None:
        message = MessageFactory(thread__persona=persona)
        prepared = runs.prepare(persona, message=message, model="anthropic:claude-sonnet-4-5")
        assert (prepared.model, prepared.window, prepared.max_output_tokens) == (
            "anthropic:claude-sonnet-4-5", 200_000, 4_096,
        )  # fmt: skip

    def test_the_personas_window_and_limit_win(self, persona: Persona) -> None:
        persona.context_window, persona.max_output_tokens = 2_048, 100
        prepared = runs.prepare(persona, message=MessageFactory(thread__persona=persona))
        assert (prepared.window, prepared.max_output_tokens) == (2_048, 100)

    def test_an_unknown_window_is_small(self, persona: Persona) -> None:
        prepared = runs.prepare(persona, message=MessageFactory(thread__persona=persona))
        assert (prepared.window, prepared.max_output_tokens) == (8_192, 2_048)

    def test_a_model_that_cannot_be_built_is_an_error(self, persona: Persona) -> None:
        with pytest.raises(ModelNameError, match="Did you mean 'anthropic'"):
            runs.prepare(persona, message=MessageFactory(thread__persona=persona), model="anthropc:x")


def long_thread(persona: Persona, length: int) -> Message:
    """A thread of `length` mails, every second one an answer, with a tool round for every inbound one."""
    thread = EmailThreadFactory(persona=persona)
    pairs = length // 2
    mails = Message.objects.bulk_create(
        MessageFactory.build(thread=thread, persona=persona, sequence=2 * number + 1) for number in range(pairs)
    )
    Message.objects.bulk_create(
        OutboundFactory.build(thread=thread, persona=persona, answers=each, sequence=each.sequence + 1)
        for each in mails
    )
    made = [RunFactory.build(message=each, thread=thread, persona=persona) for each in mails]
    made = type(made[0]).objects.bulk_create(made)
    uses = [ToolUseFactory.build(run=run, message=run.message) for run in made]
    type(uses[0]).objects.bulk_create(uses)
    EmailThread.objects.filter(pk=thread.pk).update(last_sequence=length)
    return MessageFactory(thread=thread)


def test_invariant_8_queries_do_not_grow_with_the_thread(persona: Persona) -> None:
    counts, in_chain = set(), set()
    for length in (60, 500, 2_000):
        message = Message.objects.select_related("thread__persona").get(pk=long_thread(persona, length).pk)
        chain = ResolverChain.for_persona(persona, "message")
        with CaptureQueriesContext(
            connection,
        ) as queries:
            prepared = runs.prepare(message.persona, message=message)
        counts.add(len(queries))
        in_chain.add(sum(outcome.queries for outcome in prepared.outcomes))
        with CaptureQueriesContext(connection) as all_of_it:
            whole = ResolverChain().use(ThreadHistoryResolver, limit=None)
            runs.prepare(message.persona, message=message, chain=whole)
        assert len(all_of_it) <= 8
        assert len(chain.steps) == 2
    assert len(counts) == len(in_chain) == 1
    assert max(counts) <= 8
    assert max(in_chain) <= 6
