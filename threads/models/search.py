"""What search and related threads read."""

from django.db import models

SEARCH_TEXT_LIMIT = 200_000


class SearchText(models.Model):
    """The folded words of one message; written in the transaction that writes the message."""

    message = models.OneToOneField("Message", on_delete=models.CASCADE, related_name="search_text", primary_key=True)
    thread = models.ForeignKey("EmailThread", on_delete=models.CASCADE, related_name="search_texts")
    text = models.TextField(help_text=f"At most {SEARCH_TEXT_LIMIT:,} characters.")

    def __str__(self) -> str:
        return f"search text {self.pk}"


class ThreadVector(models.Model):
    """The embedding of one thread; compared only with vectors of the same provider, model and dimension."""

    thread = models.OneToOneField("EmailThread", on_delete=models.CASCADE, related_name="vector", primary_key=True)
    provider = models.CharField(max_length=100)
    model = models.CharField(max_length=200)
    dimension = models.PositiveIntegerField()
    vector = models.BinaryField(help_text="float32, little-endian.")
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"vector {self.pk}"
