"""What another chain would have said for the same mail, beside what this one says."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from personas.models import Persona
from protege.exceptions import NotVisibleError
from protege.services import runs
from protege.toolkit import canonical_json
from resolvers.chain import ResolverChain
from resolvers.models import ChainRevision

Message = Mapping[str, Any]


def chain_to_compare(persona: Persona, trigger: str, compare: str | int) -> ResolverChain:
    """The saved chain, or the one of a revision; `NotVisibleError` when the persona has no revision of that number."""
    if compare == "saved":
        return ResolverChain.for_persona(persona, trigger)
    revision = ChainRevision.objects.filter(persona=persona, trigger=trigger, number=compare).first()
    if revision is None:
        raise NotVisibleError(f"The {trigger} chain of this persona has no revision {compare}.")
    return ResolverChain.from_steps(revision.steps)


def comparison(shown: Mapping[str, Any], other: runs.Prepared, *, against: str | int, full: bool) -> dict[str, Any]:
    """Messages that only one of the two has, and the tokens of both.

    `shown` is the preview as it is answered, `other` what the other chain prepared for the same mail, model and time.
    A message that stands elsewhere is both removed and added, because the order is what the model reads.
    """
    before = runs.Preview(prepared=other, wire=None).to_dict(full=full)
    removed, added = differences(before["messages"], shown["messages"])
    tokens = {"before": before["tokens"]["estimated"], "after": shown["tokens"]["estimated"]}
    return {
        "against": against,
        "added": added,
        "removed": removed,
        "tokens": {**tokens, "difference": tokens["after"] - tokens["before"]},
    }


def differences(before: Sequence[Message], after: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The messages of `before` that are gone, and those of `after` that are new, both in their order."""
    matcher = SequenceMatcher(None, [_said(item) for item in before], [_said(item) for item in after], autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    removed = [item for _, start, end, _, _ in changes for item in before[start:end]]
    added = [item for _, _, _, start, end in changes for item in after[start:end]]
    return removed, added


def _said(message: Message) -> str:
    """What the model reads of it; which step said it makes no difference."""
    return canonical_json({key: message[key] for key in ("role", "content", "tool_call_id", "tool_calls")})
