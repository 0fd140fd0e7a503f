import time

import pytest

from protege.mail import limits
from protege.mail.quotes import QUOTE_LABEL
from protege.mail.text import html_to_text, readable
from tests.mail.samples import parsed

ANSWER = "Hello Ana,\n\nwe are open from **nine to one** on Saturdays, so ten o’clock is fine.\n\n-- \nHelper"


def test_a22_only_what_is_seen_becomes_text() -> None:
    text = parsed("a22_hidden_html").text_body
    assert text.splitlines()[0] == "Hi & bye"
    for unseen in ("COUPON", "PREHEADER", "SECRET", "track", "color", "base64", "&amp;"):
        assert unseen not in text


@pytest.mark.parametrize(
    "hidden",
    [
        "<div style='DISPLAY : NONE !important'>X1</div>",
        "<p style='font-size:0'>X1</p>",
        "<div style='max-height:0px;overflow:hidden'>X1</div>",
        "<span style='visibility:hidden'>X1</span>",
        "<div style='mso-hide:all'>X1</div>",
        "<div style='position:absolute;left:-9999px'>X1</div>",
        "<div hidden=''>X1</div>",
        "<!-- X1 -->",
        "<style>.a{} .h, #i {display:none}</style><p class='b h'>X1</p>",
        "<svg><text>X1</text></svg>",
        "<input type=hidden value=X1>",
    ],
)
def test_a22_hidden_text_of_every_kind_is_left_out(hidden: str) -> None:
    assert html_to_text(f"<p>before</p>{hidden}<p>after</p>").split() == ["before", "after"]


@pytest.mark.parametrize(
    "shown",
    [
        "<td style='font-size:0px'><div style='font-size:13px'>text</div></td>",
        "<style>@media (max-width:9px) {.m {display:none}}</style><p class=m>text</p>",
        "<p style='max-height:10px'>text</p>",
        "<p style='opacity:0.9'>text</p>",
        "<?xml version='1.0' encoding='latin-1'?><html><body>text</body></html>",
        "text",
    ],
)
def test_a22_visible_text_stays(shown: str) -> None:
    assert html_to_text(f"<table><tr>{shown}</tr></table>" if shown.startswith("<td") else shown).strip() == "text"


def test_a22_deep_nesting_falls_back_to_stripped_tags() -> None:
    text = html_to_text(
        "<div>" * 5_000 + "<style>p{}</style><b style='display:none'>NO</b>a &amp; b" + "</div>" * 5_000
    )
    assert text.strip() == "a & b"


def test_a_picture_of_the_mail_leaves_its_name_and_a_remote_one_nothing() -> None:
    html = '<p>a<img src="cid:x%40y">b<img src="https://track.example/1.gif" alt="counter"></p>'
    assert html_to_text(html, {"x@y": "plan.png"}) == "a[picture: plan.png]b"


def test_quoted_blocks_of_html_are_marked() -> None:
    html = (
        "<div>New</div><div>On 3 Feb 2026 Helper wrote:</div><blockquote>Old<blockquote>Older</blockquote></blockquote>"
    )
    assert [line for line in html_to_text(html).splitlines() if line.strip("> ")][-2:] == ["> Old", ">> Older"]


def test_a_reply_loses_the_quote_that_the_thread_holds() -> None:
    assert readable(parsed("followup_reply").text_body, thread_texts=[ANSWER]) == (
        "Thank you. And on public holidays?\n\nAna"
    )


def test_a23_answers_between_quotes_are_kept_with_what_they_answer() -> None:
    body = parsed("a23a_answers_between_quotes").text_body
    held = "Which colour would you like\nfor the door? And how many pieces do you need?"
    text = readable(body, thread_texts=[held])
    assert text.index("Which colour") < text.index("Blue.") < text.index("how many") < text.index("Three, please.")
    assert QUOTE_LABEL not in text
    first_contact = readable(body, thread_texts=[])
    assert first_contact.count(QUOTE_LABEL) == 2
    assert "Blue." in first_contact
    assert "> Which colour" in first_contact


