"""The chains on the page of their persona."""

from typing import Any, ClassVar

from django.contrib.admin.options import InlineModelAdmin
from django.forms import Media
from django.http import HttpRequest

from personas.tenant_admin import VisibleChoices
from resolvers.admin.chain_formset import chain_formset
from resolvers.models import ChainStep, Trigger
from resolvers.registry import resolvers


class ChainInline(VisibleChoices, InlineModelAdmin):
    """The editor of one chain. It is written as a whole, so that one permission, to change steps, is all it takes."""

    model = ChainStep
    template = "protege_resolvers/chain_inline.html"
    trigger: ClassVar[str] = Trigger.MESSAGE
    introduction: ClassVar[str] = ""

    @property
    def media(self) -> Media:
        return Media(css={"all": ["protege_resolvers/chain.css"]}, js=["protege_resolvers/chain.js"])

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        return chain_formset(self.trigger, editable=self.has_change_permission(request, obj))

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)

    def reference(self) -> list[dict[str, Any]]:
        """Each resolver with its options, for whoever types them."""
        return [
            {"key": key, "label": entry.label or key, "description": entry.description, "form": entry.options_form()}
            for key, entry in resolvers.items()
        ]


class MessageChainInline(ChainInline):
    trigger = Trigger.MESSAGE
    verbose_name = "step"
    verbose_name_plural = "Chain for mails"
    introduction = "What the model reads before it answers a mail, in this order. The mail itself comes last."


class ResponsibilityChainInline(ChainInline):
    trigger = Trigger.RESPONSIBILITY
    verbose_name = "step"
    verbose_name_plural = "Chain for responsibilities"
    introduction = "What the model reads when a responsibility is due, in this order. It makes the whole request."
