"""The webhooks of mail providers, with posts in their forms."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

import pytest
from django.db import connections
from django.test import Client

from protege.mail.forms import form_fields
from protege.services import inbox
from tests.doors import posts
from tests.doors.cases import ANA, HELPER, DoorContract, crlf_mail
from tests.doors.conftest import basic
from tests.factories import PersonaFactory
from threads.models import InboundMail, Message, RawMail

SHARED = "hook:4714"
LABELS = {"desk": "desk-4712", "other": "other-4713"}

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("secrets", "anymail"),
    pytest.mark.filterwarnings("ignore:django-anymail has dropped official support for SendGrid"),
    pytest.mark.filterwarnings("ignore:Your Anymail webhooks are insecure"),
]


@pytest.fixture
def anymail(settings: Any) -> None:
    settings.ANYMAIL = {"WEBHOOK_SECRET": [SHARED], "MAILGUN_WEBHOOK_SIGNING_KEY": posts.SIGNING_KEY}


def post(path: str, body: bytes, *, media_type: str, authorization: str | None = None, **headers: Any) -> Any:
    user, _, password = SHARED.partition(":")
    given = basic(password, user=user) if authorization is None else authorization
    client = Client(enforce_csrf_checks=True)
    return client.generic("POST", f"/inbound/{path}/", body, media_type, HTTP_AUTHORIZATION=given, **headers)


class ProviderContract(DoorContract):
    """`content` are the fields that hold the mail."""

    path = ""
    post_type = posts.FORM
    content: ClassVar[Callable[[bytes], Any]]

    def bodies(self, raw: bytes, to: Sequence[str], sender: str) -> Iterator[bytes]:
        raise NotImplementedError

    def deliver(
        self, raw: bytes, *, to: Sequence[str] = (HELPER,), sender: str = ANA, tenant: str | None = None
    ) -> None:
        path = f"{self.path}/{tenant}" if tenant else self.path
        authorization = basic(LABELS[tenant]) if tenant else None
        for body in self.bodies(raw, to, sender):
            assert post(path, body, media_type=self.post_type, authorization=authorization).status_code == 200


class MailgunContract(ProviderContract):
    path = source = "mailgun"

    def bodies(self, raw: bytes, to: Sequence[str], sender: str) -> Iterator[bytes]:
        for address in to:  # one post for each route that matches
            yield posts.mailgun(type(self).content(raw), to=address, sender=sender)


class SendGridContract(ProviderContract):
    path = source = "sendgrid"

    def bodies(self, raw: bytes, to: Sequence[str], sender: str) -> Iterator[bytes]:
        yield posts.sendgrid(type(self).content(raw), to=to, sender=sender)


class PostmarkContract(ProviderContract):
    path = source = "postmark"
    post_type = "application/json"

    def bodies(self, raw: bytes, to: Sequence[str], sender: str) -> Iterator[bytes]:
        for address in to:
            yield posts.postmark(type(self).content(raw), to=address, sender=sender)


class StoredAsPosted:
    """Without the mail as it came, what is kept is the post itself."""

    def stored(self: Any, raw: bytes) -> bytes:
        (body,) = self.bodies(raw, [HELPER], ANA)
        return body


class TestMailgun(MailgunContract):
    path = "mailgun_mime"
    content = staticmethod(posts.mailgun_raw)


class TestMailgunParsed(StoredAsPosted, MailgunContract):
    media_type = posts.FORM
    content = staticmethod(posts.mailgun_parsed)


class TestSendGrid(SendGridContract):
    content = staticmethod(posts.sendgrid_raw)


class TestSendGridParsed(StoredAsPosted, SendGridContract):
    media_type = posts.FORM
    content = staticmethod(posts.sendgrid_parsed)


class TestPostmark(PostmarkContract):
    content = staticmethod(posts.postmark_raw)


class TestPostmarkParsed(StoredAsPosted, PostmarkContract):
    media_type = "application/json"
    content = staticmethod(posts.postmark_parsed)


@pytest.fixture
def helper() -> Any:
    return PersonaFactory(slug="helper", address=HELPER, reply_mode="off")


class TestForms:
    def test_a_raw_mail_in_no_charset_is_kept_byte_by_byte(self, helper: Any) -> None:
        raw = crlf_mail().replace(b"Where is order 77?", b"Gr\xfc\xdfe \xff\r\n--xYzZ is no boundary")
        post("sendgrid", posts.sendgrid([("email", raw)], to=[HELPER], sender=ANA), media_type=posts.FORM)
        assert RawMail.objects.get().unpack() == raw

    def test_a29_a_raw_mail_of_3_mb_in_a_field(self, helper: Any) -> None:
        raw = crlf_mail(files=[("photo.jpg", "image/jpeg", b"\xff\xd8\xff" + bytes(2_300_000))])
        body = posts.mailgun([("body-mime", raw)], to=HELPER, sender=ANA)
        assert post("mailgun_mime", body, media_type=posts.FORM).status_code == 200
        assert Message.objects.get().attachments.get().size == 2_300_003

    @pytest.mark.parametrize(("path", "status"), [("mailgun_mime", 406), ("sendgrid", 413), ("postmark", 403)])
    def test_a29_too_large_is_answered_so_that_nobody_tries_again(
        self, helper: Any, settings: Any, path: str, status: int
    ) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "MAIL_SIZE_LIMIT": 2_000}
        raw = crlf_mail(text="x" * 2_000)
        body, media_type = {
            "mailgun_mime": (posts.mailgun(posts.mailgun_raw(raw), to=HELPER, sender=ANA), posts.FORM),
            "sendgrid": (posts.sendgrid(posts.sendgrid_raw(raw), to=[HELPER], sender=ANA), posts.FORM),
            "postmark": (posts.postmark(posts.postmark_raw(raw), to=HELPER, sender=ANA), "application/json"),
        }[path]
        assert post(path, body, media_type=media_type).status_code == status
        assert InboundMail.objects.get().reason == "too_large"
        assert post(path, body + b" " * 9_000, media_type=media_type).status_code == status
        assert InboundMail.objects.count() == 1

    def test_files_are_kept_under_any_name(self, helper: Any) -> None:
        names = ["", "..", "a/b/x.txt", "\\\\share\\y.txt", "Größe.txt"]
        files = [(f"attachment-{number}", (name, "text/plain", b"x")) for number, name in enumerate(names, start=1)]
        content = [*posts.mailgun_parsed(crlf_mail())[:2], ("attachment-count", str(len(names))), *files]
        post("mailgun", posts.mailgun(content, to=HELPER, sender=ANA), media_type=posts.FORM)
        found = list(Message.objects.get().attachments.order_by("id").values_list("filename", flat=True))
        assert found == ["attachment", "attachment", "x.txt", "y.txt", "Größe.txt"]

    @pytest.mark.parametrize("data", [b"From: bo@client.example\r\n\r\nHello", b"From: bo\r\n\r\nGr\xfc\xdfe"])
    def test_an_attached_mail_in_any_charset_is_kept(self, helper: Any, data: bytes) -> None:
        for path, body, media_type in _with_attached_mail(data):
            post(path, body, media_type=media_type)
        assert [message.attachments.count() for message in Message.objects.all()] == [1, 1]

    def test_urlencoded_forms_are_read_too(self, helper: Any) -> None:
        fields = posts.mailgun(posts.mailgun_raw(crlf_mail()), to=HELPER, sender=ANA)
        body = _urlencoded(fields)
        assert post("mailgun_mime", body, media_type="application/x-www-form-urlencoded").status_code == 200
        assert RawMail.objects.get().unpack() == crlf_mail()

    @pytest.mark.parametrize(("body", "media_type"), [
        (b"nothing", posts.FORM), (b"--xYzZY\r\n", posts.FORM), (b"--xYzZY\r\n\r\ncut", posts.FORM),
        (b"x", "multipart/form-data"), (b"a=1&" * 2_000, "application/x-www-form-urlencoded"),
    ])  # fmt: skip
    def test_a_form_that_cannot_be_taken_apart(self, body: bytes, media_type: str) -> None:
        answer = post("sendgrid", body, media_type=media_type)
        assert (answer.status_code, answer.json()["code"]) == (400, "unreadable_payload")

    @pytest.mark.parametrize("body", [b"[]", b"{", b"null", b"\xff", b'{"RecordType": "Delivery"}', b"[" * 100_000])
    def test_a_post_that_holds_no_mail_is_kept_for_an_operator(self, helper: Any, body: bytes) -> None:
        assert post("postmark", body, media_type="application/json").status_code == 200
        inbound = InboundMail.objects.select_related("raw").get()
        assert (inbound.status, inbound.reason) == ("failed", "unreadable_payload")
        assert inbound.raw is not None
        assert inbound.raw.unpack() == body


def _urlencoded(body: bytes) -> bytes:
    return urlencode([(one.name, one.value) for one in form_fields(body, media_type=posts.FORM)]).encode()


def _with_attached_mail(data: bytes) -> Iterator[tuple[str, bytes, str]]:
    first, second = crlf_mail(), crlf_mail(message_id="<second@client.example>")
    file = ("m.eml", "message/rfc822", data)
    fields = [*posts.mailgun_parsed(first)[:2], ("attachment-count", "1"), ("attachment-1", file)]
    yield "mailgun", posts.mailgun(fields, to=HELPER, sender=ANA), posts.FORM
    event = posts.postmark_parsed(second)
    event["Attachments"] = [{"Name": "m.eml", "ContentType": "message/rfc822", "Content": b64encode(data).decode()}]
    yield "postmark", posts.postmark(event, to=HELPER, sender=ANA), "application/json"


class TestC07:
    """Half an emoji, and what else JSON can hold and a header cannot."""

    def test_postmark(self, helper: Any) -> None:
        event = {**posts.postmark_parsed(crlf_mail()), "Subject": "\ud83d hi\r\nBcc: x\0", "TextBody": "a \ude00 b"}
        post("postmark", posts.postmark(event, to=HELPER, sender=ANA), media_type="application/json")
        message = Message.objects.get()
        assert message.subject == "\ufffd hi Bcc: x\ufffd"
        assert message.text_body == "a \ufffd b"

    def test_mailgun(self, helper: Any) -> None:
        headers = json.dumps([["From", ANA], ["Subject", "\ud83d hi\n there"], ["Message-Id", "<1@client.example>"]])
        content = [("message-headers", headers), ("body-plain", "Hello")]
        post("mailgun", posts.mailgun(content, to=HELPER, sender=ANA), media_type=posts.FORM)
        assert Message.objects.get().subject == "\ufffd hi there"

    def test_the_envelope(self, helper: Any) -> None:
        body = posts.sendgrid(posts.sendgrid_raw(crlf_mail()), to=[HELPER, "\ud83d@desk.example"], sender="\ud83d")
        post("sendgrid", body, media_type=posts.FORM)
        inbound = InboundMail.objects.get()
        assert (inbound.recipients, inbound.sender) == ([HELPER, "\ufffd@desk.example"], "\ufffd")


class TestRunAgain:
    def test_a_stored_post_is_read_again_from_its_bytes(self, helper: Any) -> None:
        body = posts.postmark(posts.postmark_parsed(crlf_mail()), to=HELPER, sender=ANA)
        post("postmark", body, media_type="application/json")
        Message.objects.all().delete()
        InboundMail.objects.update(status="received", persona=None)
        (again,) = inbox.process(InboundMail.objects.get().pk)
        assert again.status == "processed"

    def test_a_payload_of_an_unknown_provider_waits(self, helper: Any) -> None:
        (inbound,) = inbox.receive(b"{}", source="pigeon", media_type="application/json")
        assert (inbound.status, inbound.reason) == ("failed", "unreadable_payload")


class TestSecrets:
    bodies: ClassVar[dict[str, tuple[bytes, str]]] = {
        "mailgun_mime": (posts.mailgun(posts.mailgun_raw(crlf_mail()), to=HELPER, sender=ANA), posts.FORM),
        "sendgrid": (posts.sendgrid(posts.sendgrid_raw(crlf_mail()), to=[HELPER], sender=ANA), posts.FORM),
        "postmark": (posts.postmark(posts.postmark_raw(crlf_mail()), to=HELPER, sender=ANA), "application/json"),
    }

    def status(self, path: str, authorization: str | None = None, *, at: str = "") -> int:
        body, media_type = self.bodies[path]
        return int(post(path + at, body, media_type=media_type, authorization=authorization).status_code)

    @pytest.mark.parametrize("path", bodies)
    def test_the_wrong_secret(self, helper: Any, path: str) -> None:
        for wrong in ("", basic("4714"), basic("wrong", user="hook"), "Bearer hook:4714"):
            assert self.status(path, wrong) == 403
        assert not InboundMail.objects.exists()
        assert self.status(path) == 200

    @pytest.mark.parametrize("path", bodies)
    def test_without_a_configured_one_it_is_closed(self, settings: Any, path: str) -> None:
        settings.ANYMAIL = {}
        assert self.status(path) == 403
        assert not InboundMail.objects.exists()

    def test_mailguns_signature_is_enough_and_needed(self, helper: Any, settings: Any) -> None:
        settings.ANYMAIL = {"MAILGUN_WEBHOOK_SIGNING_KEY": posts.SIGNING_KEY}
        assert self.status("mailgun_mime", "") == 200
        settings.ANYMAIL = {"MAILGUN_WEBHOOK_SIGNING_KEY": "another"}
        assert self.status("mailgun_mime", "") == 403

    @pytest.mark.parametrize("path", bodies)
    def test_a_label_asks_for_its_own_secret(self, helper: Any, path: str) -> None:
        for wrong in (None, "", basic("other-4713"), basic("relay-4711")):
            assert self.status(path, wrong, at="/desk") == 403
        assert self.status(path, basic("desk-4712"), at="/nobody") == 403
        assert not InboundMail.objects.exists()
        assert self.status(path, basic("desk-4712"), at="/desk") == 200
        assert InboundMail.objects.get().source == f"{path.removesuffix('_mime')}:desk"

    def test_providers_may_look_whether_the_address_is_there(self) -> None:
        assert Client().head("/inbound/postmark/").status_code == 200
        assert Client().get("/inbound/postmark/").status_code == 405


@pytest.mark.django_db(transaction=True)
def test_it_is_no_part_of_the_requests_transaction(helper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", True)
    body, media_type = TestSecrets.bodies["postmark"]
    assert post("postmark", body, media_type=media_type).status_code == 200
    assert Message.objects.exists()
