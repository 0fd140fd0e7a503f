"""`POST /inbound/mime/`: a mail as it is."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core import mail as django_mail
from django.core.management import call_command
from django.db import OperationalError, connection, connections
from django.http import HttpRequest
from django.test import Client

from personas.models import Persona
from protege.webhooks.door import RefusedError, read_body
from tests.doors.cases import ANA, HELPER, DoorContract, crlf_mail
from tests.doors.conftest import basic
from tests.factories import PersonaFactory
from threads.models import InboundMail, Message, RawMail, Run

URL = "/inbound/mime/"
RELAY = basic("relay-4711")

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("secrets")]


def post(raw: bytes, *, query: str = "", **headers: Any) -> Any:
    """A post without a cookie, as a mail server makes it."""
    client = Client(enforce_csrf_checks=True)
    given = {"HTTP_AUTHORIZATION": RELAY, **headers}
    return client.post(URL + query, raw, content_type="message/rfc822", **given)


@pytest.fixture
def helper() -> Persona:
    return PersonaFactory(slug="helper", address=HELPER, reply_mode="off")


class TestMime(DoorContract):
    source = "mime:relay"

    def deliver(
        self, raw: bytes, *, to: Sequence[str] = (HELPER,), sender: str = ANA, tenant: str | None = None
    ) -> None:
        query = "?" + urlencode([("from", sender), *(("to", address) for address in to)])
        secret = {"desk": "desk-4712", "other": "other-4713", None: "relay-4711"}[tenant]
        assert post(raw, query=query, HTTP_AUTHORIZATION=basic(secret)).status_code == 200


class TestAnswer:
    def test_it_tells_what_became_of_the_mail(self, helper: Persona) -> None:
        answer = post(crlf_mail(), query=f"?to={HELPER}&to=nobody@desk.example")
        assert answer.status_code == 200
        inbound = InboundMail.objects.get()
        assert answer.json() == {"deliveries": [{"id": inbound.pk, "status": "processed", "reason": ""}]}
        assert post(crlf_mail(), query="?to=nobody@desk.example").json()["deliveries"][0]["status"] == "unroutable"

    def test_the_envelope_may_stand_in_headers(self, helper: Persona) -> None:
        post(crlf_mail(), HTTP_X_ENVELOPE_TO=f"<{HELPER}>, b@desk.example", HTTP_X_ENVELOPE_FROM="<bo@client.example>")
        inbound = InboundMail.objects.get()
        assert (inbound.recipients, inbound.sender) == ([HELPER, "b@desk.example"], "bo@client.example")

    def test_an_envelope_that_is_not_said_is_unknown(self, helper: Persona) -> None:
        post(crlf_mail())
        assert (InboundMail.objects.get().recipients, InboundMail.objects.get().sender) == ([], None)

    def test_odd_envelopes_fit_their_columns(self, helper: Persona) -> None:
        post(crlf_mail(), query="?" + urlencode({"to": HELPER, "from": "x" * 300 + "\0@client.example"}))
        sender = InboundMail.objects.get().sender
        assert sender is not None
        assert len(sender) == 254

    @pytest.mark.parametrize(
        ("raw", "media_type", "status", "code"),
        [(b"\r\n", "message/rfc822", 400, "empty"), (b"x", "application/json", 415, "media_type")],
    )
    def test_what_is_no_mail(self, raw: bytes, media_type: str, status: int, code: str) -> None:
        answer = Client().post(URL, raw, content_type=media_type, HTTP_AUTHORIZATION=RELAY)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert not InboundMail.objects.exists()

    def test_only_posts(self) -> None:
        assert Client().get(URL, HTTP_AUTHORIZATION=RELAY).status_code == 405

    def test_without_the_database_it_asks_to_be_called_again(self, helper: Persona) -> None:
        with connection.execute_wrapper(_away):
            answer = post(crlf_mail())
        assert (answer.status_code, answer.json()["code"]) == (503, "database_away")
        assert "order" not in answer.content.decode()


def _away(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    if "protege_threads_rawmail" in sql:
        raise OperationalError("server closed the connection; Where is my order?")
    return execute(sql, params, many, context)


class TestSecret:
    @pytest.mark.parametrize(
        "header",
        ["", "Basic", "Basic !!!", basic("wrong"), basic(""), basic("relay-4711x"), "Bearer wrong", "Bearer ",
         "Digest relay-4711", basic("\udc80".encode("utf-8", "surrogateescape").decode("latin-1"))],
    )  # fmt: skip
    def test_without_the_right_one_nobody_is_let_in(self, helper: Persona, header: str) -> None:
        answer = post(crlf_mail(), HTTP_AUTHORIZATION=header)
        assert (answer.status_code, answer.json()["code"]) == (403, "secret_required")
        assert not InboundMail.objects.exists()

    def test_a_bearer_token_is_as_good(self, helper: Persona) -> None:
        assert post(crlf_mail(), HTTP_AUTHORIZATION="Bearer relay-4711").status_code == 200

    @pytest.mark.parametrize("entries", [{}, {"relay": {"secret_env": "TEST_UNSET"}}])
    def test_without_a_configured_one_it_is_closed(self, settings: Any, entries: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "INBOUND_SECRETS": entries}
        for header in ("", RELAY, basic(""), "Bearer "):
            assert post(crlf_mail(), HTTP_AUTHORIZATION=header).status_code == 403

    def test_nothing_is_read_before_the_secret(self, settings: Any) -> None:
        class Unread(BytesIO):
            def read(self, *args: Any) -> bytes:
                raise AssertionError("read")

        request = {"wsgi.input": Unread(), "CONTENT_LENGTH": "10"}
        assert Client().generic("POST", URL, b"", "message/rfc822", **request).status_code == 403

    @pytest.mark.parametrize(
        "entry",
        [{"secret_env": "TEST_RELAY_SECRET", "tennant": "desk"}, {"secret_env": "TEST_RELAY_SECRET", "tenant": ""}, {},
         "TEST_RELAY_SECRET"],
    )  # fmt: skip
    def test_a_misspelt_binding_opens_nothing(self, settings: Any, entry: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "INBOUND_SECRETS": {"relay": entry}}
        with pytest.raises(Exception, match=r"INBOUND_SECRETS.*relay"):
            post(crlf_mail())

    def test_two_labels_with_one_secret_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_OTHER_SECRET", "desk-4712")
        with pytest.raises(Exception, match="same secret"):
            post(crlf_mail(), HTTP_AUTHORIZATION=basic("desk-4712"))


class TestA29Size:
    def test_3_mb_pass_although_djangos_limit_is_lower(self, helper: Persona, settings: Any) -> None:
        raw = crlf_mail(files=[("photo.jpg", "image/jpeg", b"\xff\xd8\xff" + bytes(2_300_000))])
        assert len(raw) > 3_000_000 > settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        assert post(raw, query=f"?to={HELPER}").status_code == 200
        assert RawMail.objects.get().unpack() == raw
        assert Message.objects.get().attachments.get().size == 2_300_003

    def test_40_mb_are_refused_for_good_and_shown_to_an_operator(self, helper: Persona) -> None:
        raw = crlf_mail() + b"x" * 40_000_000
        answer = post(raw, query=f"?to={HELPER}")
        assert answer.status_code == 413
        inbound = InboundMail.objects.select_related("raw").get()
        assert (inbound.status, inbound.reason, inbound.recipients) == ("failed", "too_large", [HELPER])
        assert inbound.raw is not None
        assert b"Subject: Where is my order?" in inbound.raw.unpack()
        assert len(inbound.raw.unpack()) < 1_000
        assert not Message.objects.exists()

    def test_a_mail_that_is_cut_off_is_not_taken(self) -> None:
        request = HttpRequest()
        request._stream = BytesIO(b"From: a")  # type: ignore[attr-defined]
        request._read_started = False  # type: ignore[attr-defined]
        request.META["CONTENT_LENGTH"] = "100"
        with pytest.raises(RefusedError, match="shorter"):
            read_body(request, limit=1_000)


@pytest.mark.django_db(transaction=True)
class TestCommit:
    def test_it_is_no_part_of_the_requests_transaction(self, helper: Persona, monkeypatch: Any) -> None:
        monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", True)
        assert post(crlf_mail(), query=f"?to={HELPER}").status_code == 200
        assert Message.objects.get().persona == helper

    def test_c11_it_answers_before_any_model_is_asked(self, helper: Persona, settings: Any) -> None:
        Persona.objects.update(reply_mode="auto")
        settings.TASKS = {
            "default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["protege-mail", "protege-runs"]}
        }
        for _ in range(2):  # the provider loses patience and posts again
            assert post(crlf_mail(), query=f"?to={HELPER}").status_code == 200
        assert [run.status for run in Run.objects.all()] == ["queued"]
        assert django_mail.outbox == []
        call_command("db_worker", batch=True, queue_name="*", verbosity=0)
        call_command("db_worker", batch=True, queue_name="*", verbosity=0)
        assert [run.status for run in Run.objects.all()] == ["succeeded"]
        assert len(django_mail.outbox) == 1
