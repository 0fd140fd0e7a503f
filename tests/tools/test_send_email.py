import json
from typing import Any

import pytest

from protege.context import Context
from protege.exceptions import ToolFailure
from protege.services import outgoing
from protege.toolkit import ToolResult
from protege.tools.send_email import SendEmail
from tests.factories import AttachmentFactory, MessageFactory, OutboundFactory, ParticipantFactory, RunFactory
from threads.models import EmailThread, Message, Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    mail = MessageFactory()
    ParticipantFactory(thread=mail.thread, address=mail.from_address)
    ParticipantFactory(thread=mail.thread, address="ben@client.example")
    return RunFactory(message=mail, status="running")


def call(run: Run, **arguments: Any) -> ToolResult:
    mail = {"to": ["ana@client.example"], "subject": "Hello", "body": "It is on its way."} | arguments
    return SendEmail().call(Context(persona=run.persona, message=run.message, run_id=run.pk), mail)


def error_of(result: ToolResult) -> str:
    return str(json.loads(result.text())["error"]["code"])


def held(run: Run, **arguments: Any) -> Message:
    result = call(run, **arguments)
    assert result.outcome == "success", result.text()
    assert not run.outbound.filter(subject=arguments.get("subject")).exists(), "nothing is written before the record"
    assert result.on_record is not None
    result.on_record()
    return run.outbound.latest("id")


def test_a_mail_to_the_sender_is_the_answer(run: Run) -> None:
    mail = held(run, to=["ANA@client.example"])
    assert (mail.status, mail.origin, mail.answers, mail.sequence) == ("held", "answer", run.message, None)
    assert mail.thread == run.thread
    assert mail.in_reply_to == run.message.message_id
    assert mail.subject == "Re: Where is my order?"


def test_a_second_answer_is_an_error(run: Run) -> None:
    held(run)
    with pytest.raises(Exception, match="answered this mail already"):
        held(run)
    assert run.outbound.count() == 1


def test_a_mail_to_another_participant_gets_a_thread_of_its_own(run: Run) -> None:
    mail = held(run, to=["ben@client.example"])
    assert (mail.origin, mail.answers) == ("tool", None)
    assert mail.thread != run.thread
    assert mail.thread.opened_from == run.message
    assert mail.thread.correspondent == "ben@client.example"


@pytest.mark.parametrize("field", ["to", "cc"])
def test_strangers_are_refused_unless_the_policy_allows_them(run: Run, field: str) -> None:
    arguments = {"to": ["ana@client.example"], field: ["drop@elsewhere.example"]}
    assert error_of(call(run, **arguments)) == "recipient_not_allowed"
    run.persona.tool_policies = {"send_email": "allow"}
    assert call(run, **arguments).outcome == "success"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"to": ["nobody"]}, "bad_address"),
        ({"to": ["ana@client.example\nBcc: x@y.example"]}, "bad_address"),
        ({"to": []}, "bad_arguments"),
        ({"body": ""}, "bad_arguments"),
        ({"attachments": ["8a6e0804-2bd0-4672-b79d-d97027f9071a"]}, "unknown_attachment"),
    ],
)
def test_what_cannot_be_sent_is_told_to_the_model(run: Run, arguments: dict[str, Any], code: str) -> None:
    assert error_of(call(run, **arguments)) == code
    assert not Message.objects.filter(direction="outbound").exists()


def test_a_persona_is_not_written_to(run: Run) -> None:
    assert error_of(call(run, cc=[run.persona.address.replace("@", "+tag@")])) == "own_address"


def test_files_of_the_thread_go_along_and_others_do_not(run: Run) -> None:
    own = AttachmentFactory(message=run.message, data=b"notes")
    foreign = AttachmentFactory()
    assert error_of(call(run, attachments=[str(foreign.public_id)])) == "unknown_attachment"
    mail = held(run, attachments=[str(own.public_id)])
    copy = mail.attachments.get()
    assert copy.public_id != own.public_id
    assert copy.file.read() == b"notes"


def test_without_a_mail_there_is_nothing_to_send(run: Run) -> None:
    arguments = {"to": ["ana@client.example"], "subject": "Hi", "body": "Hi"}
    assert error_of(SendEmail().call(Context(persona=run.persona), arguments)) == "no_thread"
    assert EmailThread.objects.count() == 1


