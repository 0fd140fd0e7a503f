"""What providers post for a mail, in forms of their own; which providers there are stands in `providers`.

Where a provider gives the mail as it came, that is what is stored and read. Else its payload is, and django-anymail,
which knows the forms of the providers, makes a mail of it when it is read.
"""

import json
from collections.abc import Mapping, Sequence
from email.encoders import encode_base64
from email.message import EmailMessage
from email.policy import SMTPUTF8
from email.utils import getaddresses
from functools import cached_property
from importlib import import_module
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpRequest, QueryDict
from django.utils.datastructures import MultiValueDict

from protege.exceptions import MailError, MissingExtraError
from protege.mail.forms import Field, form_fields
from protege.untrusted import storable

UNREADABLE = "unreadable_payload"


class Payload:
    """One post of a provider: its envelope, the mail as it came where it holds one, and else a mail made of it."""

    view_path = ""
    """Dotted path of anymail's view for the provider's inbound mail."""

    refusal = 413
    """The HTTP status after which the provider does not post the same mail again."""

    signed = False
    """True where anymail checks a signature, so that no shared secret is needed."""

    def __init__(self, body: bytes, media_type: str) -> None:
        self.body = body
        self.media_type = media_type

    @property
    def recipients(self) -> list[str]:
        raise NotImplementedError

    @property
    def sender(self) -> str | None:
        raise NotImplementedError

    @property
    def raw_mail(self) -> bytes | None:
        raise NotImplementedError

    def request(self, **meta: str) -> HttpRequest:
        """The post as anymail's views read it, with `meta` on top."""
        return PayloadRequest(self.body, self.media_type, meta)

    @classmethod
    def view(cls, **options: Any) -> Any:
        """Anymail's view; its `ImproperlyConfigured` says which secret is missing."""
        module, _, name = cls.view_path.rpartition(".")
        try:
            return getattr(import_module(module), name)(**options)
        except ModuleNotFoundError as error:
            raise MissingExtraError("django-anymail", "anymail") from error

    def to_mime(self) -> bytes:
        """A mail in RFC 5322 with all that the payload holds. What cannot be read is a `MailError`."""
        view = self.view(**self._no_secrets())
        try:
            (event,) = view.parse_events(self.request())
            return _serialised(event.message)
        except Exception as error:  # the payload is a stranger's, and anymail takes it as it finds it
            raise MailError("The provider's payload holds no mail that can be read.", code=UNREADABLE) from error

    def _no_secrets(self) -> dict[str, str]:
        """The door has checked them; anymail asks for them before it parses anything."""
        return {"webhook_secret": "checked"}


def _serialised(message: EmailMessage) -> bytes:
    """Anymail builds mails to be looked into, with files as bare bytes and headers that may be unencoded."""
    for part in message.walk():
        is_file = part.get_content_disposition() is not None and not part.is_multipart()
        if is_file and "Content-Transfer-Encoding" not in part:
            encode_base64(part)
    return message.as_bytes(policy=SMTPUTF8)


class PayloadRequest(HttpRequest):
    """A post without Django's limits on the size of fields, and without losing files for their names."""

    def __init__(self, body: bytes, media_type: str, meta: Mapping[str, str], fields: Sequence[Field] = ()) -> None:
        super().__init__()
        self.method = "POST"
        self.META = {"CONTENT_TYPE": media_type, **meta}
        self.content_type = media_type.partition(";")[0].strip().lower()
        self._payload = body
        texts, files = QueryDict(mutable=True), MultiValueDict[str, Any]()
        for one in fields:
            if one.filename is None:
                texts.appendlist(one.name, one.value.decode("utf-8", "replace"))
            else:
                files.appendlist(one.name, _uploaded(one))
        self.POST, self.FILES = texts, files  # type: ignore[assignment]  # Django fills them from the body

    @property
    def body(self) -> bytes:
        return self._payload


def _uploaded(one: Field) -> SimpleUploadedFile:
    """Anymail reads an attached mail as UTF-8 or not at all: another one is given to it as mere bytes."""
    content_type = one.content_type or "application/octet-stream"
    if content_type.startswith("message/") and not is_utf8(one.value):
        content_type = "application/octet-stream"
    name = (one.filename or "").replace("\\", "/").rpartition("/")[2].strip()
    file = SimpleUploadedFile(name if name not in ("", ".", "..") else "attachment", one.value, content_type)
    file.charset = one.charset or None
    return file


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class FormPayload(Payload):
    """A provider that posts a form."""

    @cached_property
    def fields(self) -> list[Field]:
        return form_fields(self.body, media_type=self.media_type)

    def request(self, **meta: str) -> HttpRequest:
        return PayloadRequest(self.body, self.media_type, meta, self._fields_for_anymail())

    def _fields_for_anymail(self) -> list[Field]:
        return self.fields

    def value(self, name: str) -> bytes | None:
        """A field's value; of several, the last."""
        return next((one.value for one in reversed(self.fields) if one.name == name), None)

    def text(self, name: str) -> str | None:
        value = self.value(name)
        return None if value is None else value.decode("utf-8", "replace")


def json_object(data: bytes) -> dict[str, Any]:
    """A JSON object whose texts can be stored; empty for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return storable(found) if isinstance(found, dict) else {}


def header_values(value: Any) -> Any:
    """Texts of headers, each on one line."""
    if isinstance(value, str):
        return " ".join(storable(value).splitlines())
    if isinstance(value, list):
        return [header_values(item) for item in value]
    if isinstance(value, dict):
        return {key: header_values(item) for key, item in value.items()}
    return value


def addresses_in(text: str) -> list[str]:
    return [address for _, address in getaddresses([text]) if address]
