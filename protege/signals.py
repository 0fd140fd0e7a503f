"""What hosts may listen to. Each signal is sent after the transaction that made it true has committed."""

from django.dispatch import Signal

mail_received = Signal()
"""Sent with `message`: an inbound mail stands in its thread."""

run_finished = Signal()
"""Sent with `run`: a run has reached its end, whatever it is."""

draft_created = Signal()
"""Sent with `message`: an answer waits for a person."""

message_sent = Signal()
"""Sent with `message`: a mail was handed to the mail server."""
