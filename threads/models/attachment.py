"""A file of a mail, and where files are kept."""

import uuid

from django.core.files.storage import FileSystemStorage, InvalidStorageError, Storage, storages
from django.db import models

from protege import conf
from protege.mail.limits import FILENAME_LENGTH
from protege.untrusted import one_line


def attachment_storage() -> Storage:
    """`STORAGES["protege"]` when the host defines it, else a folder outside the public media."""
    try:
        return storages["protege"]
    except InvalidStorageError:
        return FileSystemStorage(location=conf.load().files_root, base_url=None)


def attachment_key(instance: "Attachment", filename: str) -> str:
    """A key made here: nothing a stranger wrote becomes part of a path."""
    key = instance.public_id.hex
    return f"attachments/{key[:2]}/{key}"


class TextStatus(models.TextChoices):
    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    NONE = "none"


class Attachment(models.Model):
    """A file of a message, under a server-made key; its name is for display only."""

    message = models.ForeignKey("Message", on_delete=models.CASCADE, related_name="attachments")
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False, help_text="The id that tools accept.")
    filename = models.CharField(max_length=FILENAME_LENGTH, help_text="Cleaned name, for display.")
    content_type = models.CharField(max_length=255, help_text="Told from the content where it can be.")
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    sha256 = models.CharField(max_length=64)
    content_id = models.CharField(max_length=255, blank=True)
    inline = models.BooleanField(default=False, help_text="A picture that the HTML of the mail refers to.")
    file = models.FileField(storage=attachment_storage, upload_to=attachment_key, max_length=255)
    text = models.TextField(blank=True, help_text="Text taken out of the file.")
    text_status = models.CharField(max_length=10, choices=TextStatus.choices, default=TextStatus.NONE)
    damaged = models.BooleanField(default=False, help_text="The mail's encoding of it was broken.")

    class Meta:
        ordering = ["message", "id"]

    def __str__(self) -> str:
        return f"attachment {self.pk}"

    def described(self) -> str:
        """One line: name, type, size, id, and whether it is damaged."""
        facts = [self.content_type, readable_size(self.size), f"id {self.public_id}"]
        if self.damaged:
            facts.append("damaged")
        return f"{one_line(self.filename, FILENAME_LENGTH)} ({', '.join(facts)})"


def readable_size(size: int) -> str:
    """Bytes in the largest unit that gives at least 1: `812 bytes`, `12.5 kB`, `3.1 MB`."""
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1_000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
