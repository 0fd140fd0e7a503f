"""The thread before the current mail, as turns."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from protege.context import Context
from protege.messages import ModelMessage
from resolvers.builtin import ThreadHistoryResolver
from tests.factories import AttachmentFactory, MessageFactory, OutboundFactory, RunFactory, ToolUseFactory
from tests.resolvers.histories import answer, history, labels, sources, traced
from threads.models import EmailThread, Message

pytestmark = pytest.mark.django_db


# Which mails, in which order


def test_mails_before_the_current_one_are_turns_in_order(thread: EmailThread) -> None:
    asked = MessageFactory(thread=thread, readable_body="Where is it?")
    said = answer(asked, readable_body="On its way.")
    current = MessageFactory(thread=thread)
    MessageFactory(thread=thread)
    assert history(current) == [
        ModelMessage("user", asked.to_llm_text()),
        ModelMessage("assistant", said.to_llm_text()),
    ]
    assert sources(current) == labels(asked, said)
    assert {item.kind for item in traced(current)} == {"history"}


def test_an_answer_stands_after_its_mail_and_not_where_it_was_written(thread: EmailThread) -> None:
    first, second = MessageFactory(thread=thread), MessageFactory(thread=thread)
    current = MessageFactory(thread=thread)
    other = OutboundFactory(thread=thread, origin="person")
    late = answer(first, status="queued")
    to_second = answer(second, status="sending")
    to_current = answer(current)
    assert sources(current) == labels(first, late, second, to_second)
    after = MessageFactory(thread=thread)
    assert sources(after) == labels(first, late, second, to_second, current, to_current, other)


def test_an_old_mail_rebuilds_alike_whatever_the_clocks_say(thread: EmailThread) -> None:
    first = MessageFactory(thread=thread, sent_at="2031-01-01T00:00Z", received_at="2031-01-01T00:00Z")
    second = MessageFactory(thread=thread, sent_at="1999-01-01T00:00Z", received_at="1999-01-01T00:00Z")
    current = MessageFactory(thread=thread)
    before = sources(current)
    answer(current)
    MessageFactory(thread=thread)
    assert sources(current) == before == labels(first, second)


def test_an_answer_to_a_mail_of_another_thread_stands_by_its_own_sequence(thread: EmailThread) -> None:
    elsewhere = MessageFactory()
    for _ in range(5):
        elsewhere = MessageFactory(thread=elsewhere.thread)
    first = MessageFactory(thread=thread)
    moved = OutboundFactory(thread=thread, answers=elsewhere)
    second = MessageFactory(thread=thread)
    current = MessageFactory(thread=thread)
    assert sources(current) == labels(first, moved, second)


@pytest.mark.parametrize("status", ["draft", "held", "failed", "discarded"])
def test_what_was_not_sent_is_not_history(status: str, thread: EmailThread) -> None:
    asked = MessageFactory(thread=thread)
    answer(asked, status=status)
    assert sources(MessageFactory(thread=thread)) == labels(asked)


def test_ignored_mail_is_not_history_and_neither_are_its_tools(thread: EmailThread) -> None:
    ToolUseFactory(run=RunFactory(message=MessageFactory(thread=thread, status="ignored")))
    assert history(MessageFactory(thread=thread)) == []


def test_empty_mails_are_skipped(thread: EmailThread) -> None:
    blank = {"readable_body": " \n", "subject": " "}
    MessageFactory(thread=thread, **blank)
    picture = AttachmentFactory(message=MessageFactory(thread=thread, **blank), filename="picture.png").message
    subject = MessageFactory(thread=thread, readable_body="", subject="Only a subject")
    answer(subject, readable_body="", subject="Re: Only a subject")
    file = AttachmentFactory(message=answer(picture, readable_body="")).message
    current = MessageFactory(thread=thread)
    assert sources(current) == labels(picture, file, subject)
    assert "picture.png" in history(current)[0].text
    assert "Only a subject" in history(current)[2].text


def test_files_are_listed_with_the_id_that_tools_accept(thread: EmailThread) -> None:
    mail = MessageFactory(thread=thread)
    files = [AttachmentFactory(message=mail, filename=name) for name in ("b.txt", "a.txt")]
    (turn,) = history(MessageFactory(thread=thread))
    assert turn.text == Message.objects.get(pk=mail.pk).to_llm_text()
    assert [str(file.public_id) in turn.text for file in files] == [True, True]


def test_nothing_prior_or_no_thread_says_nothing(thread: EmailThread) -> None:
    current = MessageFactory(thread=thread)
    resolver = ThreadHistoryResolver()
    assert resolver.resolve(Context(persona=thread.persona, message=current)) is None
    assert resolver.resolve(Context(persona=thread.persona)) is None
    pasted = Message(direction="inbound", from_address="ana@client.example")
    assert resolver.resolve(Context(persona=thread.persona, message=pasted)) is None


def test_a_pasted_mail_without_a_sequence_sees_its_whole_thread(thread: EmailThread) -> None:
    first = MessageFactory(thread=thread)
    said = answer(first)
    pasted = Message(thread=thread, persona=thread.persona, direction="inbound", from_address="ana@client.example")
    assert sources(pasted) == labels(first, said)


# The limit


def test_the_limit_keeps_the_most_recent(thread: EmailThread) -> None:
    mails = [MessageFactory(thread=thread) for _ in range(4)]
    said = answer(mails[1])
    current = MessageFactory(thread=thread)
    everything = labels(mails[0], mails[1], said, mails[2], mails[3])
    for limit in range(7):
        assert sources(current, limit=limit) == everything[max(0, 5 - limit) :]
    assert sources(current, limit=None) == everything
    for wrong in (-1, "3", 2.5, True):
        with pytest.raises(ValueError, match="limit"):
            ThreadHistoryResolver(limit=wrong)  # type: ignore[arg-type]


def test_fifty_by_default(thread: EmailThread) -> None:
    for _ in range(52):
        MessageFactory(thread=thread)
    assert len(history(MessageFactory(thread=thread))) == 50


# Exchanges


def test_an_exchange_reaches_up_to_and_with_an_answer(thread: EmailThread) -> None:
    first, second = MessageFactory(thread=thread), MessageFactory(thread=thread)
    use = ToolUseFactory(run=RunFactory(message=second))
    said = answer(second)
    more = OutboundFactory(thread=thread, origin="person")
    last = MessageFactory(thread=thread)
    items = traced(MessageFactory(thread=thread))
    assert [item.sources for item in items] == labels(first, second, (use,), use, said, more, last)
    assert [item.exchange for item in items] == [0, 0, 0, 0, 0, 1, 2]


# Cost


def test_the_number_of_queries_does_not_grow(thread: EmailThread) -> None:
    counts = []
    for size in (2, 12):
        for _ in range(size):
            mail = AttachmentFactory(message=MessageFactory(thread=thread)).message
            run = RunFactory(message=mail)
            ToolUseFactory.create_batch(1, run=run)
            answer(mail, run=run)
        current = MessageFactory(thread=thread)
        with CaptureQueriesContext(connection) as queries:
            history(current)
        counts.append(len(queries))
    assert counts == [3, 3]


def test_only_the_columns_it_uses_are_read(thread: EmailThread) -> None:
    mail = AttachmentFactory(message=MessageFactory(thread=thread)).message
    ToolUseFactory(run=RunFactory(message=mail))
    current = MessageFactory(thread=thread)
    with CaptureQueriesContext(connection) as queries:
        history(current)
    read = " ".join(query["sql"].split(" FROM ")[0] for query in queries)
    unused = ('message"."message_id', "text_body", "references", "reply_to", "warnings", "sha256", '"text"', '"file"')
    assert [column for column in unused if column in read] == []
    assert "readable_body" in read
