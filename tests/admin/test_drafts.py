"""A draft is read, edited, approved and discarded on its page, by those who may, and is sent once."""

from typing import Any

import pytest
from django.core import mail as django_mail
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from personas.models import Persona
from tests.admin import pages
from tests.admin.conftest import staff
from tests.factories import MessageFactory, OutboundFactory
from threads.models import EmailThread, Message

pytestmark = pytest.mark.django_db

APPROVE = "protege_threads.approve_draft"
DISCARD = "protege_threads.discard_draft"
VIEW = "protege_threads.view_message"
VIEW_THREAD = "protege_threads.view_emailthread"


def drafted(persona: Persona, **fields: Any) -> Message:
    """An answer that waits; its author had read all that stands in the thread."""
    inbound = MessageFactory(thread__persona=persona, readable_body="Where is order 77?")
    revision = EmailThread.objects.get(pk=inbound.thread_id).revision
    draft: Message = OutboundFactory(
        thread=inbound.thread, answers=inbound, **{"status": "draft", "thread_revision": revision, **fields}
    )
    return draft


def url(draft: Message, what: str = "draft") -> str:
    return reverse(f"admin:protege_threads_message_{what}", args=[draft.pk])


def filled(client: Client, draft: Message, **changes: Any) -> pages.Data:
    return {**pages.form_data(client.get(url(draft)), "draft_form"), **changes}


def fresh(draft: Message) -> Message:
    return Message.objects.get(pk=draft.pk)


def conflict(response: HttpResponse) -> HttpResponse:
    """The page that asks again, as one that can be read."""
    assert response.status_code == 409
    response.status_code = 200
    return response


class TestFinding:
    def test_the_list_the_mail_and_the_transcript_lead_to_it(self, desk: Client, ada: Persona) -> None:
        draft = drafted(ada)
        sent = OutboundFactory(thread=draft.thread)
        listed = desk.get(pages.list_url(Message), {"waits": "draft"})
        assert pages.row_count(listed) == 1
        for page in (listed, desk.get(pages.url_of(draft)), desk.get(pages.url_of(draft.thread))):
            assert url(draft) in page.content.decode()
            assert url(sent) not in page.content.decode()
        assert url(sent) not in desk.get(pages.url_of(sent)).content.decode()

    def test_who_may_decide_nothing_is_led_nowhere(self, ada: Persona) -> None:
        draft, reader = drafted(ada), staff("vera", VIEW, VIEW_THREAD)
        for address in (pages.list_url(Message), pages.url_of(draft), pages.url_of(draft.thread)):
            assert url(draft) not in reader.get(address).content.decode()

    def test_the_page_shows_what_it_answers_and_no_script(self, desk: Client, ada: Persona) -> None:
        draft = drafted(ada, readable_body="</textarea><script>alert(1)</script>")
        page = desk.get(url(draft))
        assert "Where is order 77?" in pages.text(page)
        assert "<script>alert" not in page.content.decode()
        assert pages.tree(page).xpath("//script[not(@src)]") == []

    def test_who_may_only_discard_reads_the_text(self, ada: Persona) -> None:
        draft = drafted(ada)
        page = staff("vera", VIEW, DISCARD).get(url(draft))
        assert "It is on its way." in pages.text(page)
        assert pages.tree(page).xpath("//form/@id[. = 'draft_form']") == []


class TestAllowed:
    @pytest.mark.parametrize("what", ["edit", "approve", "discard"])
    def test_by_post_alone(self, what: str, desk: Client, ada: Persona) -> None:
        draft = drafted(ada)
        assert desk.get(url(draft, what)).status_code == 405
        data = filled(desk, draft)
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = desk.cookies
        assert strict.post(url(draft, what), {**data, "csrfmiddlewaretoken": "x"}).status_code == 403
        assert "login" in Client().post(url(draft, what), data)["Location"]
        assert fresh(draft).status == "draft"

    @pytest.mark.parametrize("what", ["draft", "edit", "approve", "discard"])
    def test_only_with_the_permission_and_only_what_one_sees(
        self, what: str, desk: Client, ada: Persona, theirs: Persona
    ) -> None:
        draft, hidden = drafted(ada), drafted(theirs)
        data = filled(desk, draft)
        wrong = {"edit": [DISCARD], "approve": [DISCARD], "discard": [APPROVE], "draft": []}[what]
        blind = staff("ben", APPROVE, DISCARD)

        def answer(client: Client, row: Message) -> int:
            call = client.get if what == "draft" else client.post
            return call(url(row, what), data).status_code

        for client in (staff("vera", VIEW, *wrong), blind):
            assert [answer(client, row) for row in (draft, hidden, Message(pk=999_999))] == [403, 403, 403]
        assert [answer(desk, row) for row in (hidden, Message(pk=999_999))] == [404, 404]
        assert answer(staff("nobody"), draft) == 404
        assert (fresh(draft).status, fresh(hidden).status) == ("draft", "draft")
        assert fresh(draft).edited_at is None

    def test_an_administrator_reaches_all_tenants(self, root: Client, theirs: Persona) -> None:
        draft = drafted(theirs)
        assert root.post(url(draft, "discard")).status_code == 302
        assert fresh(draft).status == "discarded"


