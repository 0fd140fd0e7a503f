"""The files of attachments go with their rows, whoever deletes those: admin, retention, a cascade."""

from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver

from threads.models import Attachment


@receiver(post_delete, sender=Attachment)
def delete_file(instance: Attachment, **kwargs: Any) -> None:
    """Delete the file once it is certain that the row is gone; a file that cannot be deleted undoes nothing."""
    if instance.file and instance.file.name:
        storage, name = instance.file.storage, instance.file.name
        transaction.on_commit(lambda: storage.delete(str(name)), robust=True)
