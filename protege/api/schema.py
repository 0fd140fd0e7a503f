"""The OpenAPI description of the API, and its pages for people. Closed like all the rest."""

from django.apps import apps
from django.templatetags.static import static
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import IsAuthenticated

from protege.api.base import ErrorShape

SIDECAR = "drf_spectacular_sidecar"


class SchemaView(ErrorShape, SpectacularAPIView):
    permission_classes = [IsAuthenticated]
    schema = AutoSchema()


class DocsView(ErrorShape, SpectacularSwaggerSplitView):
    """Swagger UI, its script apart from the page, from the sidecar package where that is installed."""

    permission_classes = [IsAuthenticated]
    schema = AutoSchema()
    url_name = "protege-api:schema"
    title = "Protege"

    @staticmethod
    def _swagger_ui_resource(filename: str) -> str:
        if apps.is_installed(SIDECAR):
            return static(f"{SIDECAR}/swagger-ui-dist/{filename}")
        found: str = SpectacularSwaggerSplitView._swagger_ui_resource(filename)
        return found
