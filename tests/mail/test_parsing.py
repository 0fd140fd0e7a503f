import random
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protege.mail import limits
from protege.mail.parsing import ParsedMail, attached_mail_text, parse
from tests.mail.samples import all_names, parsed, raw

MUTANTS = 20_000


def names(mail: ParsedMail) -> list[str]:
    return [one.filename for one in mail.attachments]


def test_a_plain_question_is_read() -> None:
    mail = parsed("plain_question")
    assert mail.subject == "Opening hours"
    assert mail.message_id == "<CAF+q1=plain-question@mail.client.example>"
    assert mail.has_own_id
    assert "at about ten o’clock." in mail.text_body
    assert mail.warnings == []
    assert mail.automatic is None
    assert mail.list_id is None


def test_a_reply_names_its_thread() -> None:
    mail = parsed("followup_reply")
    assert mail.in_reply_to == "<answer-1@desk.example>"
    assert mail.references == ["<CAF+q1=plain-question@mail.client.example>", "<answer-1@desk.example>"]


def test_html_mail_with_a_pdf_has_text_and_file() -> None:
    mail = parsed("html_with_pdf")
    assert "My café paid 100 € already." in mail.text_body
    assert "MsoNormal" not in mail.text_body
    (pdf,) = mail.attachments
    assert (pdf.filename, pdf.content_type, pdf.inline, pdf.damaged) == (
        "Invoice 77.pdf",
        "application/pdf",
        False,
        False,
    )
    assert pdf.data.endswith(b"%%EOF\n")
    assert pdf.size == len(pdf.data)
    assert len(pdf.sha256) == 64


@pytest.mark.parametrize(
    ("name", "text"),
    [("a01_misspelt_charset", "Grüße aus Graz"), ("a01_iso_8859_8_i", "שלום"), ("a01_charset_1", "Grüße")],
)
def test_a01_unknown_charset(name: str, text: str) -> None:
    mail = parsed(name)
    assert mail.text_body == text
    assert "unknown_charset" in mail.warnings


@pytest.mark.parametrize(
    "label", ["undefined", "idna", "punycode", "unicode_escape", "rot13", "hex", "\x00", "x" * 999]
)
def test_a01_codecs_that_are_no_charsets_are_not_used(label: str) -> None:
    mail = parse(f"From: a@b.example\r\nContent-Type: text/plain; charset={label}\r\n\r\nab \\u0041 é".encode())
    assert mail.text_body == "ab \\u0041 é"


def test_a04_the_substitute_id_comes_from_stable_content() -> None:
    first = b"From: scanner@client.example\r\nSubject: Scan\r\n\r\nPage 1\r\n"
    again = b"Received: from x\r\nDelivered-To: helper@desk.example\r\n" + first.replace(b"\r\n", b"\n")
    other = first.replace(b"Page 1", b"Page 2")
    assert parse(first).message_id == parse(again).message_id != parse(other).message_id
    assert parse(first).message_id.endswith("@id.invalid>")
    assert not parse(first).has_own_id


@pytest.mark.parametrize("blank", ["", "<>", "  < > "])
def test_a04_a_blank_id_is_none(blank: str) -> None:
    assert not parse(f"From: a@b.example\r\nMessage-ID: {blank}\r\n\r\nx".encode()).has_own_id


def test_a14_the_topmost_delivery_line_is_read() -> None:
    head = b"X-Original-To: helper@desk.example\r\nReceived: from x\r\nDelivered-To: forged@other.example\r\n"
    assert parse(head + b"To: undisclosed-recipients:;\r\n\r\nx").delivered_to == ["helper@desk.example"]


def test_a21_text_on_both_sides_of_a_picture_is_kept() -> None:
    assert parsed("a21a_text_picture_text").text_body == (
        "Here is the screen:\n\n[picture: screen.png]\n\nWhy is the total wrong?"
    )
    assert parsed("a21a_picture_first").text_body == "[picture: screen.png]\n\nWhy is the total wrong?"


def test_a21_a_blank_plain_part_gives_way_to_the_html() -> None:
    assert parsed("a21b_blank_plain").text_body == "When does the parcel arrive?"


