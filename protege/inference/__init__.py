"""From a list of messages to a provider's wire and back. No tables; the LLM library is loaded only when needed."""

from protege.inference.request import Request, build_request

__all__ = ["Request", "build_request"]
