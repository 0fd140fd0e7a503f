"""Answers that wait for a person."""

from typing import Any

import pytest
from django.core import mail as django_mail

from protege.exceptions import DraftError, NotVisibleError, StaleDraftError
from protege.principals import Principal, Scope
from protege.services import drafts, inbox, runs
from protege.signals import draft_created
from protege.testing import Call, Say, scripted
from tests.factories import MessageFactory, OutboundFactory, RunFactory, UserFactory
from tests.mails import mail
from threads.models import EmailThread, Message, Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(run: Run) -> Run:
    """The queued run of a thread whose answers a person approves."""
    EmailThread.objects.update(reply_mode="draft")
    return Run.objects.get(pk=run.pk)


def drafted(run: Run, text: str = "It is on its way.") -> Message:
    with scripted(Say(text)):
        return runs.execute(run.pk).outbound.get()


def run_again(run: Run, *steps: Any) -> Run:
    again = RunFactory(message=run.message, status="queued")
    with scripted(*(steps or [Say("It arrives tomorrow.")])):
        return runs.execute(again.pk)


def second_mail(run: Run, **fields: Any) -> Message:
    return MessageFactory(thread=EmailThread.objects.get(pk=run.thread_id), **fields)


def answer_to(message: Message, text: str = "Both are on their way.") -> Message:
    return drafted(RunFactory(message=message, status="queued"), text)


class TestApprove:
    def test_it_goes_out_and_takes_its_place_now(self, run: Run, django_capture_on_commit_callbacks: Any) -> None:
        draft = drafted(run)
        with django_capture_on_commit_callbacks(execute=True):
            sent = drafts.approve(draft.pk, author=UserFactory())
        assert (sent.status, sent.sequence) == ("queued", 2)
        assert Message.objects.get(pk=draft.pk).status == "sent"
        assert [one.extra_headers["Message-ID"] for one in django_mail.outbox] == [draft.message_id]
        run.message.refresh_from_db()
        run.thread.refresh_from_db()
        assert (run.message.answered_by, run.thread.status) == (draft, "answered")
        assert set(run.thread.participants.values_list("address", flat=True)) == {"ana@client.example"}

    def test_the_second_of_two_approvals_is_refused(self, run: Run) -> None:
        draft = drafted(run)
        drafts.approve(draft.pk, author=None)
        revision = EmailThread.objects.get().revision
        for seen in (None, revision):
            with pytest.raises(DraftError) as caught:
                drafts.approve(draft.pk, author=None, seen_revision=seen)
            assert caught.value.code == "not_a_draft"
        assert EmailThread.objects.get().revision == revision

    def test_what_arrived_since_is_shown_first(self, run: Run) -> None:
        draft = drafted(run)
        later = second_mail(run)
        with pytest.raises(StaleDraftError) as caught:
            drafts.approve(draft.pk, author=None)
        assert (caught.value.arrived, caught.value.current) == ([later.pk], 2)
        assert Message.objects.get(pk=draft.pk).status == "draft"
        assert drafts.approve(draft.pk, author=None, seen_revision=caught.value.current).sequence == 3

    def test_what_arrived_while_the_model_worked_is_shown_too(self, run: Run) -> None:
        draft = drafted(run)
        Message.objects.filter(pk=draft.pk).delete()
        later = second_mail(run)
        draft.pk = None
        draft.save()
        with pytest.raises(StaleDraftError) as caught:
            drafts.approve(draft.pk, author=None)
        assert caught.value.arrived == [later.pk]

    def test_what_arrives_after_the_page_was_read_is_shown_again(self, run: Run) -> None:
        draft = drafted(run)
        second_mail(run)
        third = second_mail(run)
        with pytest.raises(StaleDraftError) as caught:
            drafts.approve(draft.pk, author=None, seen_revision=2)
        assert third.pk in caught.value.arrived

    def test_a_mail_that_a_tool_wrote_waits_and_leaves_alike(self, run: Run) -> None:
        ben = {"to": ["ben@client.example"], "subject": "Hi", "body": "Do you know of it?"}
        with scripted(Call("send_email", ben), Say("I have asked Ben.")):
            done = runs.execute(run.pk)
        asked = done.outbound.get(origin="tool")
        assert (asked.status, asked.thread.reply_mode) == ("draft", "draft")
        assert drafts.approve(asked.pk, author=None).sequence == 1

    def test_one_that_is_gone_is_not_found(self) -> None:
        with pytest.raises(NotVisibleError):
            drafts.approve(1, author=None)


