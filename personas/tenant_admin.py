"""The one base of all admin classes: rows, choices, sidebar filters and autocomplete by the visibility rule."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.exceptions import NotRegistered
from django.contrib.admin.filters import RelatedFieldListFilter
from django.contrib.admin.options import BaseModelAdmin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from protege.exceptions import ScopeError
from protege.identity import principal_of, staff_scope
from protege.principals import Scope

Rows = QuerySet[Any]

DeletionSummary = tuple[list[Any], dict[str, int], set[str], list[Any]]
"""What `get_deleted_objects` gives: what goes, counts by name, permissions that lack, and what stands against it."""


def visible_rows(rows: Any, owner: str | None, request: HttpRequest) -> Rows:
    """Those of `rows` that the asker may see; nobody in particular sees none.

    `owner` is `TenantAdmin.owner`.
    """
    principal = principal_of(request)
    scope = staff_scope(principal)
    try:
        principal.require(scope)
    except ScopeError:
        return rows.none()
    if owner == "":
        return rows.visible_to(principal, scope)
    if scope is Scope.GLOBAL:
        return rows
    if owner is None:
        return rows.none()
    field = rows.model._meta.get_field(owner)
    if not field.is_relation:
        return rows.filter(**{owner: principal.tenant})
    return rows.filter(**{f"{owner}__in": field.related_model._default_manager.visible_to(principal, scope)})


class VisibleChoices(BaseModelAdmin):
    """Offers, and accepts, as related rows only those that the asker's own list of them shows."""

    def get_field_queryset(self, db: str | None, db_field: Any, request: HttpRequest) -> Rows | None:
        rows = self.choices_of(db_field.remote_field.model, request)
        return super().get_field_queryset(db, db_field, request) if rows is None else rows

    def choices_of(self, model: type[Model], request: HttpRequest) -> Rows | None:
        """The rows of `model` that may be named; None for models that are not ours, such as users."""
        try:
            related = self.admin_site.get_model_admin(model)
        except NotRegistered:
            related = None
        if isinstance(related, TenantAdmin):
            return related.get_queryset(request).defer(*related.list_defer)
        # The host has an admin of its own for it, or none: the model's rule holds all the same.
        manager = model._default_manager
        return visible_rows(manager.all(), "", request) if hasattr(manager, "visible_to") else None


class VisibleFilter(RelatedFieldListFilter):
    """The sidebar filter of a relation; Django's own lists the rows of all tenants."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        rows = model_admin.choices_of(field.related_model, request)
        if rows is None:
            return super().field_choices(field, request, model_admin)
        ordering = self.field_admin_ordering(field, request, model_admin)
        return [(row.pk, str(row)) for row in rows.order_by(*(ordering or rows.model._meta.ordering))]


class LeanChangeList(ChangeList):
    """Leaves the long columns, which no list shows, in the database."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Rows:
        long: tuple[str, ...] = getattr(self.model_admin, "list_defer", ())
        return super().get_queryset(request, exclude_parameters).defer(*long)


class TenantAdmin(VisibleChoices, admin.ModelAdmin):
    """Base of every `ModelAdmin` of ours, and of a host's for models that belong to personas or threads.

    `owner` says whose the rows are: `""` asks the model's own `visible_to`; the name of a relation asks that of the
    related model; the name of a plain field compares it with the asker's tenant; None means that the rows belong to
    no tenant, so that only administrators see them. `list_defer` names columns that the list does not load.
    """

    owner: ClassVar[str | None] = ""
    list_defer: ClassVar[tuple[str, ...]] = ()
    on_index: ClassVar[bool] = True
    """False for rows that are looked at from another page: they would only crowd the front page."""
    show_full_result_count = False
    list_per_page = 100

    def get_queryset(self, request: HttpRequest) -> Rows:
        return visible_rows(super().get_queryset(request), self.owner, request)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LeanChangeList

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        given = super().get_list_filter(request)
        return [(item, VisibleFilter) if self._is_relation(item) else item for item in given]

    def _is_relation(self, item: object) -> bool:
        if not isinstance(item, str):
            return False
        try:
            return bool(self.model._meta.get_field(item).is_relation)
        except FieldDoesNotExist:
            return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.on_index and super().has_module_permission(request)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Write only what the form changed: workers write other columns of the row while the page is open."""
        if not change:
            super().save_model(request, obj, form, change)
            return
        columns = {field.name for field in obj._meta.concrete_fields}
        obj.save(update_fields=[name for name in form.changed_data if name in columns])


class ReadOnlyAdmin(TenantAdmin):
    """For rows that only the product writes. `deletable` rows may be deleted with Django's own permission."""

    deletable: ClassVar[bool] = False
    actions: Any = None

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.deletable and super().has_delete_permission(request, obj)


class ReadOnlyInline(VisibleChoices, admin.TabularInline):
    """Rows that are shown with their parent and written only by the product."""

    extra = 0
    max_num = 0
    can_delete = False
    show_change_link = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
