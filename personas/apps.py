from django.apps import AppConfig


class PersonasConfig(AppConfig):
    name = "personas"
    label = "protege_personas"
    verbose_name = "Personas"
    default_auto_field = "django.db.models.BigAutoField"
