import time
from email import message_from_string

import pytest

from protege.mail.authentication import Authentication, authenticate, is_aligned, marked_as_spam
from protege.mail.parsing import parse

VERIFIED, FAILED, NOTHING = Authentication(verified=True), Authentication(dmarc_failed=True), Authentication()


def verdict(*fields: str, sender: str = "ana@client.example", ids: tuple[str, ...] = ("mx.desk.example",)) -> object:
    return authenticate(fields, authserv_ids=ids, from_address=sender)


class TestVerdict:
    @pytest.mark.parametrize(
        "results",
        [
            "dmarc=pass header.from=client.example",
            "dmarc=pass (p=reject dis=none)",
            "dkim=pass header.d=client.example",
            "dkim=pass header.i=@mail.client.example",
            "spf=pass smtp.mailfrom=bounces@mail.client.example",
            "spf=pass smtp.mailfrom=client.example",
            "dkim=fail header.d=client.example; spf=pass smtp.mailfrom=<ana@client.example>",
            "DKIM = Pass Header.D = Client.Example",
            "dkim=pass header.d=lists.example; dkim=pass header.d=client.example",
            "dmarc=none; dkim=pass header.d=client.example",
            'dkim=pass reason="good; really" header.d=client.example (2048-bit key; unprotected)',
        ],
    )
    def test_the_domain_of_the_sender_stands_behind_it(self, results: str) -> None:
        assert verdict(f"mx.desk.example; {results}") == VERIFIED

    @pytest.mark.parametrize(
        "results",
        [
            "none",
            "dkim=pass header.d=rival.example",
            "dkim=pass",
            "dkim=fail header.d=client.example",
            "spf=pass smtp.mailfrom=rival.example",
            "spf=pass smtp.helo=client.example",
            "spf=softfail smtp.mailfrom=client.example",
            "dmarc=pass header.from=rival.example",
            "dmarc=bestguesspass header.from=client.example",
            "dkim=pass header.d=notclient.example",
            "dkim=pass header.d=example",
            "auth=pass smtp.auth=ana@client.example",
        ],
    )
    def test_nothing_else_does(self, results: str) -> None:
        assert verdict(f"mx.desk.example; {results}") == NOTHING

    def test_a_failed_dmarc_outweighs_whatever_passed(self) -> None:
        assert verdict("mx.desk.example; dkim=pass header.d=client.example; dmarc=fail") == FAILED

    def test_only_listed_servers_are_believed(self) -> None:
        assert verdict("mx.rival.example; dmarc=pass") == NOTHING
        assert verdict("mx.desk.example; dmarc=pass", ids=()) == NOTHING

    def test_only_the_topmost_of_a_listed_server_counts(self) -> None:
        ours, forged = "mx.desk.example 1; dmarc=fail", "mx.desk.example; dmarc=pass"
        assert verdict("mx.other.example; dmarc=pass", ours, forged) == FAILED

    def test_without_a_sender_nobody_is_verified(self) -> None:
        assert verdict("mx.desk.example; dmarc=pass", sender="") == NOTHING


class TestCraftedFields:
    @pytest.mark.parametrize(
        "results",
        [
            'spf=pass smtp.mailfrom="a; dmarc=pass"@rival.example',
            'spf=pass smtp.mailfrom="a\\"; dmarc=pass; x=\\""@rival.example',
            "spf=pass (rival; dmarc=pass) smtp.mailfrom=rival.example",
            "spf=pass (rival (a); dkim=pass header.d=client.example) smtp.mailfrom=rival.example",
            'spf=pass smtp.mailfrom="open@rival.example; dmarc=pass',
            "spf=pass (open; dmarc=pass",
            "spf=pass ); dmarc=pass",
        ],
    )
    def test_what_a_sender_chose_writes_no_result(self, results: str) -> None:
        assert verdict(f"mx.desk.example; {results}") == NOTHING

    @pytest.mark.parametrize("unit", ["(", '"', "a=", "dkim=pass ", "\\", ";"])
    def test_a_long_field_verifies_nothing_and_takes_no_time(self, unit: str) -> None:
        started = time.perf_counter()
        assert verdict("mx.desk.example; dmarc=pass; " + unit * 100_000) == NOTHING
        assert time.perf_counter() - started < 10


class TestAlignment:
    @pytest.mark.parametrize(
        ("domain", "from_domain"),
        [
            ("client.example", "client.example"),
            ("Mail.Client.Example.", "client.example"),
            ("client.example", "news.client.example"),
            ("xn--mnchen-3ya.example", "münchen.example"),
        ],
    )
    def test_equal_domains_and_those_below(self, domain: str, from_domain: str) -> None:
        assert is_aligned(domain, from_domain)

    @pytest.mark.parametrize(
        ("domain", "from_domain"),
        [("", "client.example"), ("", ""), ("example", "client.example"), ("a.client.example", "b.client.example")],
    )
    def test_others_are_not_aligned(self, domain: str, from_domain: str) -> None:
        assert not is_aligned(domain, from_domain)


@pytest.mark.parametrize(
    ("field", "marked"),
    [
        ("X-Spam-Flag: YES", True),
        ("X-Spam-Status: Yes, score=9.1 required=5.0", True),
        ("X-Spam: yes", True),
        ("X-Spam-Flag: NO", False),
        ("X-Spam-Status: No, score=0.1", False),
        ("X-Spam-Level: ****", False),
    ],
)
def test_marks_of_spam_filters(field: str, marked: bool) -> None:
    assert marked_as_spam(message_from_string(f"{field}\n\n")) is marked


def test_a_parsed_mail_holds_the_fields_from_the_top() -> None:
    mail = parse(b"Authentication-Results: a;\r\n spf=pass\r\nAuthentication-Results: b\r\nX-Spam-Flag: YES\r\n\r\nHi")
    assert mail.authentication_results == ["a; spf=pass", "b"]
    assert mail.spam
