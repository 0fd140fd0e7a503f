from django.apps import AppConfig


class ResolversConfig(AppConfig):
    name = "resolvers"
    label = "protege_resolvers"
    verbose_name = "Resolvers"
    default_auto_field = "django.db.models.BigAutoField"
