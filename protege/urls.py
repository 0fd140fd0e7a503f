"""Addresses of the stand-alone project."""

from importlib.util import find_spec

from django.contrib import admin
from django.urls import include, path
from django.views.generic import TemplateView

urlpatterns = [
    path("", TemplateView.as_view(template_name="landing.html"), name="landing"),
    path("admin/", admin.site.urls),
    path("api/", include("protege.api.urls")),
    path("inbound/", include("protege.webhooks.urls")),
]

if find_spec("anymail") is not None:
    urlpatterns.append(path("inbound/", include("protege.webhooks.provider_urls")))
