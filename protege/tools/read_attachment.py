"""Reading a document of the thread."""

from typing import Annotated, Any

from pydantic import Field

from protege.context import Context
from protege.services import documents
from protege.toolkit import Tool, register_tool
from protege.untrusted import fence


@register_tool
class ReadAttachment(Tool):
    name = "read_attachment"
    description = "Read the text of a file that was attached to a mail of this thread."
    effect = "read"

    def run(
        self,
        context: Context,
        attachment_id: Annotated[str, Field(description="The id that stands beside the file's name in the mail.")],
    ) -> Any:
        if context.message is None:
            return self.failure("There is no mail in this run, so there are no attachments.", code="no_thread")
        answer = documents.read(context.message, attachment_id)
        return {**answer, "text": fence(str(answer["text"]), label="text of a document")}
