from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail as django_mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.models import Persona
from protege import conf
from protege.exceptions import ConfigurationError
from protege.services import inbox, runs
from tests.factories import MessageFactory, OutboundFactory, ParticipantFactory, PersonaFactory, RunFactory
from tests.mails import mail
from tests.services.receiving import HELPER, outcome, receive, received
from threads.models import EmailThread, InboundMail, Message, Run

pytestmark = pytest.mark.django_db

WORDS = ["order", "invoice", "parcel", "refund", "address", "voucher", "warranty", "colour", "size", "opening", "phone"]


@pytest.fixture
def helper() -> Persona:
    return PersonaFactory(slug="helper", address=HELPER)


def questions(count: int, **fields: Any) -> Iterator[bytes]:
    """Different mails; `{}` in a field is their number."""
    for number in range(count):
        own = {name: value.format(number) for name, value in fields.items()}
        text = f"About the {WORDS[number % len(WORDS)]}{'!' * (number // len(WORDS))}"
        yield mail(text=text, message_id=f"<q{number}@client.example>", **own)


def limit(settings: Any, **limits: int) -> None:
    settings.PROTEGE = {**settings.PROTEGE, "GOVERNOR": {**dict.fromkeys(WIDE, 1_000), **limits}}


WIDE = ("thread", "correspondent", "domain", "persona")


class TestLimits:
    def test_the_eleventh_mail_of_a_correspondent_in_an_hour_waits(self, helper: Persona) -> None:
        rows = [receive(raw) for raw in questions(11)]
        assert {row.status for row in rows[:10]} == {"processed"}
        assert outcome(rows[10]) == ("quarantined", "too_many_for_correspondent")
        assert (rows[10].message, Message.objects.filter(direction="inbound").count()) == (None, 10)

    def test_answers_that_went_out_count_like_those_to_come(self, helper: Persona) -> None:
        rows = []
        for raw in questions(11):
            rows.append(receive(raw))
            for run in Run.objects.filter(status="queued"):
                assert runs.execute(run.pk).status == "succeeded"
        assert outcome(rows[10]) == ("quarantined", "too_many_for_correspondent")

    def test_an_hour_later_it_goes_on(self, helper: Persona) -> None:
        thread = MessageFactory(thread__persona=helper, readable_body="Hello").thread
        for _ in range(10):
            OutboundFactory(thread=thread)
        assert receive(mail()).reason == "too_many_for_correspondent"
        Message.objects.update(received_at=timezone.now() - timedelta(minutes=61))
        assert receive(mail(message_id="<2@client.example>", text="Hello?")).status == "processed"

    def test_a_thread_has_a_limit_whoever_writes_in_it(self, helper: Persona, settings: Any) -> None:
        limit(settings, thread=3)
        first = MessageFactory(thread__persona=helper, message_id="<first@client.example>")
        for number in range(4):
            ParticipantFactory(thread=first.thread, address=f"p{number}@c{number}.example")
        raws = questions(4, from_="p{0}@c{0}.example", In_Reply_To="<first@client.example>")
        rows = [receive(raw) for raw in raws]
        assert [row.reason for row in rows] == ["", "", "", "too_many_in_thread"]

    def test_a10_a_domain_has_a_limit_whatever_the_address(self, helper: Persona) -> None:
        """The text of a mail robot, without any mark, from a fresh address each time."""
        rows = []
        for number in range(31):
            raw = mail(
                from_=f"a{number}@robot.example", message_id=f"<{number}@robot.example>", text="We cannot read it"
            )
            rows.append(receive(raw))
        assert {row.status for row in rows[:30]} == {"processed"}
        assert outcome(rows[30]) == ("quarantined", "too_many_for_domain")

    def test_a_persona_has_a_limit_in_all(self, helper: Persona, settings: Any) -> None:
        limit(settings, persona=3)
        rows = [receive(raw) for raw in questions(4, from_="ana@c{}.example")]
        assert [row.reason for row in rows] == ["", "", "", "too_many_for_persona"]

    def test_another_persona_has_its_own(self, helper: Persona, settings: Any) -> None:
        limit(settings, persona=1)
        PersonaFactory(slug="billing", address="billing@desk.example")
        receive(mail())
        assert receive(mail(), recipients=["billing@desk.example"]).status == "processed"

    def test_a_draft_is_no_automatic_answer(self, helper: Persona, settings: Any) -> None:
        limit(settings, persona=0)
        Persona.objects.update(reply_mode="draft")
        assert receive(mail()).status == "processed"

    def test_neither_is_a_run_that_waits_for_a_person(self, helper: Persona, settings: Any) -> None:
        limit(settings, persona=1)
        RunFactory(message=MessageFactory(thread__persona=helper, readable_body="Hello"), status="waiting")
        assert receive(mail()).status == "processed"

    @pytest.mark.parametrize("given", [{"hour": 3}, {"thread": "ten"}, {"thread": True}, {"thread": -1}])
    def test_limits_that_say_nothing_are_refused(self, settings: Any, given: dict[str, Any]) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "GOVERNOR": given}
        with pytest.raises(ConfigurationError):
            conf.load()

    def test_limits_that_are_not_set_have_their_defaults(self, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "GOVERNOR": {"domain": 5}}
        assert conf.load().governor == {"thread": 10, "correspondent": 10, "domain": 5, "persona": 200}


