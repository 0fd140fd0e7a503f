"""The resolvers that come with Protege, one a file."""

from resolvers.builtin.load_file import LoadFileResolver
from resolvers.builtin.load_record import LoadRecordResolver
from resolvers.builtin.load_text import LoadTextResolver
from resolvers.builtin.thread_history import ThreadHistoryResolver

__all__ = ["LoadFileResolver", "LoadRecordResolver", "LoadTextResolver", "ThreadHistoryResolver"]
