from datetime import UTC, datetime
from email import message_from_bytes
from email.message import Message

import pytest

from protege.mail import limits
from protege.mail.headers import (
    Mailbox,
    automatic_reason,
    date_of,
    header,
    is_address,
    list_id,
    mailboxes,
    message_ids,
)
from tests.mail.samples import parsed


def mail(*lines: str) -> Message:
    return message_from_bytes("\r\n".join([*lines, "", "text"]).encode())


def test_mailbox_goes_through_its_stored_form() -> None:
    box = Mailbox("Ana", "ANA@Client.Example")
    assert box.to_dict() == {"name": "Ana", "address": "ana@client.example"}
    assert Mailbox.from_dict(box.to_dict()) == box


def test_a15_a_comma_in_an_encoded_name_is_no_second_sender() -> None:
    assert parsed("a15_encoded_comma").from_ == [Mailbox("Moßner, Ana", "ana@client.example")]


def test_a15_an_address_in_an_encoded_name_is_not_the_sender() -> None:
    assert [box.address for box in parsed("a15_encoded_address").from_] == ["cora@rival.example"]


@pytest.mark.parametrize(
    "value",
    [
        '"<boss@client.example>" <cora@rival.example>',
        "boss@client.example <cora@rival.example>",
        "boss@client.example <Cora@rival.example> (Cora)",
        "(<boss@client.example>,) Cora <cora@rival.example>",
        "=?utf-8?B?Ym9zc0BjbGllbnQuZXhhbXBsZSwg?= <cora@rival.example>",
    ],
)
def test_a15_the_bracketed_address_is_the_sender(value: str) -> None:
    assert [box.address for box in mailboxes(mail(f"From: {value}"), "From")] == ["cora@rival.example"]


def test_a14_groups_give_their_members_and_undisclosed_recipients_none() -> None:
    assert mailboxes(mail("To: undisclosed-recipients:;"), "To") == []
    members = mailboxes(mail("To: Team: a@b.example, d@e.example;, g@h.example"), "To")
    assert [box.address for box in members] == ["a@b.example", "d@e.example", "g@h.example"]


def test_several_from_fields_are_all_seen_and_each_address_once() -> None:
    found = mailboxes(mail("From: ana@client.example", "From: Cora <cora@rival.example>, ANA@client.example"), "From")
    assert [box.address for box in found] == ["ana@client.example", "cora@rival.example"]


@pytest.mark.parametrize("value", ["=?utf-8?q?a=40b=2Eexample?=", "MAILER-DAEMON", "<>", "", "a b@", "(" * 20_000])
def test_what_is_no_address_gives_no_mailbox(value: str) -> None:
    assert mailboxes(mail(f"From: {value}"), "From") == []


def test_one_broken_address_spoils_no_other() -> None:
    found = mailboxes(mail("To: broken@@x, ana@client.example; ben@client.example"), "To")
    assert [box.address for box in found] == ["ana@client.example", "ben@client.example"]


def test_at_most_500_addresses_are_read() -> None:
    many = ", ".join(f"p{number}@client.example" for number in range(700))
    assert len(mailboxes(mail(f"To: {many}"), "To")) == limits.MAX_ADDRESSES


def test_an_address_over_the_column_is_refused_not_cut() -> None:
    assert not is_address("a" * 250 + "@client.example")
    assert not is_address("ana@client.example\nBcc: x@y.example")


def test_a01_an_unknown_charset_in_a_subject_is_decoded_or_replaced() -> None:
    assert parsed("a01_subject_windows_874").subject == "สวัสดี"
    assert header(mail("Subject: =?x-nonsense?Q?A=A1?= end"), "Subject").endswith("end")


def test_a_character_cut_between_two_encoded_words_is_whole_again() -> None:
    assert header(mail("Subject: =?utf-8?Q?Gr=C3?=", " =?utf-8?Q?=BC=C3=9Fe?="), "Subject") == "Grüße"


@pytest.mark.parametrize(
    "words",
    [
        ("=?utf-8?b?R3LDvMOf?=", "=?utf-8?b?ZSBhbg==?="),
        ("=?utf-8?b?R3I=?=", "=?utf-8?q?=C3=BC=C3=9Fe_an?="),
        ("=?utf-8?q?Gr=C3?=", "=?utf-8?b?vMOfZSBhbg==?="),
    ],
)
def test_no_blank_stands_between_the_encoded_words_of_a_name(words: tuple[str, str]) -> None:
    assert mailboxes(mail(f"To: {words[0]}", f" {words[1]} <ana@client.example>"), "To")[0].name == "Grüße an"


