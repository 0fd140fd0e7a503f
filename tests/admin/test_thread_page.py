"""A thread is read from top to bottom, as text."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.models import Persona
from tests.admin import pages
from tests.admin.conftest import staff
from tests.factories import (
    AttachmentFactory,
    EmailThreadFactory,
    MessageFactory,
    OutboundFactory,
    ParticipantFactory,
    RunFactory,
    ThreadTagFactory,
    ToolUseFactory,
)
from threads.models import Attachment, EmailThread, Message, Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(ada: Persona) -> EmailThread:
    """A mail with a file, a run that called a tool, the answer, another mail and a draft."""
    thread = EmailThreadFactory(persona=ada)
    mail = MessageFactory(thread=thread, readable_body="Where is order 77?\nKind regards")
    AttachmentFactory(message=mail, filename="order.pdf")
    run = RunFactory(message=mail, code="", model="offline:echo")
    ToolUseFactory(run=run, input={"order": 77}, result='{"carrier": "Österreichische Post"}')
    OutboundFactory(thread=thread, answers=mail, run=run, readable_body="It left this morning.")
    second = MessageFactory(thread=thread, readable_body="Thank you!")
    RunFactory(message=second, status="failed", code="rate_limited")
    OutboundFactory(thread=thread, answers=second, status="draft", readable_body="You are welcome.")
    MessageFactory(thread=thread, readable_body="One more thing.")
    return thread


def test_the_transcript_has_everything_in_order(desk: Client, thread: EmailThread) -> None:
    shown = pages.text(desk.get(pages.url_of(thread)))
    parts = [
        "Ana Moßner <ana@client.example>", "Where is order 77?", "order.pdf", "Succeeded", "look_up", '"order": 77',
        "Österreichische Post", "Helper", "It left this morning.", "Thank you!", "Failed: rate_limited", "Draft",
        "You are welcome.", "One more thing.",
    ]  # fmt: skip
    places = [shown.index(part, shown.index("Conversation")) for part in parts if part != "Helper"]
    assert places == sorted(places)


def test_tool_calls_are_folded(desk: Client, thread: EmailThread) -> None:
    page = pages.tree(desk.get(pages.url_of(thread)))
    folded = page.xpath("//section//details[not(@open)]")
    assert len(folded) == 1
    assert "Österreichische Post" in folded[0].text_content()


def test_rounds_of_a_run_without_a_mail_stand_before_what_it_sent(desk: Client, ada: Persona) -> None:
    thread = EmailThreadFactory(persona=ada)
    run = RunFactory(message=None, thread=thread, persona=ada, kind="responsibility")
    ToolUseFactory(run=run, message=None)
    OutboundFactory(thread=thread, run=run, readable_body="The weekly report.")
    shown = pages.text(desk.get(pages.url_of(thread)))
    assert 0 < shown.index("Tools: look_up") < shown.index("The weekly report.")


def test_nothing_in_a_mail_is_markup_or_hidden(desk: Client, ada: Persona) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    thread = EmailThreadFactory(persona=ada, subject=evil, correspondent="ana@client.example")
    ParticipantFactory(thread=thread, name=evil)
    mail = MessageFactory(
        thread=thread, subject=evil, from_name=evil, readable_body=f"{evil} safe\u202egpj.exe", text_body=evil
    )
    AttachmentFactory(message=mail, filename=evil)
    run = RunFactory(message=mail, notices=[{"code": "left_out", "what": evil}])
    ToolUseFactory(run=run, name=evil, input={"x": evil}, result=evil)
    urls = [pages.url_of(thread), pages.url_of(mail), pages.url_of(run), pages.list_url(Message), pages.list_url(Run)]
    for url in urls:
        page = desk.get(url).content.decode()
        assert "<script>alert" not in page, url
        assert "<img src=x" not in page, url
        assert "\u202e" not in page, url
    assert evil in pages.text(desk.get(urls[0]))


def test_a_page_of_any_length_takes_the_same_queries(desk: Client, ada: Persona) -> None:
    thread = EmailThreadFactory(persona=ada)
    counts = []
    for wanted in (10, 100):
        while thread.messages.count() < wanted:
            mail = MessageFactory(thread=thread)
            AttachmentFactory(message=mail)
            run = RunFactory(message=mail)
            ToolUseFactory(run=run)
            OutboundFactory(thread=thread, answers=mail, run=run)
        with CaptureQueriesContext(connection) as queries:
            desk.get(pages.url_of(thread))
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_long_thread_opens_at_its_end(desk: Client, ada: Persona) -> None:
    thread = EmailThreadFactory(persona=ada)
    for number in range(60):
        MessageFactory(thread=thread, readable_body=f"Mail number {number}.")
    newest = pages.text(desk.get(pages.url_of(thread)))
    assert "Mail number 59." in newest
    assert "Mail number 9." not in newest
    assert "51 to 60 of 60 messages" in newest
    assert "Mail number 9." in pages.text(desk.get(pages.url_of(thread), {"page": "1"}))
    assert desk.get(pages.url_of(thread), {"page": "nonsense"}).status_code == 200


def test_lists_do_not_read_bodies(desk: Client, thread: EmailThread) -> None:
    for model in (EmailThread, Message, Run):
        with CaptureQueriesContext(connection) as queries:
            desk.get(pages.list_url(model))
        read = " ".join(query["sql"] for query in queries)
        for column in ("readable_body", "text_body", "summary", "instructions", '"request"'):
            assert f'{column}" ' not in read, (model, column)
            assert f'{column}",' not in read, (model, column)


def test_the_search_finds_subject_correspondent_and_title(desk: Client, ada: Persona) -> None:
    EmailThreadFactory(persona=ada, subject="Lampen", correspondent="bea@client.example", title="Two lamps")
    EmailThreadFactory(persona=ada)
    for query in ("lampen", "BEA@", "two lamps"):
        assert pages.row_count(desk.get(pages.list_url(EmailThread), {"q": query})) == 1


# Writing


def test_only_notes_can_be_written_and_nothing_else_is_touched(desk: Client, thread: EmailThread) -> None:
    data = pages.open_form(desk, thread)
    EmailThread.objects.filter(pk=thread.pk).update(status="failed", last_sequence=99, revision=77)
    typed = {"title": "Order 77", "description": "Lamps", "pinned": "on", "archived": "on", "reply_mode": "draft"}
    tried = {"status": "answered", "correspondent": "eve@evil.example", "tenant": "other", "last_sequence": "1"}
    pages.save(desk, thread, {**data, **typed, **tried, "tags-0-name": "lamps"})
    thread.refresh_from_db()
    assert (thread.title, thread.description, thread.pinned, thread.reply_mode) == ("Order 77", "Lamps", True, "draft")
    assert thread.archived_at is not None
    assert (thread.status, thread.last_sequence, thread.revision, thread.tenant) == ("failed", 99, 77, "desk")
    assert thread.correspondent == "ana@client.example"
    assert thread.tags.get().name == "lamps"


def test_a_thread_stays_archived_since_when_it_was(desk: Client, thread: EmailThread) -> None:
    since = timezone.now() - timezone.timedelta(days=3)
    EmailThread.objects.filter(pk=thread.pk).update(archived_at=since)
    pages.save(desk, thread, {**pages.open_form(desk, thread), "title": "x"})
    thread.refresh_from_db()
    assert thread.archived_at == since
    data = pages.open_form(desk, thread)
    del data["archived"]
    pages.save(desk, thread, data)
    thread.refresh_from_db()
    assert thread.archived_at is None


def test_the_same_tag_twice_is_a_form_error(desk: Client, thread: EmailThread) -> None:
    ThreadTagFactory(thread=thread, name="lamps")
    pages.refused(desk, thread, {**pages.open_form(desk, thread), "tags-1-name": "lamps"})


VIEW, CURATE = "protege_threads.view_emailthread", "protege_threads.curate_emailthread"


def test_who_curates_writes_notes_and_no_reply_mode(thread: EmailThread) -> None:
    client = staff("cora", VIEW, CURATE)
    data = pages.open_form(client, thread)
    pages.save(client, thread, {**data, "title": "Mine", "reply_mode": "off", "tags-0-name": "lamps"})
    thread.refresh_from_db()
    assert (thread.title, thread.reply_mode, thread.tags.count()) == ("Mine", "", 1)


def test_who_curates_may_read_only_with_the_right_to_read(thread: EmailThread) -> None:
    assert staff("cora", CURATE).get(pages.url_of(thread)).status_code == 403


def test_who_only_reads_writes_nothing(thread: EmailThread) -> None:
    client = staff("vera", VIEW)
    assert "Thank you!" in pages.text(client.get(pages.url_of(thread)))
    assert client.post(pages.url_of(thread), {"title": "x"}).status_code == 403
    client.post(pages.list_url(EmailThread), {"action": "pin", "_selected_action": thread.pk})
    client.post(pages.url_of(thread, "delete"), {"post": "yes"})
    assert not EmailThread.objects.get().pinned


def test_threads_are_pinned_and_archived_from_the_list(desk: Client, thread: EmailThread, theirs: Persona) -> None:
    hidden = EmailThreadFactory(persona=theirs)
    chosen = {"_selected_action": [thread.pk, hidden.pk]}
    for action in ("pin", "archive"):
        desk.post(pages.list_url(EmailThread), {"action": action, **chosen})
    thread.refresh_from_db()
    hidden.refresh_from_db()
    assert (thread.pinned, hidden.pinned, hidden.archived_at) == (True, False, None)
    assert thread.archived_at is not None
    assert pages.row_count(desk.get(pages.list_url(EmailThread), {"archived": "no"})) == 0
    for action in ("unpin", "unarchive"):
        desk.post(pages.list_url(EmailThread), {"action": action, **chosen})
    thread.refresh_from_db()
    assert (thread.pinned, thread.archived_at) == (False, None)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("from_list", [False, True])
def test_a_thread_is_deleted_with_all_it_holds_by_djangos_own_permission(from_list: bool) -> None:
    attachment = AttachmentFactory(message__thread__persona__tenant="desk")
    thread = attachment.message.thread
    ToolUseFactory(run=RunFactory(message=attachment.message))
    storage, name = attachment.file.storage, attachment.file.name
    client = staff("dan", VIEW, "protege_threads.delete_emailthread")
    assert "Messages: 1" in pages.text(client.get(pages.url_of(thread, "delete")))
    assert storage.exists(name)
    if from_list:
        chosen = {"action": "delete_selected", "_selected_action": thread.pk, "post": "yes"}
        assert client.post(pages.list_url(EmailThread), chosen).status_code == 302
    else:
        assert client.post(pages.url_of(thread, "delete"), {"post": "yes"}).status_code == 302
    for model in (EmailThread, Message, Attachment, Run):
        assert not model._default_manager.exists()
    assert not storage.exists(name)
