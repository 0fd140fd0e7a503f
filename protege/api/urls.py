"""Addresses of the HTTP API; include them where you like."""

from django.urls import URLPattern, URLResolver, path

from protege.api.chains import ChainView
from protege.api.drafts import DraftApproval, DraftDetail, DraftDisposal, DraftList
from protege.api.messages import MessageDetail, ThreadMessages
from protege.api.personas import PersonaDetail, PersonaList
from protege.api.preview import PreviewView
from protege.api.runs import RunDetail
from protege.api.schema import DocsView, SchemaView
from protege.api.stepping_in import MessageResend, ThreadPause, ThreadRelease
from protege.api.threads import ThreadDetail, ThreadList

app_name = "protege-api"

urlpatterns: list[URLPattern | URLResolver] = [
    path("personas/", PersonaList.as_view(), name="persona-list"),
    path("personas/<int:pk>/", PersonaDetail.as_view(), name="persona-detail"),
    path("personas/<int:pk>/chains/<str:trigger>/", ChainView.as_view(), name="persona-chain"),
    path("personas/<int:pk>/preview/", PreviewView.as_view(), name="persona-preview"),
    path("threads/", ThreadList.as_view(), name="thread-list"),
    path("threads/<int:pk>/", ThreadDetail.as_view(), name="thread-detail"),
    path("threads/<int:pk>/messages/", ThreadMessages.as_view(), name="thread-messages"),
    path("threads/<int:pk>/pause/", ThreadPause.as_view(), name="thread-pause"),
    path("threads/<int:pk>/release/", ThreadRelease.as_view(), name="thread-release"),
    path("messages/<int:pk>/", MessageDetail.as_view(), name="message-detail"),
    path("messages/<int:pk>/resend/", MessageResend.as_view(), name="message-resend"),
    path("drafts/", DraftList.as_view(), name="draft-list"),
    path("drafts/<int:pk>/", DraftDetail.as_view(), name="draft-detail"),
    path("drafts/<int:pk>/approve/", DraftApproval.as_view(), name="draft-approve"),
    path("drafts/<int:pk>/discard/", DraftDisposal.as_view(), name="draft-discard"),
    path("runs/<int:pk>/", RunDetail.as_view(), name="run-detail"),
    path("schema/", SchemaView.as_view(), name="schema"),
    path("docs/", DocsView.as_view(), name="docs"),
]