@pytest.mark.parametrize("name", ["a24_attached_mail", "a24_attached_mail_inline"])
def test_a24_an_attached_mail_is_a_file_beside_its_cover_note(name: str) -> None:
    mail = parsed(name)
    assert mail.text_body == "please check the attached complaint"
    (inner,) = mail.attachments
    assert inner.content_type == "message/rfc822"
    assert inner.filename.endswith(".eml")
    text = attached_mail_text(inner.data)
    assert "From: dana@client.example" in text.replace("Dana <dana@client.example>", "dana@client.example")
    assert "Subject: Complaint about the door" in text
    assert "The door is red, not blue." in text
    assert "photo.pdf" in text


def test_a25_a_calendar_mail_says_what_when_where_and_who() -> None:
    text = parsed("a25a_calendar").text_body
    for piece in (
        "Planning of the new door",
        "2026-02-10 14:00 Europe/Vienna",
        "Room 5, second floor",
        "ana@client.example",
    ):
        assert piece in text
    assert "VEVENT" not in text
    assert "Reminder" not in text


@pytest.mark.parametrize("name", ["a25b_opaque_smime", "a25d_winmail"])
def test_a25_what_cannot_be_read_is_said(name: str) -> None:
    assert "cannot be read here" in parsed(name).text_body
    assert len(parsed(name).attachments) == 1


def test_a25_a_signed_mail_is_read_as_usual() -> None:
    assert parsed("a25c_multipart_signed").text_body == "Is this signature in order?"
    assert parsed("a25c_multipart_signed").attachments == []


def test_a26_names_are_cleaned_for_display() -> None:
    found = names(parsed("a26_attachment_names"))
    assert found[:5] == ["14.pdf", "x.txt", "x.txt", "attachment-4.bin", "attachment-5.bin"]
    assert len(found[5]) == limits.FILENAME_LENGTH
    assert found[5].endswith(".pdf")
    assert found[6:] == ["invoicefdp.exe", "two lines.txt", "Grüße.txt", "Wölb.jpg", "attachment-11.bin"]


def test_a27_only_what_the_html_shows_is_inline() -> None:
    mail = parsed("a27_inline_pictures")
    assert [(one.content_type, one.inline) for one in mail.attachments] == [
        ("image/png", True),
        ("image/jpeg", False),
        ("application/pdf", False),
    ]
    assert "See the papers." in mail.text_body


@pytest.mark.parametrize("delimiter", [b"--==77--==", b"--===77--=="])
def test_a28_an_unquoted_boundary_loses_no_text(delimiter: bytes) -> None:
    mail = parse(raw("a28a_unquoted_boundary").replace(b"--==77--==", delimiter))
    assert "Is the boundary broken?" in mail.text_body
    assert names(mail) == ["note.txt"]
    assert "broken_mime" in mail.warnings


def test_a28_stacked_base64_is_joined_and_marked() -> None:
    (attachment,) = parsed("a28b_stacked_base64").attachments
    assert (attachment.data, attachment.damaged) == (b"0123456789abcdefghij", True)


def test_a28_a_missing_end_is_no_loss() -> None:
    assert parsed("a28c_no_closing_boundary").text_body == "The end is missing."


def test_a28_a_part_behind_a_damaged_delimiter_is_not_lost() -> None:
    damaged = raw("a28b_stacked_base64").replace(b"--b1", b"-:b1", 1)
    assert "Two chunks." in parse(damaged).text_body
    assert "broken_mime" in parse(damaged).warnings
    polite = raw("a28b_stacked_base64").replace(b"--b1", b"This is a multi-part message in MIME format.\r\n--b1", 1)
    assert parse(polite).text_body == "Two chunks."


def test_b10_the_type_is_told_by_the_bytes() -> None:
    mail = parse(
        raw("a27_inline_pictures").replace(b"Content-Type: image/png", b'Content-Type: image/jpg; name="scan.jpg"')
    )
    assert mail.attachments[0].content_type == "image/png"


def test_a_subject_over_its_column_is_cut_with_a_warning() -> None:
    mail = parse(b"From: a@b.example\r\nSubject: " + b"x" * 5_000 + b"\r\n\r\ny")
    assert len(mail.subject) == limits.SUBJECT_LENGTH
    assert "subject_cut" in mail.warnings