class TestNamedIds:
    def test_a_mail_that_names_our_id_counts_against_that_thread(self, helper: Persona, settings: Any) -> None:
        """A robot with a fresh address each time answers our answers: one conversation, however many threads."""
        limit(settings, thread=4)
        named, rows = "", []
        for number in range(6):
            raw = mail(
                from_=f"a{number}@r{number}.example",
                message_id=f"<{number}@robot.example>",
                text=f"No. {'x' * number}",
                **({"In_Reply_To": named} if named else {}),
            )
            rows.append(receive(raw))
            if rows[-1].message is None:
                break
            named = runs.execute(Run.objects.latest("pk").pk).outbound.get().message_id
        assert outcome(rows[-1]) == ("quarantined", "too_many_in_thread")
        assert len(rows) == 5
        assert EmailThread.objects.count() == 4
        assert EmailThread.objects.filter(counted_with=EmailThread.objects.earliest("pk")).count() == 3

    def test_to_name_somebody_elses_mail_is_nothing_of_the_kind(self, helper: Persona) -> None:
        received(mail())
        other = received(mail(from_="b@x.example", message_id="<2@x.example>", In_Reply_To="<first@client.example>"))
        assert other.thread.counted_with is None


class TestNearDuplicates:
    @pytest.mark.parametrize("text", ["Where is order 77?", "WHERE is\n  order 78?"])
    def test_the_same_again_waits(self, helper: Persona, text: str) -> None:
        receive(mail())
        again = receive(mail(message_id="<2@client.example>", text=text))
        assert outcome(again) == ("quarantined", "near_duplicate")

    def test_other_words_do_not(self, helper: Persona) -> None:
        receive(mail())
        assert receive(mail(message_id="<2@client.example>", text="Where is order 778?")).status == "processed"

    def test_the_same_of_another_sender_does_not(self, helper: Persona) -> None:
        receive(mail())
        assert receive(mail(message_id="<2@x.example>", from_="ben@client.example")).status == "processed"

    def test_it_does_in_the_same_thread(self, helper: Persona) -> None:
        first = received(mail())
        ParticipantFactory(thread=first.thread, address="ben@client.example")
        again = mail(message_id="<2@x.example>", from_="ben@client.example", In_Reply_To="<first@client.example>")
        assert receive(again).reason == "near_duplicate"

    def test_a_day_later_it_is_a_question(self, helper: Persona) -> None:
        receive(mail())
        Message.objects.update(received_at=timezone.now() - timedelta(hours=25))
        assert receive(mail(message_id="<2@client.example>")).status == "processed"

    def test_the_files_are_part_of_what_is_said(self, helper: Persona) -> None:
        def scan(number: int, page: bytes) -> InboundMail:
            return receive(mail(message_id=f"<{number}@x.example>", files=[("scan.txt", "text/plain", page)]))

        assert [scan(1, b"one").status, scan(2, b"two").status] == ["processed", "processed"]
        assert scan(3, b"one").reason == "near_duplicate"

    def test_a_mail_without_text_says_its_subject(self, helper: Persona) -> None:
        receive(mail(text="", subject="Where is my parcel?"))
        assert receive(mail(text="", subject="And the invoice?", message_id="<2@x.example>")).status == "processed"


