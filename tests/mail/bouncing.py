"""Notes of failure as mail servers write them (case A12)."""

from typing import Any

OURS = "<answer@desk.example>"

REPORT = """\
Return-Path: <>
From: MAILER-DAEMON@mx.client.example
To: <>
Subject: Undelivered Mail Returned to Sender
Message-ID: <bounce-{number}@mx.client.example>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

Your message could not be delivered to {recipient}.

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.client.example

Final-Recipient: rfc822; {recipient}
Action: {action}
Status: {status}
Diagnostic-Code: smtp; 550 {status} no such user

--b
Content-Type: {returned}

Message-ID: {ours}
From: helper@desk.example
To: {recipient}
Subject: Re: Where is my order?

--b--
"""

PLAIN = """\
Return-Path: <>
From: MAILER-DAEMON@mx.client.example
To: <>
Subject: failure notice
Message-ID: <bounce-{number}@mx.client.example>

Hi. This is the mail system at mx.client.example.
I was not able to deliver your message to these addresses.

<{recipient}>:
Sorry, no mailbox here by that name. (#{status})

--- Below this line is a copy of the message.

Return-Path: <helper@desk.example>
Message-ID: {ours}
From: Helper <helper@desk.example>
To: {recipient}, ben@client.example
Subject: Re: Where is my order?

It is on its way.
"""


def bounce(form: str = REPORT, **facts: Any) -> bytes:
    """A note of failure about the mail `ours` to `recipient`."""
    known = {
        "ours": OURS,
        "recipient": "ana@client.example",
        "action": "failed",
        "status": "5.1.1",
        "returned": "text/rfc822-headers",
        "number": 1,
    }
    return form.format(**{**known, **facts}).encode()