class TestEditing:
    def test_text_and_subject(self, desk: Client, ada: Persona) -> None:
        draft = drafted(ada)
        data = filled(desk, draft, body="It arrives\r\ntomorrow.", subject="Order 77")
        page = desk.post(url(draft, "edit"), data, follow=True)
        assert "still waits for approval" in pages.text(page)
        now = fresh(draft)
        assert (now.text_body, now.subject, now.status) == ("It arrives\ntomorrow.", "Order 77", "draft")
        assert now.edited_at is not None
        assert "Edited." in pages.text(desk.get(pages.url_of(draft, "history")))

    @pytest.mark.parametrize("wrong", [{"body": " \r\n"}, {"subject": "x" * 999}, {"seen_revision": "x"}])
    @pytest.mark.parametrize("what", ["edit", "approve"])
    def test_what_cannot_be_a_mail(self, what: str, wrong: pages.Data, desk: Client, ada: Persona) -> None:
        draft = drafted(ada)
        response = desk.post(url(draft, what), filled(desk, draft, **wrong))
        assert response.status_code == 400
        assert (fresh(draft).status, fresh(draft).edited_at) == ("draft", None)

    def test_of_two_who_edit_the_second_keeps_the_words_and_reads_the_others(self, desk: Client, ada: Persona) -> None:
        draft = drafted(ada)
        first, second = filled(desk, draft, body="First."), filled(desk, draft, body="Second.")
        assert desk.post(url(draft, "edit"), first).status_code == 302
        page = conflict(desk.post(url(draft, "edit"), second))
        assert "As it is stored now First." in pages.text(page)
        assert fresh(draft).text_body == "First."
        again = pages.form_data(page, "draft_form")
        assert again["body"] == "Second."
        assert desk.post(url(draft, "edit"), again).status_code == 302
        assert fresh(draft).text_body == "Second."


class TestApproving:
    def test_two_approvals_send_one_mail(
        self, desk: Client, ada: Persona, django_capture_on_commit_callbacks: Any
    ) -> None:
        draft = drafted(ada)
        data = filled(desk, draft)
        with django_capture_on_commit_callbacks(execute=True):
            first = desk.post(url(draft, "approve"), data)
            second = desk.post(url(draft, "approve"), data, follow=True)
        assert first.status_code == 302
        assert "no longer a draft" in pages.text(second)
        assert [sent.extra_headers["Message-ID"] for sent in django_mail.outbox] == [draft.message_id]
        assert (fresh(draft).status, fresh(draft).sequence, fresh(draft).edited_at) == ("sent", 2, None)
        assert "no longer a draft" in pages.text(desk.get(url(draft), follow=True))

    def test_what_stands_in_the_form_is_what_is_sent(
        self, desk: Client, ada: Persona, django_capture_on_commit_callbacks: Any
    ) -> None:
        draft = drafted(ada)
        data = filled(desk, draft, body="It arrives tomorrow.")
        with django_capture_on_commit_callbacks(execute=True):
            assert desk.post(url(draft, "approve"), data).status_code == 302
        (sent,) = django_mail.outbox
        assert "It arrives tomorrow." in sent.body
        assert "It is on its way." not in sent.body
        assert fresh(draft).edited_at is not None

    def test_what_arrived_since_is_shown_and_asked_again(
        self, desk: Client, ada: Persona, django_capture_on_commit_callbacks: Any
    ) -> None:
        draft = drafted(ada)
        data = filled(desk, draft, body="Edited.")
        MessageFactory(thread=draft.thread, readable_body="I found it, thank you.")
        with django_capture_on_commit_callbacks(execute=True):
            page = conflict(desk.post(url(draft, "approve"), data))
        assert "I found it, thank you." in pages.text(page)
        assert (django_mail.outbox, fresh(draft).status, fresh(draft).edited_at) == ([], "draft", None)
        again = pages.form_data(page, "draft_form")
        assert (again["seen_revision"], again["body"]) == (str(EmailThread.objects.get().revision), "Edited.")
        with django_capture_on_commit_callbacks(execute=True):
            assert desk.post(url(draft, "approve"), again).status_code == 302
        assert (len(django_mail.outbox), fresh(draft).status) == (1, "sent")

    def test_a_page_that_is_opened_late_says_it_at_once(self, desk: Client, ada: Persona) -> None:
        draft = drafted(ada)
        assert "Since this draft was written" not in pages.text(desk.get(url(draft)))
        MessageFactory(thread=draft.thread, readable_body="I found it, thank you.")
        page = desk.get(url(draft))
        assert "Since this draft was written" in pages.text(page)
        assert "I found it, thank you." in pages.text(page)
        assert pages.tree(page).xpath("//input[@value='Approve all the same']")


class TestDiscarding:
    def test_it_is_thrown_away_once(self, desk: Client, ada: Persona, django_capture_on_commit_callbacks: Any) -> None:
        draft = drafted(ada)
        data = filled(desk, draft)
        with django_capture_on_commit_callbacks(execute=True):
            first, second = (desk.post(url(draft, "discard"), follow=True) for _ in range(2))
            desk.post(url(draft, "approve"), data)
        assert "Nothing was sent" in pages.text(first)
        assert "no longer a draft" in pages.text(second)
        assert (fresh(draft).status, django_mail.outbox) == ("discarded", [])
