"""The built-in tools come in by the door that hosts use."""

from protege.tools import read_attachment, send_email  # noqa: F401
