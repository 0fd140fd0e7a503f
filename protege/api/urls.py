"""Addresses of the HTTP API; include them where you like."""

from django.urls import URLPattern, URLResolver

app_name = "protege-api"

urlpatterns: list[URLPattern | URLResolver] = []
