"""The chain editor: a chain as a whole, at the revision that the page showed."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.forms.formsets import BaseFormSet, ManagementForm
from django.utils.functional import cached_property

from personas.models import Persona
from protege.exceptions import StaleRevisionError
from protege.services import chains
from resolvers.admin.chain_form import StepForm
from resolvers.models import ChainRevision, ChainStep, Trigger

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

LONGEST_CHAIN = 200


class ChainManagementForm(ManagementForm):
    """Django's counts, and the revision that the page was made from."""

    expected_revision = forms.IntegerField(min_value=0, widget=forms.HiddenInput)


class ChainFormSet(BaseFormSet):
    """The steps of one trigger.

    Rows carry no primary keys: what is sent is the whole chain, which takes the place of the whole chain if that is
    still the one that the page showed. So nothing can be saved into a wrong row, and nothing half.
    """

    trigger: ClassVar[str] = Trigger.MESSAGE
    editable: ClassVar[bool] = True

    def __init__(
        self, data: Any = None, files: Any = None, *, instance: Persona, prefix: str | None = None, **kwargs: Any
    ) -> None:
        self.instance = instance
        self.stored: list[dict[str, Any]] = self._stored()
        self.revision = chains.current_revision(instance, self.trigger) if instance.pk else 0
        self.steps: list[dict[str, Any]] = self.stored
        self.new_objects: list[ChainRevision] = []
        self.changed_objects: list[Any] = []
        self.deleted_objects: list[Any] = []
        initial = [{**step, "position": place} for place, step in enumerate(self.stored, start=1)]
        # Somebody who may only look sends no rows.
        super().__init__(data if self.editable else None, prefix=prefix, initial=initial)

    def _stored(self) -> list[dict[str, Any]]:
        if not self.instance.pk:
            return []
        rows = ChainStep.objects.filter(persona=self.instance, trigger=self.trigger).order_by("position", "pk")
        return [step.to_dict() for step in rows]

    @classmethod
    def get_default_prefix(cls) -> str:
        return f"{cls.trigger}_chain"

    @cached_property
    def management_form(self) -> ChainManagementForm:
        if self.is_bound:
            form = ChainManagementForm(self.data, auto_id=self.auto_id, prefix=self.prefix)
            form.full_clean()
            return form
        counts = {
            "TOTAL_FORMS": self.total_form_count(),
            "INITIAL_FORMS": self.initial_form_count(),
            "MIN_NUM_FORMS": self.min_num,
            "MAX_NUM_FORMS": self.max_num,
            "expected_revision": self.revision,
        }
        return ChainManagementForm(auto_id=self.auto_id, prefix=self.prefix, initial=counts)

    def get_queryset(self) -> list[ChainStep]:
        """What Django's inlines pair their forms with: the rows here are values and have no object behind them."""
        return []

    def _construct_form(self, i: int, **kwargs: Any) -> StepForm:
        if i >= self.initial_form_count():
            # On a stale page a new row must not be compared with a row that somebody else has added since.
            kwargs["initial"] = None
        form: StepForm = super()._construct_form(i, **kwargs)  # type: ignore[misc]  # not in the stubs
        form.is_new = i >= self.initial_form_count()
        return form

    @property
    def rows(self) -> list[StepForm]:
        """The forms as the page shows them: after an error in the order that was typed."""
        return in_order(self.forms) if self.is_bound else self.forms

    def is_valid(self) -> bool:
        return super().is_valid() if self.editable else True

    def clean(self) -> None:
        if not self.management_form.is_valid():
            return
        self._refuse_stale()
        if any(self.errors):
            return
        rows = in_order([form for form in self.forms if not self._is_left_out(form)])
        self.steps = [step for form in rows if (step := form.step()) is not None]
        if self.has_new_chain:
            # A chain that nobody touched stays savable with its persona, even when a prompt file has gone since.
            self.steps = [form.check() for form in rows]

    @property
    def expected_revision(self) -> int:
        """The revision that the page was made from."""
        return int(self.management_form.cleaned_data["expected_revision"] or 0)

    def _refuse_stale(self) -> None:
        expected = self.expected_revision
        if expected != self.revision:
            error = StaleRevisionError(expected=expected, current=self.revision)
            raise ValidationError(f"Somebody else has saved this chain. {error}", code=error.code)

    def _is_left_out(self, form: StepForm) -> bool:
        return (form.is_new and not form.has_changed()) or form.cleaned_data.get("DELETE", False)

    @property
    def has_new_chain(self) -> bool:
        """Compared as JSON, where true is not 1 and the order of keys says nothing."""
        return _canonical(self.steps) != _canonical(self.stored)

    def save(self, *, author: "AbstractBaseUser | None" = None) -> None:
        """Save the chain as its next revision when it has changed; `StaleRevisionError` when another was faster."""
        if not self.editable or not self.has_new_chain:
            return
        revision = chains.save(
            self.instance, self.trigger, self.steps, expected_revision=self.expected_revision, author=author
        )
        self.new_objects = [revision]


def chain_formset(trigger: str, *, editable: bool) -> type[ChainFormSet]:
    """The class of the editor for one trigger."""
    made = forms.formset_factory(
        StepForm,
        formset=ChainFormSet,
        extra=1,
        can_delete=True,
        max_num=LONGEST_CHAIN,
        absolute_max=LONGEST_CHAIN + 1,
        validate_max=True,
    )
    return type("BoundChainFormSet", (made,), {"trigger": trigger, "editable": editable})


def in_order(rows: Sequence[StepForm]) -> list[StepForm]:
    """The rows in the order that their numbers say: a blank one is last, gaps do not matter.

    Of two equal numbers the one that was moved gets the place: moved up or new it stands before the one that was
    there, moved down behind it, so that it is at the number that was typed.
    """
    return [form for _, form in sorted(enumerate(rows), key=lambda item: _place(*item))]


def _place(index: int, form: StepForm) -> tuple[bool, int, int, int]:
    position, was = form.cleaned_data.get("position"), form.initial.get("position")
    if position is None:
        return True, 0, 0, index
    if was is None or position < was:
        return False, position, -1, index
    return False, position, int(position > was), index


def _canonical(steps: Sequence[dict[str, Any]]) -> str:
    return json.dumps(list(steps), sort_keys=True)
