"""Running a `load_record` step of the admin."""

import json
from typing import Any

from protege.context import Context
from protege.messages import ModelMessage
from resolvers import ResolverChain


def from_admin(context: Context, **options: Any) -> list[ModelMessage]:
    return ResolverChain.from_steps([{"resolver": "load_record", "options": options}]).run(context)


def names(messages: list[ModelMessage]) -> list[str]:
    """The user names in a text of records."""
    return [json.loads(text)["username"] for message in messages for text in message.text.split("\n\n")]
