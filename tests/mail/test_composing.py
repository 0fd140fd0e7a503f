from datetime import UTC, datetime
from email import message_from_bytes
from email.message import Message
from typing import Any

import pytest

from protege.exceptions import MailError
from protege.mail.composing import (
    QUOTE_LENGTH,
    Outgoing,
    Quote,
    compose,
    html_text,
    new_message_id,
    plain_text,
    reply_subject,
    shortened_references,
)
from protege.mail.headers import Mailbox, mailboxes, message_ids, raw_value
from protege.mail.parsing import parse

ANA = Mailbox("Moßner, Ana", "ana@client.example")


def outgoing(**changes: Any) -> Outgoing:
    values: dict[str, Any] = {
        "message_id": "<own@desk.example>",
        "from_": Mailbox("Helper", "helper@desk.example"),
        "to": [ANA],
        "subject": "Re: Hours",
        "text": "We are **open**.",
    }
    return Outgoing(**{**values, **changes})


def sent(**changes: Any) -> Message:
    """The mail as its bytes would be read by somebody else."""
    return message_from_bytes(compose(outgoing(**changes)).message().as_bytes())


def test_a_mail_reads_back_as_it_was_meant() -> None:
    mail = compose(
        outgoing(
            cc=[Mailbox("", "ben@client.example")],
            signature="Helper\nDesk",
            in_reply_to="<q@client.example>",
            references=["<p@client.example>"],
            attachments=[("Grüße.pdf", "application/pdf", b"%PDF-1.4 x")],
        )
    )
    read = parse(mail.message().as_bytes())
    assert (read.to, read.cc) == ([ANA], [Mailbox("", "ben@client.example")])
    assert read.message_id == "<own@desk.example>"
    assert read.in_reply_to == "<q@client.example>"
    assert read.references == ["<p@client.example>", "<q@client.example>"]
    assert read.text_body == "We are **open**.\n\n--\nHelper\nDesk"
    assert [one.filename for one in read.attachments] == ["Grüße.pdf"]
    assert mail.body.endswith("\n\n-- \nHelper\nDesk")


def test_a10_our_mail_says_that_a_machine_wrote_it() -> None:
    assert sent()["Auto-Submitted"] == "auto-replied"
    assert sent()["X-Auto-Response-Suppress"] == "All"
    assert sent(auto="auto-generated")["Auto-Submitted"] == "auto-generated"
    with pytest.raises(ValueError, match="auto-replied"):
        outgoing(auto="no")


EVIL = "x\r\nBcc: cora@rival.example\n\nbody\x00"


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": EVIL},
        {"to": [Mailbox(EVIL, "ana@client.example")]},
        {"from_": Mailbox(f'"{EVIL}\\', "helper@desk.example")},
        {"in_reply_to": f"<{EVIL}@a.example>"},
        {"references": [f"<{EVIL}@a.example>"]},
        {"attachments": [(EVIL, EVIL, b"data")]},
        {"signature": EVIL, "text": EVIL},
    ],
)
def test_no_value_adds_a_header(changes: dict[str, Any]) -> None:
    mail = sent(**changes)
    assert mail["Bcc"] is None
    assert [box.address for box in mailboxes(mail, "To")] == ["ana@client.example"]
    assert [box.address for box in mailboxes(mail, "From")] == ["helper@desk.example"]


@pytest.mark.parametrize("address", ["ana@client.example\nBcc: x@y.example", "a@b.example, c@d.example", "nobody", ""])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(MailError) as caught:
        compose(outgoing(to=[Mailbox("", address)]))
    assert caught.value.code == "bad_address"


@pytest.mark.parametrize(
    ("subject", "answer"),
    [
        ("Hours", "Re: Hours"),
        ("Re: Hours", "Re: Hours"),
        ("RE: AW: Re[2]: Hours", "Re: Hours"),
        ("Regarding: Hours", "Re: Regarding: Hours"),
        ("two\r\nlines", "Re: two lines"),
        ("", "Re: (no subject)"),
    ],
)
def test_the_mark_of_a_reply_stands_once(subject: str, answer: str) -> None:
    assert reply_subject(subject) == answer


def test_html_has_no_pictures_no_scripts_and_only_safe_links() -> None:
    html = html_text(
        "**b** [ok](https://a.example) [m](mailto:a@b.example) [no](javascript:alert(1)) ![plan](https://t.example/x.gif)\n\n"
        "<script>x</script><img src=x>\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "<b>Helper</b>",
    )
    assert "<strong>b</strong>" in html
    assert 'href="https://a.example"' in html
    assert "mailto:a@b.example" in html
    assert "<table>" in html
    assert "plan" in html
    assert "&lt;b&gt;Helper" in html
    for unsafe in ("<img", "<script", 'href="javascript', "x.gif"):
        assert unsafe not in html


QUOTE = Quote(ANA, datetime(2026, 3, 2, 8, 0, tzinfo=UTC), "Where is <b>order 77</b>?\r\n\r\n> Hello\n")
SAID = "On 2026-03-02 08:00 UTC, Moßner, Ana <ana@client.example> wrote:"


def test_the_quoted_mail_stands_last_and_marks_each_line() -> None:
    text = plain_text("Soon.", "Helper", QUOTE)
    assert text == f"Soon.\n\n-- \nHelper\n\n{SAID}\n> Where is <b>order 77</b>?\n>\n>> Hello"


def test_the_quoted_mail_is_text_in_the_html_too() -> None:
    html = html_text("Soon.", "", QUOTE)
    assert html.endswith("<blockquote>Where is &lt;b&gt;order 77&lt;/b&gt;?<br><br>&gt; Hello</blockquote>")


def test_a_long_mail_is_quoted_in_part() -> None:
    text = plain_text("Soon.", "", Quote(ANA, QUOTE.date, "word " * 10_000))
    assert text.endswith("\n> [...]")
    assert len(text) < QUOTE_LENGTH + 200


def test_deeply_nested_markdown_is_sent_all_the_same() -> None:
    assert "end" in html_text("> " * 3_000 + "end")


def test_references_keep_the_first_and_the_newest_within_a_line() -> None:
    many = [f"<{'x' * 60}{number}@client.example>" for number in range(50)]
    short = shortened_references(many, "<parent@client.example>")
    assert short[0] == many[0]
    assert short[-1] == "<parent@client.example>"
    assert short[-2] == many[-1]
    assert len("References: " + " ".join(short)) <= 998
    assert message_ids(raw_value(sent(references=many), "References")) == shortened_references(many)


def test_long_ids_leave_whole() -> None:
    long = f"<{'y' * 200}@client.example>"
    assert message_ids(raw_value(sent(in_reply_to=long), "In-Reply-To")) == [long]


def test_own_ids_are_random_and_belong_to_the_domain() -> None:
    first, second = new_message_id("Desk.Example"), new_message_id("Desk.Example")
    assert first != second
    assert first.endswith("@desk.example>")
    assert len(first) == len("<@desk.example>") + 32
    assert new_message_id("bad domain>\n").endswith("@localhost.invalid>")


def test_attachments_of_any_declared_type_are_attached() -> None:
    for kind in ("message/rfc822", "multipart/mixed", "text/plain", "nonsense", ""):
        mail = parse(compose(outgoing(attachments=[("f", kind, b"\xff\xfe\x00binary")])).message().as_bytes())
        assert len(mail.attachments) == 1