def test_limits_cut_and_say_so() -> None:
    too_long = parse(b"From: a@b.example\r\n" + b"X-Trace: y\r\n" * 5_000 + b"Subject: kept\r\n\r\ntext")
    assert too_long.subject == "kept"
    assert "headers_cut" in too_long.warnings
    assert too_long.text_body == "text"
    large = parse(b"From: a@b.example\r\nSubject: big\r\n\r\n" + b"x" * (limits.MAX_RAW_BYTES + 1))
    assert large.subject == "big"
    assert "too_large" in large.warnings
    assert large.text_body == ""
    text = parse(b"From: a@b.example\r\n\r\n" + b"x" * (limits.MAX_TEXT_BYTES + 1))
    assert len(text.text_body) == limits.MAX_TEXT_BYTES
    assert "text_cut" in text.warnings
    part = b"--b\r\nContent-Type: application/octet-stream\r\n\r\nx\r\n"
    many = parse(b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n' + part * 600)
    assert len(many.attachments) == limits.MAX_ATTACHMENTS
    assert "too_many_attachments" in many.warnings


def test_nesting_without_end_raises_nothing() -> None:
    levels = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\r\n\r\n--b%d\r\n' % (level, level) for level in range(1_500)
    )
    assert isinstance(parse(b"From: a@b.example\r\n" + levels + b"\r\ntext"), ParsedMail)


def test_odd_input_gives_a_mail() -> None:
    for source in (b"", b"\0", b"\n\n\n", b"From ana Tue\nFrom: a@b.example\n\nx", b"\xff\xfe" * 50, b": \r\n\r\n"):
        assert isinstance(parse(source), ParsedMail)


def check(mail: ParsedMail) -> None:
    """What holds for every mail: storable texts, aware dates, an id, columns that fit."""
    boxes = [*mail.from_, *mail.to, *mail.cc, *mail.reply_to]
    texts = [mail.subject, mail.message_id, mail.in_reply_to, mail.text_body, mail.html_body, mail.list_id or ""]
    texts += [*mail.references, *mail.delivered_to, *(text for box in boxes for text in (box.name, box.address))]
    texts += [text for one in mail.attachments for text in (one.filename, one.content_type, one.content_id)]
    for text in texts:
        text.encode("utf-8")
        assert "\0" not in text
    assert isinstance(mail.date, datetime | None)
    assert mail.date is None or mail.date.utcoffset() is not None
    assert 0 < len(mail.message_id) <= limits.MESSAGE_ID_LENGTH
    assert len(mail.subject) <= limits.SUBJECT_LENGTH
    assert all(one.filename and len(one.filename) <= limits.FILENAME_LENGTH for one in mail.attachments)


def mutated(source: bytes, rng: random.Random) -> bytes:
    """`source` with a few bytes changed, and a stretch doubled, dropped or moved."""
    data = bytearray(source)
    for _ in range(rng.randint(1, 12)):
        data[rng.randrange(len(data))] = rng.choice(b'\0\r\n:;=<>()"-@?% \xff\xc3\x80A')
    start, end = sorted(rng.randrange(len(data)) for _ in range(2))
    end = min(end, start + 300)
    stretch, kind = bytes(data[start:end]), rng.randrange(4)
    if kind == 0:
        del data[start:end]
    elif kind == 1:
        data[start:start] = stretch
    elif kind == 2:
        del data[start:end]
        at = rng.randrange(len(data) + 1)
        data[at:at] = stretch
    return bytes(data)


def test_no_mutant_raises() -> None:
    rng = random.Random(20260203)
    sources = [raw(name) for name in all_names()]
    for number in range(MUTANTS):
        check(parse(mutated(sources[number % len(sources)], rng), sender=rng.choice([None, "", "ana@client.example"])))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(
    st.lists(st.sampled_from(["From", "To", "Subject", "Date", "Message-ID", "Content-Type", "References"])),
    st.binary(),
)
def test_no_header_value_raises(fields: list[str], value: bytes) -> None:
    head = b"".join(field.encode() + b": " + value.replace(b"\n", b"\n ") + b"\r\n" for field in fields)
    check(parse(head + b"\r\n" + value))
