"""Tools that tests give to personas."""

from typing import Any

from protege.toolkit import Tool


class LookUp(Tool):
    """Tells the state of any order, and the key that it was called under."""

    name = "look_up"
    description = "Look up an order."
    effect = "read"

    def run(self, context: Any, order: int) -> Any:
        return {"order": order, "state": "sent", "key": context.idempotency_key}
