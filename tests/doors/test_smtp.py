"""Mail taken by SMTP and LMTP, over real connections."""

import asyncio
import os
import re
import signal
import smtplib
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from django.core import mail as django_mail
from django.core.management import call_command

from personas.models import Persona
from protege.services.listening import MAX_RECIPIENTS, Listener
from tests.doors.cases import ANA, HELPER, DoorContract, crlf_mail
from tests.factories import PersonaFactory
from threads.models import InboundMail, Message, RawMail, Run

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def listening(*, lmtp: bool = False, tenant: str | None = None) -> Iterator[Listener]:
    """A server in a thread of its own, stopped as the command stops it."""
    listener, started, finished = Listener(lmtp=lmtp, tenant=tenant), Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        await listener.start("127.0.0.1", 0)
        started.set()
        await finished.wait()
        await listener.stop()

    thread = Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield listener
    finally:
        loops[0].call_soon_threadsafe(finished.set)
        thread.join(20)
        assert not thread.is_alive()


def connect(listener: Listener) -> smtplib.SMTP:
    kind = smtplib.LMTP if listener.lmtp else smtplib.SMTP
    return kind("127.0.0.1", listener.port, timeout=20)


def code_of(answer: tuple[int, bytes]) -> int:
    return answer[0]


@pytest.fixture
def helper() -> Persona:
    return PersonaFactory(slug="helper", address=HELPER, reply_mode="off")


@pytest.fixture
def smtp() -> Iterator[smtplib.SMTP]:
    """A connection that has said hello."""
    with listening() as listener, connect(listener) as client:
        client.ehlo()
        yield client


class ListeningContract(DoorContract):
    keeps_unroutable = False
    lmtp = False

    def deliver(
        self, raw: bytes, *, to: Sequence[str] = (HELPER,), sender: str = ANA, tenant: str | None = None
    ) -> None:
        with listening(lmtp=self.lmtp, tenant=tenant) as listener, connect(listener) as client:
            for recipients in self.transactions(to):
                client.sendmail(sender, recipients, raw)

    def transactions(self, to: Sequence[str]) -> list[Sequence[str]]:
        return [to]

    @contextmanager
    def _refused(self) -> Iterator[None]:
        with pytest.raises(smtplib.SMTPRecipientsRefused) as caught:
            yield
        assert [code for code, _ in caught.value.recipients.values()] == [550]

    def refusal(self) -> AbstractContextManager[Any]:
        return self._refused()


class TestSmtp(ListeningContract):
    source = "smtp"


class TestLmtp(ListeningContract):
    source = "lmtp"
    lmtp = True

    def transactions(self, to: Sequence[str]) -> list[Sequence[str]]:
        return [[address] for address in to]

    def test_a_second_recipient_waits_for_a_transaction_of_its_own(self, helper: Persona) -> None:
        PersonaFactory(slug="billing", address="billing@desk.example", reply_mode="off")
        with listening(lmtp=True) as listener, connect(listener) as client:
            refused = client.sendmail(ANA, [HELPER, "billing@desk.example"], crlf_mail())
        assert [code for code, _ in refused.values()] == [452]
        assert Message.objects.get().persona == helper

    def test_smtps_greeting_is_unknown(self) -> None:
        with listening(lmtp=True) as listener, connect(listener) as client:
            assert code_of(client.docmd("EHLO", "client.example")) == 500


class TestAnswers:
    def test_250_comes_after_the_commit(self, helper: Persona, smtp: smtplib.SMTP) -> None:
        smtp.sendmail(ANA, [HELPER], crlf_mail())
        assert Message.objects.get().persona == helper

    def test_some_of_the_recipients_are_unknown(self, helper: Persona, smtp: smtplib.SMTP) -> None:
        refused = smtp.sendmail(ANA, ["nobody@desk.example", HELPER], crlf_mail())
        assert {address: code for address, (code, _) in refused.items()} == {"nobody@desk.example": 550}
        assert InboundMail.objects.get().recipients == [HELPER]

    def test_the_advertised_size_is_the_limit(self, helper: Persona, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "MAIL_SIZE_LIMIT": 3_000}
        with listening() as listener, connect(listener) as client:
            client.ehlo()
            assert client.esmtp_features["size"] == "3000"
            with pytest.raises(smtplib.SMTPSenderRefused) as caught:
                client.sendmail(ANA, [HELPER], crlf_mail(text="x" * 4_000))
            assert caught.value.smtp_code == 552
            client.sendmail(ANA, [HELPER], crlf_mail())
        assert Message.objects.count() == 1

    def test_a_size_that_was_not_said_is_refused_after_the_data(self, helper: Persona, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "MAIL_SIZE_LIMIT": 3_000}
        with listening() as listener, connect(listener) as client:
            client.ehlo()
            assert code_of(client.mail(ANA)) == code_of(client.rcpt(HELPER)) == 250
            assert code_of(client.data(crlf_mail(text="x\n" * 4_000))) == 552
        assert not Message.objects.exists()

    def test_a_limit_that_was_lowered_meanwhile(self, helper: Persona, smtp: smtplib.SMTP, settings: Any) -> None:
        settings.PROTEGE = {**settings.PROTEGE, "MAIL_SIZE_LIMIT": 1_000}
        with pytest.raises(smtplib.SMTPDataError, match="552"):
            smtp.sendmail(ANA, [HELPER], crlf_mail(text="x\n" * 1_000))
        assert InboundMail.objects.get().reason == "too_large"

    def test_too_many_recipients(self, helper: Persona, smtp: smtplib.SMTP) -> None:
        smtp.mail(ANA)
        codes = [code_of(smtp.rcpt(HELPER)) for _ in range(MAX_RECIPIENTS + 1)]
        assert (set(codes[:-1]), codes[-1]) == ({250}, 452)

    def test_long_lines_and_odd_addresses_pass(self, helper: Persona, smtp: smtplib.SMTP) -> None:
        raw = crlf_mail().replace(b"Where is order 77?", b"x" * 20_000)
        smtp.sendmail(ANA, [HELPER], raw)
        assert RawMail.objects.get().unpack() == raw
        assert code_of(smtp.docmd("MAIL", "FROM:<ana@client.example>")) == 250
        smtp.send(b"RCPT TO:<hel\xffper@desk.example>\r\n")
        assert code_of(smtp.getreply()) == 550

    def test_a_dot_alone_does_not_end_another_mail(self, helper: Persona, smtp: smtplib.SMTP) -> None:
        """Line ends that are no CRLF must not let a second mail hide in the first (SMTP smuggling)."""
        smtp.mail(ANA)
        smtp.rcpt(HELPER)
        smtp.docmd("DATA")
        smtp.send(crlf_mail() + b"\n.\nMAIL FROM:<x@y.example>\r\n.\r\n")
        assert code_of(smtp.getreply()) == 250
        assert InboundMail.objects.count() == 1

    def test_a_connection_that_ends_within_the_mail_leaves_nothing(self, helper: Persona) -> None:
        with listening() as listener:
            client = connect(listener)
            client.ehlo()
            client.mail(ANA)
            client.rcpt(HELPER)
            client.docmd("DATA")
            client.send(crlf_mail())
            client.close()
        assert not InboundMail.objects.exists()


