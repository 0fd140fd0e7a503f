"""Mail fetched from mailboxes by IMAP.

A mailbox is opened read-only and nothing in it is marked: how far it was read stands in `ImapCursor`, and moves past
a mail only once that mail is stored. So a mail may come twice, which its Message-ID absorbs, and never not at all.
"""

import imaplib
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from time import mktime
from typing import Any, TypeVar

from django.utils import timezone

from protege import conf
from protege.exceptions import ConfigurationError, MailError, MissingExtraError, describe
from protege.services import inbox
from threads.models import ImapCursor, InboundMail

logger = logging.getLogger("protege.fetching")

T = TypeVar("T")

TIMEOUT = 60
"""Seconds to wait for the server."""

CLOCK_MARGIN = timedelta(minutes=10)
"""How far the server's clock may be behind ours when its dates are all there is to go by."""

_SIZE = re.compile(rb"RFC822\.SIZE (\d+)")


class FetchError(MailError):
    """A mailbox that cannot be read now; what was fetched before stays."""

    code = "fetch_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An entry of `PROTEGE["IMAP_ACCOUNTS"]`."""

    label: str
    host: str
    user: str
    password_env: str
    port: int | None = None
    folder: str = "INBOX"
    tls: str = "tls"
    tenant: str | None = None
    recipients: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What the cursor stands for: another host, user or folder is another mailbox."""
        return f"{self.user}@{self.host}/{self.folder}"[:255]

    def password(self) -> str:
        password = os.environ.get(self.password_env, "")
        if not password:
            raise ConfigurationError(f"The account {self.label!r} has no password: set {self.password_env}.")
        return password


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """One mail that was stored."""

    uid: int
    deliveries: list[InboundMail]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Which mails to take, and where the cursor then stands; `steps`: it follows each mail."""

    uids: list[int]
    uid_validity: int
    last_uid: int
    steps: bool = True


def accounts() -> list[Account]:
    """All accounts of the settings."""
    entries = conf.load().imap_accounts
    return [
        Account(label=label, **{**entry, "recipients": tuple(entry.get("recipients", ()))})
        for label, entry in entries.items()
    ]


def fetch(account: Account, *, since: date | None = None) -> Iterator[Fetched]:
    """Take what is new in a mailbox, each mail as it is stored.

    The first time nothing is taken: from then on whatever arrives is. With `since` it is what arrived from that day
    on, at whatever age. A mail that cannot be processed is stored and stops no other. `FetchError`: the mailbox
    cannot be read; a database error: a mail could not be stored, and nothing after it was tried.
    """
    began = timezone.now()
    with _connected(account) as mailbox:
        plan = _guarded(account, lambda: _plan(mailbox, account, since))
        for uid in plan.uids:
            mail = _guarded(account, partial(_read, mailbox, uid))
            if mail is not None:
                yield Fetched(uid=uid, deliveries=_receive(account, mail, dated=since is None))
            if plan.steps:
                _move(account, plan, last_uid=uid)
    _move(account, plan, last_uid=max([plan.last_uid, *plan.uids]), fetched_at=began)


def _receive(account: Account, mail: "_Mail", *, dated: bool) -> list[InboundMail]:
    return inbox.receive(
        mail.raw,
        recipients=account.recipients,
        source=f"imap:{account.label}",
        tenant=account.tenant,
        reached_at=mail.reached_at if dated else None,
        fault=mail.fault,
    )


# The mailbox


@contextmanager
def _connected(account: Account) -> Iterator[Any]:
    """A mailbox, logged in."""
    password = account.password()
    mailbox = _guarded(account, lambda: _connection(account).login(account.user, password, initial_folder=None))
    try:
        yield mailbox
    finally:
        # A connection that has ended cannot say goodbye, which must not hide why.
        with suppress(_library().ImapToolsError, imaplib.IMAP4.error, OSError):
            mailbox.logout()


def _connection(account: Account) -> Any:
    library = _library()
    kinds = {"tls": library.MailBox, "starttls": library.MailBoxStartTls, "none": library.MailBoxUnencrypted}
    if account.tls not in kinds:
        raise ConfigurationError(f"The account {account.label!r} has an unknown tls: use one of {', '.join(kinds)}.")
    port = {"port": account.port} if account.port else {}
    return kinds[account.tls](account.host, timeout=TIMEOUT, **port)


def _library() -> Any:
    try:
        import imap_tools
    except ImportError as error:
        raise MissingExtraError("imap-tools", "imap") from error
    return imap_tools


def _guarded(account: Account, work: Callable[[], T]) -> T:
    """`work`, with whatever goes wrong between us and the server as a `FetchError`."""
    try:
        return work()
    except (_library().ImapToolsError, imaplib.IMAP4.error, OSError) as error:
        where = f"{account.user} at {account.host}, folder {account.folder}"
        raise FetchError(f"The account {account.label!r} ({where}) cannot be read: {error}") from error


