"""Addresses of posted mail; include them where you like. Those of providers stand in `provider_urls`."""

from django.urls import path

from protege.webhooks.mime import receive_mime

app_name = "protege-webhooks"

urlpatterns = [path("mime/", receive_mime, name="mime")]