class TestManyAtOnce:
    def test_a08_one_mail_over_8_connections_is_one_message(self, helper: Persona) -> None:
        Persona.objects.update(reply_mode="auto")

        def send(number: int) -> None:
            with connect(listener) as client:
                client.sendmail(ANA, [HELPER], crlf_mail())

        with listening() as listener, ThreadPoolExecutor(8) as pool:
            list(pool.map(send, range(8)))
        statuses = sorted(InboundMail.objects.values_list("status", flat=True))
        assert statuses == ["duplicate"] * 7 + ["processed"]
        assert Message.objects.filter(direction="inbound").count() == 1
        assert Run.objects.count() == 1
        assert len(django_mail.outbox) == 1

    def test_mails_of_8_connections_all_arrive(self, helper: Persona) -> None:
        def send(number: int) -> None:
            with connect(listener) as client:
                for part in range(3):
                    client.sendmail(ANA, [HELPER], crlf_mail(message_id=f"<{number}.{part}@client.example>"))

        with listening() as listener, ThreadPoolExecutor(8) as pool:
            list(pool.map(send, range(8)))
        assert Message.objects.count() == 24
        assert set(InboundMail.objects.values_list("status", flat=True)) == {"processed"}

    def test_who_idles_holds_up_nobody_and_no_stop(self, helper: Persona) -> None:
        with listening() as listener:
            idle = [socket.create_connection(("127.0.0.1", listener.port), timeout=20) for _ in range(20)]
            with connect(listener) as client:
                client.sendmail(ANA, [HELPER], crlf_mail())
        for one in idle:
            assert one.recv(100).startswith(b"220 ")
            assert one.recv(100) == b""
            one.close()
        assert Message.objects.count() == 1


class TestCommand:
    """The command as a process of its own, over a database without tables."""

    @pytest.fixture
    def process(self, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
        environment = {
            **os.environ, "DJANGO_SETTINGS_MODULE": "protege.settings", "SECRET_KEY": "x" * 60,
            "DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3",
        }  # fmt: skip
        command = [sys.executable, "manage.py", "serve_smtp", "--port", "0"]
        with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdout=-1, stderr=-1) as one:
            yield one
            one.kill()

    def test_4xx_without_the_database_and_a_clean_end(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        found = re.fullmatch(r"Listening for SMTP at 127.0.0.1:(\d+). SIGTERM stops it.\n", process.stdout.readline())
        assert found is not None
        with smtplib.SMTP("127.0.0.1", int(found[1]), timeout=20) as client:
            client.ehlo()
            client.mail("secret-sender@client.example")
            code, text = client.rcpt("secret-recipient@desk.example")
            assert (code, text) == (451, b"4.3.0 The mail could not be stored. Try again later.")
            process.send_signal(signal.SIGTERM)
            said, logged = process.communicate(timeout=20)
        assert (process.returncode, said) == (0, "Stopped.\n")
        assert "a mail was put off: OperationalError" in logged
        assert "secret" not in logged

    def test_a_port_that_is_taken(self) -> None:
        with listening() as listener:
            ran = subprocess.run(
                [sys.executable, "manage.py", "serve_smtp", "--port", str(listener.port)],
                cwd=ROOT, env={**os.environ, "SECRET_KEY": "x" * 60, "DJANGO_SETTINGS_MODULE": "protege.settings"},
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
        assert ran.returncode == 1
        assert "cannot be listened at" in ran.stderr

    def test_its_help_needs_no_extra(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            call_command("serve_smtp", "--help")
        assert "lmtp_destination_recipient_limit" in capsys.readouterr().out
