import time

import pytest

from protege.mail.bounces import Bounce
from protege.mail.parsing import parse
from tests.mail.bouncing import OURS, PLAIN, REPORT, bounce
from tests.mails import mail


def read(raw: bytes, *, sender: str | None = None) -> Bounce:
    found = parse(raw, sender=sender).bounce
    assert found is not None
    return found


class TestA12:
    @pytest.mark.parametrize("returned", ["text/rfc822-headers", "message/rfc822"])
    def test_a_report_names_the_mail_and_whom_it_did_not_reach(self, returned: str) -> None:
        found = read(bounce(returned=returned))
        assert found.ids[0] == OURS
        assert found.failed == ("ana@client.example",)

    def test_so_does_a_note_in_plain_text(self) -> None:
        found = read(bounce(PLAIN))
        assert found.ids[0] == OURS
        assert found.failed == ("ana@client.example",)

    def test_a_note_whose_copy_alone_names_somebody(self) -> None:
        text = f"Delivery failed: 550 5.1.1 user unknown\n\nMessage-ID: {OURS}\nTo: ana@client.example\n"
        assert "ana@client.example" in read(mail(from_="postmaster@mx.example", text=text), sender="").failed

    @pytest.mark.parametrize("from_", ["MAILER-DAEMON", "Mail Delivery System <MAILER-DAEMON>", ""])
    def test_a_daemon_without_an_address(self, from_: str) -> None:
        assert read(mail(from_=from_, text="<ana@client.example>: 550 unknown user"), sender="").failed


class TestWhatIsNoFailure:
    @pytest.mark.parametrize(("action", "status"), [("delayed", "4.4.1"), ("failed", "4.4.7"), ("delivered", "2.0.0")])
    def test_a_report_of_something_else_has_nobody_who_failed(self, action: str, status: str) -> None:
        assert read(bounce(action=action, status=status)).failed == ()

    def test_nor_has_a_warning_in_plain_text(self) -> None:
        assert read(bounce(PLAIN, status="4.2.2")).failed == ()

    @pytest.mark.parametrize("text", ["See 10.5.1.1 and 5.1", "version 15.1.2", "Order 5501 for ana@client.example"])
    def test_other_numbers_are_no_status(self, text: str) -> None:
        assert read(mail(from_="mailer-daemon@mx.example", text=f"ana@client.example {text}")).failed == ()

    def test_a_person_who_forwards_a_report_asks_something(self) -> None:
        forwarded = [("bounce.eml", "text/plain", bounce())]
        assert parse(mail(files=forwarded)).bounce is None
        wrapped = (
            b"From: ana@client.example\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
            b"--c\r\n\r\nWhat is this?\r\n--c\r\nContent-Type: message/rfc822\r\n\r\n" + bounce() + b"\r\n--c--\r\n"
        )
        assert parse(wrapped).bounce is None

    def test_a_vacation_note_on_the_null_path_is_none(self) -> None:
        assert parse(mail(Auto_Submitted="auto-replied"), sender="").bounce is None


class TestCraftedNotes:
    @pytest.mark.parametrize("unit", ["a", "a@", "a@b.", "<a@b.c> ", "5.1.", "Message-ID: <"])
    def test_long_texts_take_no_time(self, unit: str) -> None:
        raw = b"From: MAILER-DAEMON@mx.example\r\n\r\n" + unit.encode() * 100_000
        started = time.perf_counter()
        read(raw, sender="")
        assert time.perf_counter() - started < 10

    def test_ids_and_recipients_are_bounded(self) -> None:
        text = "".join(f"<{number}@x.example> 5.1.1 " for number in range(1_000))
        found = read(mail(from_="mailer-daemon@mx.example", text=text))
        assert len(found.ids) <= 100
        assert len(found.failed) <= 100

    def test_a_report_without_its_parts(self) -> None:
        for cut in range(0, len(REPORT), 40):
            parse(bounce()[:cut], sender="")