class TestEdit:
    def test_words_and_subject_change(self, run: Run) -> None:
        draft = drafted(run)
        edited = drafts.edit(draft.pk, body=" It arrives on Monday.\n", subject="Re: Order\r\n77", author=UserFactory())
        assert (edited.text_body, edited.readable_body) == ("It arrives on Monday.", "It arrives on Monday.")
        assert (edited.subject, edited.message_id) == ("Re: Order 77", draft.message_id)
        assert edited.edited_at is not None
        assert drafts.approve(draft.pk, author=None).status == "queued", "one's own edit makes nothing stale"

    def test_an_edit_does_not_hide_what_arrived(self, run: Run) -> None:
        draft = drafted(run)
        later = second_mail(run)
        drafts.edit(draft.pk, body="Changed.", author=None)
        with pytest.raises(StaleDraftError) as caught:
            drafts.approve(draft.pk, author=None)
        assert caught.value.arrived == [later.pk]

    def test_who_has_read_the_words_before_an_edit_is_asked_again(self, run: Run) -> None:
        draft = drafted(run)
        read = EmailThread.objects.get().revision
        drafts.edit(draft.pk, body="Changed.", author=None)
        for change in (drafts.approve, lambda *a, **k: drafts.edit(*a, body="Mine.", **k)):
            with pytest.raises(StaleDraftError) as caught:
                change(draft.pk, author=None, seen_revision=read)
            assert caught.value.arrived == []

    def test_an_empty_one_is_refused(self, run: Run) -> None:
        with pytest.raises(DraftError) as caught:
            drafts.edit(drafted(run).pk, body=" \n", author=None)
        assert caught.value.code == "empty_draft"

    def test_what_left_is_not_edited(self, run: Run) -> None:
        draft = drafted(run)
        drafts.approve(draft.pk, author=None)
        with pytest.raises(DraftError):
            drafts.edit(draft.pk, body="Too late.", author=None)
        assert Message.objects.get(pk=draft.pk).text_body == "It is on its way."


class TestDiscard:
    def test_the_mail_stays_unanswered(self, run: Run) -> None:
        draft = drafted(run)
        gone = drafts.discard(draft.pk, author=UserFactory())
        assert (gone.status, gone.sequence, gone.last_code) == ("discarded", None, "discarded")
        run.thread.refresh_from_db()
        run.message.refresh_from_db()
        assert (run.thread.status, run.message.answered_by) == ("waiting", None)
        with pytest.raises(DraftError):
            drafts.approve(draft.pk, author=None)


