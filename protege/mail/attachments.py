"""The files of a mail: their bytes, a name that is safe to show, and the type that the bytes themselves tell."""

import binascii
import hashlib
import mimetypes
import re
import unicodedata
from dataclasses import dataclass
from email.message import Message
from urllib.parse import unquote_to_bytes

from protege.mail import limits
from protege.mail.charsets import decode
from protege.mail.headers import decoded, raw_value
from protege.untrusted import cut, one_line, storable

_GENERIC = {"application/octet-stream", "application/binary", "application/x-download", "application/unknown", ""}
_SYNONYMS = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/x-ms-bmp": "image/bmp",
    "image/tif": "image/tiff",
    "application/x-pdf": "application/pdf",
    "application/x-zip-compressed": "application/zip",
    "application/ics": "text/calendar",
}
_MAGIC = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
]
_OFFICE = "application/vnd.openxmlformats-officedocument."
_ZIPPED = [
    (b"word/", f"{_OFFICE}wordprocessingml.document"),
    (b"xl/", f"{_OFFICE}spreadsheetml.sheet"),
    (b"ppt/", f"{_OFFICE}presentationml.presentation"),
]
_TOLD_BY_CONTENT = {kind for _, kind in [*_MAGIC, *_ZIPPED]} | {"image/webp", "image/bmp", "application/pdf"}
_TOLD_BY_CONTENT |= {"application/zip"}
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+_-]*/[a-z0-9][a-z0-9.+_-]*")
_TYPES = mimetypes.MimeTypes()  # the built-in table: the machine's own files would make the same mail differ
_EXTENSIONS = {"message/rfc822": ".eml", "text/calendar": ".ics", "image/jpeg": ".jpg", "text/plain": ".txt"}


@dataclass(frozen=True, slots=True)
class ParsedAttachment:
    """A file as it came; `filename` is for display only, `inline` says that the HTML refers to it."""

    filename: str
    content_type: str
    content_id: str
    inline: bool
    data: bytes
    damaged: bool = False

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def clean_filename(name: str) -> str:
    """The last path part of `name` in NFKC, on one line, at most 180 characters with its ending; may be empty."""
    name = one_line(unicodedata.normalize("NFKC", storable(name[:4_000])), 4_000)
    name = re.split(r"[/\\]", name)[-1].strip()
    if not name.strip(". "):
        return ""
    stem, dot, ending = name.rpartition(".")
    if len(name) <= limits.FILENAME_LENGTH:
        return name
    if not stem or len(ending) > 10:
        return cut(name, limits.FILENAME_LENGTH)
    return cut(stem, limits.FILENAME_LENGTH - len(ending) - 1) + dot + ending


def default_filename(content_type: str, number: int) -> str:
    """A name for a part that came without a usable one."""
    extension = _EXTENSIONS.get(content_type) or _TYPES.guess_extension(content_type) or ""
    kind = {"message/rfc822": "attached-mail", "text/calendar": "invitation"}.get(content_type)
    return f"{kind or ('picture' if content_type.startswith('image/') else 'attachment')}-{number}{extension}"


def declared_filename(part: Message) -> str:
    """The name that a part claims, decoded in all the ways in which software writes it, not cleaned yet."""
    for field, parameter in (("Content-Disposition", "filename"), ("Content-Type", "name")):
        value = _parameter(part, field, parameter)
        if value:
            return value
    return ""


def _parameter(part: Message, field: str, parameter: str) -> str:
    plain: Message = Message()
    plain[field] = raw_value(part, field)[:8_000]
    try:
        value = plain.get_param(parameter, header=field)
    except Exception:  # the standard parser on crafted parameters
        value = None
    if isinstance(value, tuple):
        charset, _, text = value
        # The standard parser unquotes to one character a byte; what is beyond stood there unquoted.
        wide = any(character > "\xff" for character in text)
        return storable(text) if wide else decode(text.encode("latin-1"), charset or "")
    if not isinstance(value, str):
        return _loose_parameter(plain, field, parameter)
    return decoded(value)


def _loose_parameter(plain: Message, field: str, parameter: str) -> str:
    """An RFC 2231 parameter that the standard parser does not put together."""
    found = re.search(rf"{parameter}\*0?\*?=\"?([\w-]*)'[^']*'([^;\"]+)", str(plain[field]), re.IGNORECASE)
    return decode(unquote_to_bytes(found[2]), found[1]) if found else ""


def content_type_of(data: bytes, declared: str, filename: str) -> str:
    """The media type: by the first bytes, else the declared one, else by the ending of the name."""
    declared = _declared(declared)
    by_content = _by_content(data, declared)
    if by_content:
        return by_content
    if declared in _GENERIC:
        guessed = _TYPES.guess_type(f"file{_ending(filename)}")[0] or ""
        # A type that its first bytes would have told is not believed from a name.
        return guessed if guessed and guessed not in _TOLD_BY_CONTENT else "application/octet-stream"
    return declared


def _declared(value: str) -> str:
    value = value.strip().lower()[: limits.CONTENT_TYPE_LENGTH]
    return _SYNONYMS.get(value, value) if _MEDIA_TYPE.fullmatch(value) else ""


def _by_content(data: bytes, declared: str) -> str:
    for magic, media_type in _MAGIC:
        if data.startswith(magic):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if b"%PDF-" in data[:1024] and (declared in _GENERIC or not declared.startswith("text/")):
        return "application/pdf"
    if data[:2] == b"BM" and data[6:10] == bytes(4):
        return "image/bmp"
    return _zipped(data, declared) if data[:4] in (b"PK\x03\x04", b"PK\x05\x06") else ""


def _zipped(data: bytes, declared: str) -> str:
    """Office files are archives; a declared type that says which kind is believed, a picture's is not."""
    names = data[:4_096] + data[-65_536:]
    for name, media_type in _ZIPPED:
        if b"[Content_Types].xml" in names and name in names:
            return media_type
    return declared if declared.startswith("application/") and declared not in _GENERIC else "application/zip"


def _ending(filename: str) -> str:
    return "." + filename.rpartition(".")[2].lower() if "." in filename else ""


def payload(part: Message) -> tuple[bytes, bool]:
    """The decoded bytes of a leaf part, and whether they are damaged."""
    encoding = raw_value(part, "Content-Transfer-Encoding").lower().split(";")[0].strip()
    try:
        if encoding == "base64":
            # The standard parser stops at the first padding, without a word.
            return decode_base64(str(part.get_payload()).encode("utf-8", "replace"))
        data = part.get_payload(decode=True)
    except Exception:  # uuencoded and quoted-printable text that is neither
        data = None
    return (data, False) if isinstance(data, bytes) else (b"", True)


def decode_base64(raw: bytes) -> tuple[bytes, bool]:
    """The bytes of Base64 text, and whether it was damaged; chunks that were padded one by one are joined."""
    compact = b"".join(raw.split())
    alphabet = re.sub(rb"[^A-Za-z0-9+/=]", b"", compact)
    chunks = [chunk for chunk in re.split(rb"=+", alphabet) if chunk]
    sound = len(alphabet) == len(compact) and len(chunks) <= 1 and len(alphabet) % 4 == 0
    return b"".join(_chunk(chunk) for chunk in chunks), not sound


def _chunk(chunk: bytes) -> bytes:
    usable = chunk[:-1] if len(chunk) % 4 == 1 else chunk
    return binascii.a2b_base64(usable + b"=" * (-len(usable) % 4))
