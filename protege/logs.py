"""Log lines without the text of mails."""

import logging
import traceback
from types import TracebackType

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class QuietFormatter(logging.Formatter):
    """Shows where an exception happened and of which class it is, not what it says.

    The text of an exception may quote what was worked on: PostgreSQL's errors hold the values of the row.
    """

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802  # the name is the standard library's
        error, lines = ei[1], list[str]()
        seen = set[int]()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            frames = "".join(traceback.format_tb(error.__traceback__))
            lines.append(f"{frames}{type(error).__module__}.{type(error).__qualname__}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\nafter\n".join(lines)
