"""Sending a mail from within a run."""

from typing import Annotated, Any

from pydantic import Field

from protege.context import Context
from protege.services import tool_mail
from protege.toolkit import Tool, register_tool


@register_tool
class SendEmail(Tool):
    name = "send_email"
    description = (
        "Send an e-mail. It leaves when your work on this mail has ended well. A mail to the person who wrote to you "
        "is your answer to them: do not repeat it as closing text."
    )
    effect = "egress"

    def run(
        self,
        context: Context,
        to: Annotated[list[str], Field(description="Addresses.", min_length=1, max_length=20)],
        subject: Annotated[str, Field(description="Subject in one line.", max_length=300)],
        body: Annotated[str, Field(description="The mail in Markdown.", min_length=1)],
        cc: Annotated[list[str], Field(description="Addresses for a copy.", max_length=20)] = [],  # noqa: B006
        attachments: Annotated[list[str], Field(description="Ids of files of this thread.", max_length=20)] = [],  # noqa: B006
    ) -> Any:
        mail = tool_mail.prepare_tool_mail(context, to=to, cc=cc, subject=subject, body=body, attachments=attachments)
        return self.success(mail.summary(), on_record=mail.hold)
