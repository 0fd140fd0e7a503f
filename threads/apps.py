from django.apps import AppConfig


class ThreadsConfig(AppConfig):
    name = "threads"
    label = "protege_threads"
    verbose_name = "Threads"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from threads import files  # noqa: F401  # connects its receiver