def test_people_of_the_conversation_get_the_answer_and_others_a_thread_of_their_own(run: Run) -> None:
    run.persona.tool_policies = {"send_email": "allow"}
    result = call(run, to=["drop@elsewhere.example", "ana@client.example"], cc=["ben@client.example"])
    assert result.on_record is not None
    result.on_record()
    answer, other = run.outbound.order_by("pk")
    assert ([entry["address"] for entry in answer.to], answer.cc[0]["address"]) == (
        ["ana@client.example"],
        "ben@client.example",
    )
    assert [entry["address"] for entry in other.to] == ["drop@elsewhere.example"]
    assert (answer.thread, other.thread.opened_from, other.origin) == (run.thread, run.message, "tool")
    assert other.subject == "Hello"


@pytest.mark.parametrize(
    ("fields", "address", "code"),
    [
        ({}, "dana@client.example", ""),
        ({}, "eve@rival.example", "recipient_not_allowed"),
        ({"trust": "verified"}, "eve@rival.example", "recipient_not_allowed"),
        ({"trust": "verified", "cc": [{"address": "eve@rival.example"}]}, "eve@rival.example", ""),
        ({"sequence": 7}, "dana@client.example", "recipient_not_allowed"),
    ],
)
def test_the_rules_for_recipients_hold(run: Run, fields: dict[str, Any], address: str, code: str) -> None:
    """A sender's domain, and whom a verified sender copied; nobody new in a joined thread; no stranger of its text."""
    for name, value in fields.items():
        setattr(run.message, name, value)
    result = call(run, cc=[address])
    assert (error_of(result) if code else result.outcome) == (code or "success")


def test_an_accepted_reply_to_is_the_sender_too(run: Run) -> None:
    assert run.message is not None
    run.message.reply_to = [{"name": "", "address": "ben@client.example"}]
    run.message.save()
    assert held(run, to=["ben@client.example"]).origin == "answer"


def test_more_than_twenty_are_refused(run: Run) -> None:
    many = [f"p{number}@client.example" for number in range(20)]
    assert error_of(call(run, cc=many)) == "too_many_recipients"


def test_a_mail_of_blanks_is_refused(run: Run) -> None:
    assert error_of(call(run, body=" \n")) == "empty_body"


def test_a_file_that_is_gone_is_told_to_the_model(run: Run) -> None:
    file = AttachmentFactory(message=run.message)
    file.file.delete(save=False)
    with pytest.raises(ToolFailure) as caught:
        held(run, attachments=[str(file.public_id)])
    assert caught.value.code == "attachment_gone"


def test_the_new_thread_is_watched_where_the_first_one_is(run: Run) -> None:
    EmailThread.objects.update(reply_mode="draft")
    assert held(run, to=["ben@client.example"]).thread.reply_mode == "draft"


class TestRelease:
    def released(self, run: Run) -> Message:
        held(run, to=["ben@client.example"])
        (message,) = outgoing.release_held(run)
        return message

    def test_it_leaves_when_the_run_ends_well(self, run: Run) -> None:
        assert self.released(run).status == "queued"

    @pytest.mark.parametrize(
        "fields", [{"reply_mode": "draft"}, {"reply_mode": "off"}, {"paused_at": "2026-01-01T00:00Z"}]
    )
    def test_it_waits_where_a_person_decides(self, run: Run, fields: dict[str, Any]) -> None:
        message = self.held_while(run, fields)
        assert (message.status, message.sequence, message.thread_revision) == ("draft", None, 0)

    def held_while(self, run: Run, fields: dict[str, Any]) -> Message:
        held(run, to=["ben@client.example"])
        EmailThread.objects.filter(pk=run.thread_id).update(**fields)
        (message,) = outgoing.release_held(run)
        return message

    def test_it_waits_when_the_governor_has_seen_enough(self, run: Run, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "GOVERNOR": {"correspondent": 1}}
        Run.objects.update(status="succeeded")
        OutboundFactory(thread__persona=run.persona, thread__correspondent="ben@client.example")
        assert self.released(run).status == "draft"