def test_a23_a_quote_that_nobody_stored_is_kept_and_labelled() -> None:
    text = readable(parsed("a23b_unknown_newsletter").text_body, thread_texts=[ANSWER])
    assert text.startswith("This is wrong, isn't it?\n\n[Quoted text:]\nAm Mo., 2. Feb.")
    assert "All bicycles cost 10 euros on Friday." in text


def test_a23_a_forward_with_an_empty_top_is_kept_and_labelled() -> None:
    text = readable(parsed("a23b_forward_empty_top").text_body, thread_texts=[])
    assert text.startswith(QUOTE_LABEL)
    assert "The lorry comes on Thursday." in text
    assert "From: Ben" in text


def test_a23_ten_rounds_of_known_quotes_leave_only_what_is_new() -> None:
    thread = [
        text
        for number in range(1, 11)
        for text in (
            f"What about the sky on day {number}, please?",
            f"Hello Ana,\nanswer number {number} is that the sky is blue on day {number}.",
        )
    ]
    assert readable(parsed("a23c_ten_rounds").text_body, thread_texts=thread) == "Thanks, and the day after?"


def test_a23_the_block_of_fields_of_outlook_is_a_quote() -> None:
    held = "Hello Ana,\nanswer number 1 is that the sky is blue on day 1."
    assert readable(parsed("a23c_outlook_reply").text_body, thread_texts=[held]) == (
        "Clear, thank you. One more: is it raining in Graz?"
    )


def test_a23_a_quote_with_one_changed_word_is_not_held() -> None:
    text = readable(
        "Please do.\n\n> Pay 900 euros to the account of Cora.", thread_texts=["Pay 100 euros to the account of Cora."]
    )
    assert "900" in text
    assert QUOTE_LABEL in text


def test_a23_a_body_of_nothing_but_known_quotes_is_given_whole() -> None:
    assert (
        readable("> Hello there, dear friend", thread_texts=["Hello there, dear friend"])
        == "> Hello there, dear friend"
    )
    assert readable("", thread_texts=[]) == readable(" \n", thread_texts=[]).strip() == ""


@pytest.mark.parametrize(
    "attribution",
    [
        "On Tue, 3 Feb 2026 at 09:05, Helper <helper@desk.example> wrote:",
        "On Tue, 3 Feb 2026 at 09:05, Helper\n<helper@desk.example> wrote:",
        "Am 03.02.2026 um 09:05 schrieb Helper <helper@desk.example>:",
        "Le mar. 3 févr. 2026 à 09:05, Helper <helper@desk.example> a écrit :",
        "El mar, 3 feb 2026 a las 9:05, Helper (<helper@desk.example>) escribió:",
        "-----Original Message-----\nFrom: Helper\nSent: 3 February 2026\nTo: Ana\nSubject: Hours",
        "-----Ursprüngliche Nachricht-----\nVon: Helper\nGesendet: 3. Februar 2026\nAn: Ana\nBetreff: Hours",
        "*From:* Helper <helper@desk.example>\n*Sent:* 3 February 2026\n*To:* Ana\n*Subject:* Hours",
        "Begin forwarded message:\n\nFrom: Helper\nSubject: Hours\nDate: 3 February 2026\nTo: Ana",
    ],
)
@pytest.mark.parametrize("mark", ["> ", ""])
def test_a23_attributions_of_many_programs_go_with_their_quote(attribution: str, mark: str) -> None:
    quote = "\n".join(mark + line for line in ANSWER.splitlines())
    assert readable(f"Thanks!\n\n{attribution}\n\n{quote}\n", thread_texts=[ANSWER]) == "Thanks!"


def test_a_sentence_of_ones_own_with_a_colon_is_no_quote() -> None:
    body = "My boss wrote:\nplease pay.\nFrom: the office\nwith love"
    assert readable(body, thread_texts=[]) == body


@pytest.mark.parametrize(
    "piece", ["> " * 30, "On 1 wrote:\n", "From: a\nTo: b\nDate: c\n", "On 1 @ ", "_" * 50, "\n> a\nb"]
)
def test_time_is_linear_in_crafted_text(piece: str) -> None:
    body = piece * (400_000 // len(piece))
    started = time.monotonic()
    text = readable(body, thread_texts=[body])
    assert time.monotonic() - started < 30
    assert len(text) <= limits.MAX_READABLE
