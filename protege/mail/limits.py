"""How much of one mail is read. Whatever goes over a limit is cut or left out, and a code says so."""

MAX_RAW_BYTES = 35 * 1024 * 1024
MAX_HEADER_BYTES = 256 * 1024
MAX_HEADER_LINES = 1_000
MAX_HEADER_VALUE = 16 * 1024
"""Characters of one unstructured header that are decoded: the standard parser is quadratic in this length."""

MAX_PARTS = 500
MAX_NESTING = 20
MAX_ATTACHED_MAIL_DEPTH = 3
MAX_ADDRESSES = 500
MAX_REFERENCES = 100
MAX_TEXT_BYTES = 1024 * 1024
MAX_READABLE = 200_000
MAX_ATTACHMENTS = 100

SUBJECT_LENGTH = 998
MESSAGE_ID_LENGTH = 255
ADDRESS_LENGTH = 254
NAME_LENGTH = 200
FILENAME_LENGTH = 180
CONTENT_TYPE_LENGTH = 100
CONTENT_ID_LENGTH = 255

REFERENCES_BYTES = 998
"""A header line may not be longer (RFC 5322, 2.1.1)."""