def test_a_broken_encoded_word_is_left_alone() -> None:
    value = "=?utf-8?b?R3LDv?= =?utf-8?b?!?= <ana@client.example>"
    assert [box.address for box in mailboxes(mail(f"To: {value}"), "To")] == ["ana@client.example"]


def test_raw_utf_8_in_a_header_is_read() -> None:
    assert header(mail("Subject: Grüße"), "Subject") == "Grüße"


def test_a_header_is_one_line_without_control_characters() -> None:
    assert header(mail("Subject: =?utf-8?Q?a=0D=0ABcc:_x=00?="), "Subject") == "a Bcc: x\ufffd"


def test_brackets_without_end_raise_nothing() -> None:
    assert header(mail("Subject: " + "(" * 20_000), "Subject")


def test_ids_are_taken_out_of_folding_blanks_and_comments() -> None:
    text = '(see <One@a.example>)  <two\r\n @b.example> "x" <> < > <One@a.example>'
    assert message_ids(text) == ["<One@a.example>", "<two@b.example>"]
    assert message_ids("bare@client.example") == ["<bare@client.example>"]
    assert message_ids("") == message_ids("<>") == message_ids("no id") == []


def test_an_id_over_the_column_becomes_a_stable_substitute() -> None:
    long = f"<{'x' * 300}@client.example>"
    assert message_ids(long) == message_ids(f" {long} (again)")
    assert message_ids(long)[0].endswith("@id.invalid>")
    assert len(message_ids(long)[0]) <= limits.MESSAGE_ID_LENGTH


@pytest.mark.parametrize("variant", ["a_impossible", "b_junk", "c_none", "e_offset", "f_us"])
def test_a19_an_unusable_date_is_none(variant: str) -> None:
    assert parsed(f"a19{variant}").date is None


def test_a19_a_zone_of_minus_zero_is_aware() -> None:
    assert parsed("a19d_minus_zero").date == datetime(2026, 2, 3, 9, tzinfo=UTC)


@pytest.mark.parametrize("value", ["Mon, 01 Jan 1900 00:00:00 +0900", "Fri, 31 Dec 9999 23:59:59 -0900"])
def test_a19_a_year_that_no_calendar_converts_is_none(value: str) -> None:
    assert date_of(mail(f"Date: {value}")) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Auto-Submitted: auto-replied", "auto_submitted"),
        ("Auto-Submitted: auto-generated (cron); x=y", "auto_submitted"),
        ("Auto-Submitted: no", None),
        ("Auto-Submitted: No (really)", None),
        ("Precedence: bulk", "precedence"),
        ("Precedence: Junk", "precedence"),
        ("Precedence: list", None),
        ("Precedence: first-class", None),
        ("X-Autoreply: yes", "x_autoreply"),
        ("X-Autorespond: yes", "x_autoreply"),
        ("X-Auto-Response-Suppress: All", None),
        ("Return-Path: <>", "null_return_path"),
        ("Content-Type: multipart/report; report-type=delivery-status", "report"),
    ],
)
def test_a10_automatic_mail_is_told_by_its_marks(line: str, reason: str | None) -> None:
    assert automatic_reason(mail("From: ana@client.example", line), "ana@client.example") == reason


@pytest.mark.parametrize(
    ("sender", "reason"),
    [
        ("no-reply-8372@client.example", "no_reply"),
        ("DoNotReply@client.example", "no_reply"),
        ("billing.noreply+x@client.example", "no_reply"),
        ("MAILER-DAEMON@mx.client.example", "mailer_daemon"),
        ("MAILER-DAEMON (Mail Delivery System)", "mailer_daemon"),
        ("casino.reply@client.example", None),
        ("ana@noreply.example", None),
    ],
)
def test_a10_a12_automatic_mail_is_told_by_its_sender(sender: str, reason: str | None) -> None:
    assert automatic_reason(mail(f"From: {sender}"), None) == reason


def test_a12_the_null_path_of_the_envelope_is_enough() -> None:
    assert automatic_reason(mail("From: ana@client.example"), "") == "null_return_path"


def test_list_marks_are_told_apart_from_automatic_ones() -> None:
    assert list_id(mail("List-Id: Team <Team.Client.Example>")) == "team.client.example"
    assert list_id(mail("Precedence: list")) == "unnamed"
    assert list_id(mail("Subject: x")) is None
