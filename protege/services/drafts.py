"""Answers that wait for a person: read, edited, approved, discarded. One path for the admin, the API and the shell.

Each change locks the thread and is one conditional UPDATE of a row that is still a draft, so that two people who act at
the same moment act once.
"""

import logging
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from protege import conf
from protege.exceptions import DraftError, NotVisibleError, StaleDraftError
from protege.mail.limits import SUBJECT_LENGTH
from protege.principals import Principal, Scope
from protege.services.placing import REPLACED, let_out, lock
from protege.untrusted import one_line, storable
from threads.models import Direction, EmailThread, Message, MessageStatus, Origin
from threads.status import refresh_status

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

logger = logging.getLogger("protege.drafts")

STALE = "stale"
"""`last_code` of an edited draft beside which a newer answer has been written."""

DISCARDED = "discarded"
"""`last_code` of a draft that a person has thrown away."""


def pending(principal: Principal, scope: Scope) -> QuerySet[Message]:
    """The drafts that `principal` may see in `scope`, the oldest first; a missing identity raises `ScopeError`."""
    drafts = Message.objects.visible_to(principal, scope).filter(status=MessageStatus.DRAFT)
    return drafts.select_related("thread", "persona", "answers", "run").order_by("received_at", "pk")


def arrived_since(draft: Message) -> list[int]:
    """The ids of the messages of its thread that whoever wrote the draft had not read, in their order."""
    unread = Q(pk__gt=draft.pk)
    if draft.run is not None and draft.run.now is not None:
        unread |= Q(received_at__gte=draft.run.now)
    placed = Message.objects.filter(unread, thread=draft.thread_id, sequence__isnull=False)
    return list(placed.exclude(pk=draft.answers_id or 0).order_by("sequence").values_list("pk", flat=True))


def is_stale(draft: Message, revision: int) -> bool:
    """True when a draft does not know all of its thread, which is at `revision`, or a newer answer stands beside it."""
    known = draft.thread_revision
    return draft.last_code == STALE or (known is not None and known != revision)


def edit(
    message_id: int,
    *,
    body: str,
    subject: str | None = None,
    author: "AbstractBaseUser | None",
    seen_revision: int | None = None,
) -> Message:
    """Put other words into a draft; no newer answer replaces it from then on.

    With `seen_revision`, the thread's revision on the page that was edited, `StaleDraftError` is raised when
    something has happened since, another person's edit included.
    """
    if not body.strip():
        raise DraftError("A mail without text is not sent. Write one, or discard the draft.", code="empty_draft")
    text = storable(body).strip()
    changes: dict[str, Any] = {"text_body": text, "readable_body": text, "edited_at": Now(), "last_code": ""}
    if subject is not None:
        changes["subject"] = one_line(storable(subject), SUBJECT_LENGTH)
    with transaction.atomic():
        draft, thread = _locked(message_id)
        if seen_revision is not None:
            _refuse_stale(draft, thread, seen_revision)
        # The edit counts in the revision. What the draft does not know of stays as much as it was.
        EmailThread.objects.touch(thread.pk)
        _change(draft, **changes, thread_revision=F("thread_revision") + 1)
    return _done("edited", message_id, author)


def approve(message_id: int, *, author: "AbstractBaseUser | None", seen_revision: int | None = None) -> Message:
    """Send a draft; it gets its place in the thread now.

    When something arrived or changed since it was written, `StaleDraftError` says what and gives the revision:
    approving again with that as `seen_revision` sends. Of two who approve, the second gets a `DraftError`.
    """
    with transaction.atomic():
        draft, thread = _locked(message_id)
        if seen_revision is None and draft.last_code == STALE:
            raise StaleDraftError(arrived=arrived_since(draft), current=thread.revision)
        expected = draft.thread_revision if seen_revision is None else seen_revision
        if expected is not None:
            _refuse_stale(draft, thread, expected)
        sequence = EmailThread.objects.take_sequence(thread.pk)
        _change(draft, status=MessageStatus.QUEUED, sequence=sequence, next_attempt_at=None, last_code="")
        let_out(Message.objects.select_related("answers").get(pk=message_id))
        refresh_status(thread.pk)
    return _done("approved", message_id, author)


def discard(message_id: int, *, author: "AbstractBaseUser | None") -> Message:
    """Throw a draft away; the mail that it was to answer stays unanswered."""
    with transaction.atomic():
        draft, thread = _locked(message_id)
        _change(draft, status=MessageStatus.DISCARDED, last_code=DISCARDED)
        refresh_status(thread.pk)
    return _done("discarded", message_id, author)


def make_room(inbound: Message) -> Message | None:
    """Before a new answer to `inbound` is stored: a pending draft that nobody edited is discarded.

    An edited one is flagged stale and returned: a person is at work on it, and a mail has one live answer, so that the
    new one must give way.
    """
    lock(inbound.thread_id)
    draft = Message.objects.filter(answers=inbound, origin=Origin.ANSWER, status=MessageStatus.DRAFT).first()
    if draft is None:
        return None
    _replace(Message.objects.filter(pk=draft.pk))
    draft.refresh_from_db()
    return draft if draft.status == MessageStatus.DRAFT else None


def outdate(inbound: Message) -> None:
    """An answer to `inbound` has been written: it knows the earlier mails of its sender, and replaces their drafts.

    Where each mail has an answer of its own (`ON_NEW_MAIL`), nothing is replaced.
    """
    if conf.load().on_new_mail != "supersede":
        return
    earlier = Message.objects.filter(
        thread=inbound.thread_id,
        direction=Direction.INBOUND,
        from_address=inbound.from_address,
        sequence__lt=inbound.sequence,
    )
    _replace(Message.objects.filter(origin=Origin.ANSWER, answers__in=earlier))


def _replace(messages: QuerySet[Message]) -> None:
    waiting = messages.filter(status=MessageStatus.DRAFT)
    waiting.filter(edited_at__isnull=False).update(last_code=STALE)
    waiting.filter(edited_at__isnull=True).update(status=MessageStatus.DISCARDED, last_code=REPLACED)


def _locked(message_id: int) -> tuple[Message, EmailThread]:
    """The draft and its thread as they are now, changed by nobody else until the transaction ends."""
    thread_id = Message.objects.filter(pk=message_id).values_list("thread", flat=True).first()
    if thread_id is None:
        raise NotVisibleError("There is no such draft.")
    thread = lock(thread_id)
    return Message.objects.select_related("run").get(pk=message_id), thread


def _refuse_stale(draft: Message, thread: EmailThread, expected: int) -> None:
    if draft.status == MessageStatus.DRAFT and thread.revision != expected:
        raise StaleDraftError(arrived=arrived_since(draft), current=thread.revision)


def _change(draft: Message, **fields: Any) -> None:
    if Message.objects.filter(pk=draft.pk, status=MessageStatus.DRAFT).update(**fields) != 1:
        raise DraftError(f"Message {draft.pk} is no longer a draft. Reload it.", code="not_a_draft")


def _done(what: str, message_id: int, author: "AbstractBaseUser | None") -> Message:
    logger.info("draft %s was %s by user %s", message_id, what, author.pk if author is not None else None)
    return Message.objects.select_related("thread__persona", "answers", "run").get(pk=message_id)
