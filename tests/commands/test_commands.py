import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core import mail as django_mail
from django.core.management import CommandError, call_command

from personas.models import Persona
from tests.factories import MessageFactory, PersonaFactory
from tests.mails import FIXTURES, mail
from threads.models import InboundMail, Message, Run

pytestmark = pytest.mark.django_db


def output(*command: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command(*command, stdout=out, **options)
    return out.getvalue()


class TestReceiveMail:
    def test_a_file_goes_all_the_way(self, django_capture_on_commit_callbacks: Any) -> None:
        PersonaFactory(address="helper@desk.example")
        with django_capture_on_commit_callbacks(execute=True):
            said = output("receive_mail", str(FIXTURES / "plain_question.eml"), "--to", "helper@desk.example")
        assert "processed" in said
        assert "ana@" not in said
        assert InboundMail.objects.get().source == "pipe"
        assert Run.objects.get().status == "succeeded"
        assert len(django_mail.outbox) == 1

    def test_standard_input_and_the_envelope(self, monkeypatch: pytest.MonkeyPatch) -> None:
        PersonaFactory(address="helper@desk.example")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(mail(to="x@y.example"))))
        output("receive_mail", "-", "--to", "helper@desk.example", "--from", "ana@client.example")
        inbound = InboundMail.objects.get()
        assert (inbound.recipients, inbound.sender) == (["helper@desk.example"], "ana@client.example")

    def test_no_persona_is_ex_nouser_and_the_mail_is_kept(self) -> None:
        with pytest.raises(SystemExit) as caught:
            output("receive_mail", str(FIXTURES / "plain_question.eml"), "--to", "nobody@desk.example")
        assert caught.value.code == 67
        assert InboundMail.objects.get().status == "unroutable"

    @pytest.mark.parametrize(("content", "code"), [(None, 66), (b"", 65)])
    def test_what_is_no_mail(self, tmp_path: Path, content: bytes | None, code: int) -> None:
        path = tmp_path / "mail.eml"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(CommandError) as caught:
            output("receive_mail", str(path), "--to", "helper@desk.example")
        assert caught.value.returncode == code
        assert not InboundMail.objects.exists()


class TestCreatePersona:
    def test_it_has_an_address_and_the_default_chains(self) -> None:
        said = output(
            "create_persona", "Ada@desk.example", name="Ada Lamp", model="offline:echo", instructions="You are Ada."
        )
        persona = Persona.objects.get()
        assert (persona.address, persona.slug, persona.tenant) == ("ada@desk.example", "ada-lamp", "default")
        assert [step.resolver for step in persona.chain_steps.filter(trigger="message")] == [
            "load_text",
            "thread_history",
        ]
        assert persona.chain_steps.filter(trigger="responsibility").count() == 2
        assert f"persona {persona.pk}" in said

    def test_instructions_may_come_from_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "ada.md").write_text("You are Ada.")
        output("create_persona", "a@desk.example", name="Ada", model="offline:echo", instructions=f"@{tmp_path}/ada.md")
        assert Persona.objects.get().instructions == "You are Ada."

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            ({"address": "no address"}, "address: "),
            ({"model": "anthropc:x"}, "Did you mean 'anthropic'"),
            ({"address": "helper@desk.example"}, "belongs to"),
            ({"instructions": "@/nowhere.md"}, "cannot be read"),
        ],
    )
    def test_what_cannot_be_is_said_and_nothing_is_stored(self, options: dict[str, str], complaint: str) -> None:
        PersonaFactory(address="helper@desk.example")
        given = {"address": "ada@desk.example", "name": "Ada", "model": "offline:echo"} | options
        with pytest.raises(CommandError, match=complaint):
            output("create_persona", given.pop("address"), **given)
        assert Persona.objects.count() == 1


class TestPreviewChain:
    def test_a_table_of_messages_with_their_steps(self) -> None:
        message = MessageFactory()
        said = output("preview_chain", message.persona.slug, message=message.pk)
        assert "1. user, said by the engine" in said
        assert "Where is order 77?" in said
        assert not Run.objects.exists()

    def test_wire_and_json(self) -> None:
        message = MessageFactory()
        assert "POST http://offline.invalid" in output(
            "preview_chain", message.persona.address, message=message.pk, wire=True
        )
        data = json.loads(output("preview_chain", str(message.persona_id), message=message.pk, json=True))
        assert data["wire"]["body"]["messages"][-1]["content"] == message.to_llm_text()

    def test_another_model(self) -> None:
        message = MessageFactory()
        said = output(
            "preview_chain", message.persona.slug, message=message.pk, model="anthropic:claude-sonnet-4-5", wire=True
        )
        assert "api.anthropic.com" in said

    def test_what_is_not_there_is_said(self) -> None:
        message = MessageFactory()
        other = PersonaFactory(slug="other")
        with pytest.raises(CommandError, match="has no inbound message"):
            output("preview_chain", "other", message=message.pk)
        with pytest.raises(CommandError, match=f"There are: .*{other}"):
            output("preview_chain", "nobody", message=message.pk)
        PersonaFactory(slug="other", tenant="elsewhere")
        with pytest.raises(CommandError, match="elsewhere/other"):
            output("preview_chain", "other", message=message.pk)

    def test_a_run_that_would_be_refused_ends_with_an_error(self) -> None:
        message = MessageFactory()
        message.persona.chain_steps.create(trigger="message", position=0, resolver="gone")
        with pytest.raises(CommandError, match="gone"):
            output("preview_chain", message.persona.slug, message=message.pk)


def test_sweep_says_what_it_woke() -> None:
    assert output("sweep").strip() == "mails: 0, lost runs: 0, runs: 0, sends: 0"


class TestDemo:
    @pytest.mark.usefixtures("transactional_db")
    def test_three_mails_are_answered_and_a_second_run_answers_nothing_twice(
        self, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.DEBUG = True
        monkeypatch.setenv("PROTEGE_DEMO", "1")
        said = output("demo")
        assert said.count("are the same (SHA-256") == 3
        assert "invoice-2026-041.pdf" in said
        assert Message.objects.filter(direction="outbound", status="sent").count() == 3
        again = output("demo")
        assert again.count("nothing is answered twice") == 3
        assert Message.objects.filter(direction="outbound").count() == 3
        assert len(django_mail.outbox) == 3

    def test_it_is_for_ones_own_machine(self, settings: Any) -> None:
        settings.DEBUG = True
        with pytest.raises(CommandError, match="make demo"):
            output("demo")
