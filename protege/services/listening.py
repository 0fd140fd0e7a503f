"""Mail taken by SMTP or LMTP from a mail server beside us.

A mail is answered with 250 once it is committed, and not before. What may succeed later is answered with 4xx, so
that the mail server keeps the mail; what never will with 5xx, so that its sender is told.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import django.db
from django.core.mail.utils import DNS_NAME

from protege import conf
from protege.exceptions import MissingExtraError, describe
from protege.mail.parsing import ParsedMail
from protege.services import inbox, routing
from protege.untrusted import storable
from threads.models import InboundMail, InboundStatus

try:
    from aiosmtpd.lmtp import LMTP
    from aiosmtpd.smtp import SMTP, Envelope, Session
except ImportError as error:
    raise MissingExtraError("aiosmtpd", "smtp") from error

logger = logging.getLogger("protege.listening")

T = TypeVar("T")

WORKERS = 8
"""Mails that are stored and recorded at once; each has a database connection while it is."""

MAX_RECIPIENTS = 100
"""Each is a persona of ours; the number is RFC 5321's least (4.5.3.1.8)."""

LINE_LENGTH = 64 * 1024
"""Bytes of one line. RFC 5321 allows 1,000, and real mail does not keep to it."""

GRACE = 30.0
"""Seconds that mails in hand are given when the server stops."""

AWAY = "451 4.3.0 The mail could not be stored. Try again later."
NOBODY = "550 5.1.1 There is nobody at this address."
ONE_BY_ONE = "452 4.5.3 One recipient a transaction, because LMTP asks for one answer each."
TOO_MANY = "452 4.5.3 Too many recipients in one transaction."
TOO_LARGE = "552 5.3.4 The mail is too large."
TAKEN = "250 2.0.0 The mail is stored."


class Listener:
    """The server: `start`, then `stop`, both in one event loop; `host` and `port` are where it listens."""

    def __init__(self, *, lmtp: bool = False, tenant: str | None = None) -> None:
        self.lmtp = lmtp
        self.tenant = tenant
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="protege-smtp")
        self._busy: set[asyncio.Future[Any]] = set()
        self.connections: set[asyncio.BaseTransport] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen; an `OSError` says why not."""
        self._server = await asyncio.get_running_loop().create_server(self._protocol, host, port)
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        """Take no further connection, let the mails in hand be stored and answered, then hang up."""
        assert self._server is not None, "start comes first"
        self._server.close()
        if self._busy:
            await asyncio.wait(self._busy, timeout=GRACE)
            await asyncio.sleep(0.1)  # for the answers to leave
        for connection in list(self.connections):
            connection.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run what asks the database, in a thread with a connection of its own, which ends with the work."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, partial(_with_connection, work))
        self._busy.add(future)
        future.add_done_callback(self._busy.discard)
        return await future

    def _protocol(self) -> SMTP:
        kind = LmtpProtocol if self.lmtp else SmtpProtocol
        return kind(
            Handler(self),
            data_size_limit=conf.load().mail_size_limit,
            enable_SMTPUTF8=True,
            hostname=str(DNS_NAME),
            ident="Protege",
            loop=asyncio.get_running_loop(),
        )


class Handler:
    """What is answered to each command of one connection."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener

    async def handle_RCPT(  # noqa: N802 - the library calls it by this name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.listener.lmtp and envelope.rcpt_tos:
            return ONE_BY_ONE
        if len(envelope.rcpt_tos) >= MAX_RECIPIENTS:
            return TOO_MANY
        try:
            known = await self.listener.in_thread(partial(has_persona, address, tenant=self.listener.tenant))
        except Exception as error:  # whatever it is: the mail server keeps the mail and tries again
            return _later(error)
        if not known:
            return NOBODY
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        work = partial(
            inbox.receive,
            bytes(envelope.original_content or b""),
            recipients=list(envelope.rcpt_tos),
            sender=(envelope.mail_from or "").strip().removeprefix("<").removesuffix(">"),
            source="lmtp" if self.listener.lmtp else "smtp",
            tenant=self.listener.tenant,
        )
        try:
            return _answer(await self.listener.in_thread(work))
        except Exception as error:  # whatever it is: the mail server keeps the mail and tries again
            return _later(error)

    async def handle_exception(self, error: Exception) -> str:
        """The library would answer with the error's own text."""
        return _later(error)


class _Tracked(SMTP):
    """A connection that the listener can end."""

    line_length_limit = LINE_LENGTH
    event_handler: Handler

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.event_handler.listener.connections.add(transport)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self.transport is not None:
            self.event_handler.listener.connections.discard(self.transport)
        super().connection_lost(error)


class SmtpProtocol(_Tracked):
    pass


class LmtpProtocol(_Tracked, LMTP):
    pass


def has_persona(address: str, *, tenant: str | None) -> bool:
    """True when mail to this address reaches somebody, inside `tenant` when the door is bound to it."""
    envelope = InboundMail(recipients=[storable(address)], tenant=tenant or "")
    return bool(routing.personas_for(envelope, ParsedMail()))


def _with_connection(work: Callable[[], T]) -> T:
    django.db.close_old_connections()
    try:
        return work()
    finally:
        django.db.close_old_connections()


def _answer(deliveries: list[InboundMail]) -> str:
    if any(one.reason == "too_large" for one in deliveries):
        return TOO_LARGE
    if all(one.status == InboundStatus.UNROUTABLE for one in deliveries):
        return NOBODY  # the persona has gone between the two commands
    return TAKEN


def _later(error: Exception) -> str:
    """Whatever went wrong was on our side; the log line names the class of the error and nothing of the mail."""
    logger.error("a mail was put off: %s", describe(error))
    return AWAY