class TestPingPong:
    def after(self, seconds: int) -> InboundMail:
        """The mail after two exchanges in which the other side took `seconds`."""
        helper = PersonaFactory(slug="helper", address=HELPER)
        first = MessageFactory(thread__persona=helper, message_id="<first@client.example>", readable_body="Hello")
        ParticipantFactory(thread=first.thread, address="ana@client.example")
        now = timezone.now()
        for rounds_ago in (2, 1):
            sent = now - timedelta(seconds=seconds * rounds_ago + 5)
            OutboundFactory(thread=first.thread, sent_at=sent)
            MessageFactory(
                thread=first.thread, readable_body="!" * rounds_ago, received_at=sent + timedelta(seconds=seconds)
            )
        OutboundFactory(thread=first.thread, sent_at=now - timedelta(seconds=seconds))
        return receive(mail(message_id="<2@client.example>", In_Reply_To="<first@client.example>"))

    def test_three_quick_mails_in_a_row(self) -> None:
        assert outcome(self.after(20)) == ("quarantined", "ping_pong")

    def test_people_take_their_time(self) -> None:
        assert self.after(70).status == "processed"

    def test_three_mails_after_one_of_ours_are_a_person(self, helper: Persona) -> None:
        first = received(mail())
        OutboundFactory(thread=first.thread, sent_at=timezone.now())
        for number in range(3):
            raw = mail(
                text="." * (number + 1), message_id=f"<{number}@x.example>", In_Reply_To="<first@client.example>"
            )
            assert receive(raw).status == "processed"


class TestAlerts:
    @pytest.fixture(autouse=True)
    def operators(self, settings: Any) -> None:
        limit(settings, persona=0)
        settings.PROTEGE = {**settings.PROTEGE, "OPERATORS": ["ops@desk.example"]}

    def test_the_operators_are_told_once_an_hour(
        self, helper: Persona, django_capture_on_commit_callbacks: Any
    ) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            for raw in questions(3):
                receive(raw)
        (alert,) = django_mail.outbox
        assert alert.to == ["ops@desk.example"]
        assert "too_many_for_persona" in alert.subject
        assert alert.extra_headers["Auto-Submitted"] == "auto-generated"
        InboundMail.objects.update(alerted_at=timezone.now() - timedelta(minutes=61))
        with django_capture_on_commit_callbacks(execute=True):
            receive(mail(message_id="<later@client.example>"))
        assert len(django_mail.outbox) == 2

    def test_an_alert_holds_nothing_of_the_mail(self, helper: Persona, django_capture_on_commit_callbacks: Any) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            receive(mail())
        (alert,) = django_mail.outbox
        for secret in ("ana@", "Where is", "order 77"):
            assert secret not in alert.subject + str(alert.body)

    def test_a_mail_server_that_is_away_undoes_nothing(
        self, helper: Persona, settings: Any, django_capture_on_commit_callbacks: Any
    ) -> None:
        settings.EMAIL_BACKEND = "tests.services.test_delivery.FailingBackend"
        with django_capture_on_commit_callbacks(execute=True):
            assert receive(mail()).status == "quarantined"


def test_it_takes_the_same_queries_whatever_the_data(helper: Persona, settings: Any) -> None:
    limit(settings)
    received(mail())

    def queries(number: int) -> int:
        raw = mail(text="?" * number, message_id=f"<n{number}@client.example>", In_Reply_To="<first@client.example>")
        with CaptureQueriesContext(connection) as captured:
            assert receive(raw).status == "processed"
        return len(captured)

    few = queries(1)
    for _ in range(30):
        RunFactory(message=MessageFactory(thread=EmailThread.objects.get()), status="queued")
        OutboundFactory(thread=EmailThread.objects.get())
    assert queries(2) == few


def test_what_a_release_has_waived_is_passed_over(helper: Persona, settings: Any) -> None:
    limit(settings, thread=0, persona=0)
    receive(mail(from_="b@x.example", message_id="<0@x.example>"))
    inbound = receive(mail())
    assert inbound.reason == "too_many_in_thread"
    assert outcome(inbox.release(inbound.pk)) == ("quarantined", "too_many_for_persona")
    assert outcome(inbox.release(inbound.pk)) == ("processed", "")
    inbound.refresh_from_db()
    assert inbound.waived == ["too_many_in_thread", "too_many_for_persona"]