class TestReplacing:
    def test_a_new_draft_replaces_one_that_nobody_edited(self, run: Run) -> None:
        old = drafted(run)
        new = run_again(run).outbound.get()
        old.refresh_from_db()
        assert (old.status, old.last_code, new.status) == ("discarded", "replaced", "draft")

    def test_an_answer_that_goes_out_replaces_it_too(self, run: Run) -> None:
        old = drafted(run)
        EmailThread.objects.update(reply_mode="auto")
        assert run_again(run).outbound.get().status == "queued"
        old.refresh_from_db()
        assert old.status == "discarded"

    def test_an_edited_one_stays_flagged_and_the_new_answer_is_kept_beside_it(self, run: Run) -> None:
        old = drafted(run)
        drafts.edit(old.pk, body="Mine.", author=None)
        done = run_again(run)
        old.refresh_from_db()
        assert (old.status, old.last_code, old.text_body) == ("draft", "stale", "Mine.")
        assert (done.status, done.notices) == ("succeeded", [{"code": "edited_draft_stays", "draft": old.pk}])
        new = done.outbound.get()
        assert (new.status, new.last_code, new.text_body) == ("discarded", "edited_draft_stays", "It arrives tomorrow.")

    def test_a_flagged_one_asks_again(self, run: Run) -> None:
        old = drafted(run)
        drafts.edit(old.pk, body="Mine.", author=None)
        run_again(run)
        with pytest.raises(StaleDraftError) as caught:
            drafts.approve(old.pk, author=None)
        assert drafts.approve(old.pk, author=None, seen_revision=caught.value.current).status == "queued"

    def test_send_email_does_the_same(self, run: Run) -> None:
        old = drafted(run)
        answer = Call("send_email", {"to": ["ana@client.example"], "subject": "x", "body": "It arrives tomorrow."})
        done = run_again(run, answer, Say("Done."))
        old.refresh_from_db()
        assert (old.status, done.outbound.get().status) == ("discarded", "draft")
        drafts.edit(done.outbound.get().pk, body="Mine.", author=None)
        last = run_again(run, answer, Say("It arrives tomorrow, I think."))
        assert "draft_pending" in last.tool_uses.get().result
        assert last.outbound.get().status == "discarded"

    def test_an_answer_to_a_later_mail_replaces_and_covers(self, run: Run) -> None:
        old = drafted(run)
        later = second_mail(run)
        new = answer_to(later)
        old.refresh_from_db()
        assert (old.status, new.status) == ("discarded", "draft")
        drafts.approve(new.pk, author=None)
        assert set(Message.objects.filter(answered_by=new)) == {run.message, later}

    def test_an_edited_draft_of_an_earlier_mail_stays_beside_it(self, run: Run) -> None:
        old = drafted(run)
        drafts.edit(old.pk, body="Mine.", author=None)
        new = answer_to(second_mail(run))
        old.refresh_from_db()
        assert (old.status, old.last_code, new.status) == ("draft", "stale", "draft")

    def test_the_drafts_of_others_and_of_later_mails_stay(self, run: Run) -> None:
        bens = second_mail(run, from_address="ben@client.example")
        kept = [answer_to(bens), answer_to(second_mail(run))]
        drafted(run)
        assert [Message.objects.get(pk=one.pk).status for one in kept] == ["draft", "draft"]

    def test_each_mail_has_its_own_draft_where_each_is_answered(self, run: Run, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "ON_NEW_MAIL": "answer"}
        old = drafted(run)
        answer_to(second_mail(run))
        old.refresh_from_db()
        assert old.status == "draft"


class TestPending:
    def test_the_oldest_first_and_only_what_one_may_see(self, run: Run) -> None:
        first = drafted(run)
        other = OutboundFactory(status="draft", thread__persona__tenant="other")
        everything = drafts.pending(Principal(is_admin=True), Scope.GLOBAL)
        assert list(everything) == [first, other]
        assert list(drafts.pending(Principal(tenant="desk"), Scope.TENANT)) == [first]


def test_from_the_mail_to_the_answer(assistant: Any, django_capture_on_commit_callbacks: Any) -> None:
    heard: list[Message] = []
    listener = lambda message, **_: heard.append(message)  # noqa: E731
    draft_created.connect(listener)
    assistant.reply_mode = "draft"
    assistant.save()
    with scripted(Say("It is on its way.")), django_capture_on_commit_callbacks(execute=True):
        inbox.receive(mail(to=assistant.address), recipients=[assistant.address])
    assert django_mail.outbox == []
    (draft,) = heard
    with django_capture_on_commit_callbacks(execute=True):
        drafts.approve(draft.pk, author=None)
    assert len(django_mail.outbox) == 1
