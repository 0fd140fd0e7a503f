"""Whatever a header is made of, the mail that leaves reads back as it was meant, and has no header beside."""

import email.policy
import re
from email import message_from_bytes
from typing import Any

import django
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from protege.exceptions import MailError
from protege.mail.composing import (
    Outgoing,
    compose,
    header_text,
    is_sendable,
    reply_subject,
    shortened_references,
)
from protege.mail.headers import Mailbox, is_address
from protege.mail.limits import NAME_LENGTH, SUBJECT_LENGTH
from protege.mail.parsing import parse

HEADERS = {
    "content-type", "mime-version", "subject", "from", "to", "cc", "date", "message-id", "in-reply-to", "references",
    "auto-submitted", "x-auto-response-suppress",
}  # fmt: skip

# Text at large, and text made of what header syntax is made of.
CRAFTED = st.text(st.sampled_from(list('ab \t\r\n\0"\\<>()@,;:=?_.ßÄ注🚲\u202e\u200b\ud800')), max_size=80)
SUFFIX = st.sampled_from(
    ["\r\nBcc: cora@rival.example", "=?utf-8?q?boss?=", '" <boss@client.example>, "', "\n\nbody", ""]
)
TEXT = st.builds(str.__add__, st.one_of(st.text(max_size=200), CRAFTED), SUFFIX)

LOCAL = st.one_of(st.from_regex(r"[a-z0-9!#$%&'*+/=?^_`{|}~.-]{1,30}", fullmatch=True), CRAFTED)
DOMAIN = st.sampled_from(["client.example", "a.b.client.example", "xn--bcher-kva.example", "client-1.example"])
ADDRESS = (
    st.builds("{}@{}".format, LOCAL, DOMAIN)
    .map(str.lower)
    .filter(lambda address: is_address(address) and is_sendable(address))
)
BOX = st.builds(Mailbox, TEXT, ADDRESS)
BOXES = st.lists(BOX, min_size=1, max_size=6, unique_by=lambda box: box.address)
ID = st.builds("<{}@{}>".format, st.from_regex(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,80}", fullmatch=True), DOMAIN)


def outgoing(**fields: Any) -> Outgoing:
    given = {
        "message_id": "<own@desk.example>",
        "from_": Mailbox("Helper", "helper@desk.example"),
        "to": [Mailbox("", "ana@client.example")],
        "subject": "Re: Hours",
        "text": "We are open.",
    }
    return Outgoing(**{**given, **fields})


def sent(**fields: Any) -> bytes:
    mail = compose(outgoing(**fields))
    # As Django's SMTP backend does it, before Django 6 and from then on.
    raw: bytes = (
        mail.message(policy=email.policy.SMTP).as_bytes()
        if django.VERSION >= (6,)
        else mail.message().as_bytes(linesep="\r\n")
    )
    names = {name.lower() for name, _ in message_from_bytes(raw).raw_items()}
    assert names <= HEADERS, "nothing has added a header"
    assert all(len(line) <= 998 for line in raw.split(b"\r\n")), "no line is too long for a mail server"
    return raw


def intended(box: Mailbox) -> Mailbox:
    return Mailbox(header_text(box.name, NAME_LENGTH), box.address)


@given(TEXT)
@example("=?utf-8?q?boss?=")
@example("Where is =?utf-8?b?w58=?= my order?" * 30)
@example("x" * 1_200)
@example("ß" * 1_200)
@settings(max_examples=100, deadline=None)
def test_subjects(subject: str) -> None:
    read = parse(sent(subject=reply_subject(subject)))
    assert read.subject == reply_subject(subject)
    assert read.subject.startswith("Re: ")
    assert len(read.subject) <= SUBJECT_LENGTH


@given(st.lists(BOX, min_size=1, max_size=6, unique_by=lambda box: box.address), st.lists(BOX, max_size=6), BOX)
@settings(max_examples=100, deadline=None)
def test_recipients(to: list[Mailbox], cc: list[Mailbox], sender: Mailbox) -> None:
    cc = list({box.address: box for box in reversed(cc)}.values())
    read = parse(sent(to=to, cc=cc, from_=sender))
    assert read.to == [intended(box) for box in to]
    assert read.cc == [intended(box) for box in cc]
    assert read.from_ == [intended(sender)]
    assert read.subject == "Re: Hours"


@given(ID, ID, st.lists(ID, max_size=40))
@settings(max_examples=200, deadline=None)
def test_ids(own: str, parent: str, references: list[str]) -> None:
    read = parse(sent(message_id=own, in_reply_to=parent, references=references))
    assert (read.message_id, read.in_reply_to) == (own, parent)
    assert read.references == shortened_references(references, parent)


@given(TEXT, TEXT)
@settings(max_examples=100, deadline=None)
def test_texts_and_files(text: str, filename: str) -> None:
    read = parse(
        sent(text=text, signature=text, attachments=[(filename, "text/plain", text.encode("utf-8", "replace"))])
    )
    assert [one.data for one in read.attachments] == [text.encode("utf-8", "replace")]
    assert not re.search(r"[\r\n\0/\\]", read.attachments[0].filename)
    assert (read.to, read.cc) == ([Mailbox("", "ana@client.example")], [])


@pytest.mark.parametrize(
    "name", ["=?utf-8?q?boss?=", "Ana =?utf-8?b?w58=?=", '"', "\\", "a, b", "(a)", "<x@y.example>", " "]
)
def test_names_that_look_like_syntax(name: str) -> None:
    assert parse(sent(to=[Mailbox(name, "ana@client.example")])).to == [intended(Mailbox(name, "ana@client.example"))]


@pytest.mark.parametrize(
    "address", ['"a>b"@client.example', '""@client.example', "grüße@client.example", "注@client.example"]
)
def test_addresses_that_would_become_others_are_refused(address: str) -> None:
    with pytest.raises(MailError) as caught:
        sent(to=[Mailbox("", "ana@client.example"), Mailbox("", address)])
    assert caught.value.code == "bad_address"
