import json
from typing import Any

import pytest

from protege.context import Context
from protege.toolkit import ToolResult
from protege.tools.send_email import SendEmail
from tests.factories import AttachmentFactory, MessageFactory, ParticipantFactory, RunFactory
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