def _plan(mailbox: Any, account: Account, since: date | None) -> _Plan:
    """Open the folder read-only and choose its mails."""
    state = mailbox.folder.status(account.folder, ["UIDVALIDITY", "UIDNEXT"])
    mailbox.folder.set(account.folder, readonly=True)
    cursor = ImapCursor.objects.filter(account=account.key).first()
    asked = set() if since is None else _since(mailbox, since)
    validity, newest = state["UIDVALIDITY"], state["UIDNEXT"] - 1
    if cursor is None:
        return _Plan(uids=sorted(asked), uid_validity=validity, last_uid=newest)
    if cursor.uid_validity != validity:
        uids = asked | _after_renumbering(mailbox, cursor)
        # Until all of it is stored, the old cursor with its date is what a next try has to go by.
        return _Plan(uids=sorted(uids), uid_validity=validity, last_uid=newest, steps=False)
    uids = asked | _after(mailbox, cursor.last_uid)
    return _Plan(uids=sorted(uids), uid_validity=validity, last_uid=cursor.last_uid)


def _after(mailbox: Any, last_uid: int) -> set[int]:
    """`5:*` names the last mail even when its UID is below 5 (RFC 3501, 6.4.8)."""
    return {uid for uid in _search(mailbox, f"UID {last_uid + 1}:*") if uid > last_uid}


def _after_renumbering(mailbox: Any, cursor: ImapCursor) -> set[int]:
    """All UIDs are new: only dates tell what came after the last fetch. What came before it may come again."""
    logger.warning("the IMAP cursor %s starts anew: the server has numbered the mailbox anew", cursor.pk)
    if cursor.fetched_at is None:
        return _search(mailbox, "ALL")
    oldest = cursor.fetched_at - CLOCK_MARGIN
    # A search knows days only, each in the server's own time zone.
    candidates = _since(mailbox, (oldest - timedelta(days=1)).date())
    return {uid for uid in candidates if (reached := _reached_at(mailbox, uid)) is None or reached >= oldest}


def _since(mailbox: Any, day: date) -> set[int]:
    return _search(mailbox, str(_library().AND(date_gte=day)))


def _search(mailbox: Any, criteria: str) -> set[int]:
    """Not by the library, which names a charset that some servers refuse."""
    status, answer = mailbox.client.uid("SEARCH", criteria)
    if status != "OK":
        raise imaplib.IMAP4.error(f"the server refuses to search: {status}")
    return {int(uid) for uid in (answer[0] or b"").split()}


# One mail


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mail:
    raw: bytes
    reached_at: datetime | None
    fault: str = ""


def _read(mailbox: Any, uid: int) -> _Mail | None:
    """A mail with the time at which it reached the server, or None when it is gone by now.

    Of one that is over the limit no more is read than shows it. One that the server does not hand over is kept as
    what is known of it, so that a person finds it and the mails behind it are not held up.
    """
    facts = b""
    try:
        facts, _ = _fetched(mailbox, uid, "INTERNALDATE RFC822.SIZE")
        there, raw = _fetched(mailbox, uid, _section(facts)) if facts else (b"", None)
    except imaplib.IMAP4.abort:  # the connection has ended, which says nothing about this mail
        raise
    except imaplib.IMAP4.error as error:
        logger.error("a mail of an IMAP mailbox cannot be read: %s", describe(error))
        there, raw = b"unreadable", None
    if not there:
        return None
    if raw is None:
        return _Mail(raw=b"X-Imap-Uid: %d\r\n\r\n" % uid, reached_at=_date_in(facts), fault="unreadable_at_server")
    return _Mail(raw=raw, reached_at=_date_in(facts))


def _section(facts: bytes) -> str:
    size, limit = _SIZE.search(facts), conf.load().mail_size_limit
    return f"BODY.PEEK[]<0.{limit + 1}>" if size and int(size[1]) > limit else "BODY.PEEK[]"


def _reached_at(mailbox: Any, uid: int) -> datetime | None:
    facts, _ = _fetched(mailbox, uid, "INTERNALDATE")
    return _date_in(facts)


def _fetched(mailbox: Any, uid: int, items: str) -> tuple[bytes, bytes | None]:
    """What the server says of a mail, and the literal in it. The library's own mails are parsed, not the bytes."""
    status, answer = mailbox.client.uid("FETCH", str(uid), f"(UID {items})")
    if status != "OK":
        raise imaplib.IMAP4.error(f"the server refuses to fetch: {status}")
    mine = re.compile(rb"\bUID %d\b" % uid)
    facts, literal = b"", None
    for item in answer:
        told = item[0] if isinstance(item, tuple) else item or b""
        if isinstance(item, tuple):
            literal = item[1]
        facts += told + b" "
    return (facts, literal) if mine.search(facts) else (b"", None)


def _date_in(facts: bytes) -> datetime | None:
    local = imaplib.Internaldate2tuple(facts)
    return datetime.fromtimestamp(mktime(local), tz=UTC) if local else None


# The cursor


def _move(account: Account, plan: _Plan, *, last_uid: int, fetched_at: datetime | None = None) -> None:
    """Forward only, unless the mailbox was numbered anew: of two fetches at once, none sets the other back."""
    cursor, _ = ImapCursor.objects.get_or_create(
        account=account.key, defaults={"uid_validity": plan.uid_validity, "last_uid": last_uid}
    )
    rows = ImapCursor.objects.filter(pk=cursor.pk)
    rows.exclude(uid_validity=plan.uid_validity).update(uid_validity=plan.uid_validity, last_uid=last_uid)
    rows.filter(last_uid__lt=last_uid).update(last_uid=last_uid)
    if fetched_at is not None:
        rows.update(fetched_at=fetched_at)
