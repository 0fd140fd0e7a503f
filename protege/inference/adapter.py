"""One builder for the preview and the send: both go through the same lines up to the HTTP client's transport."""

import asyncio
import contextlib
import contextvars
import inspect
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from asgiref.sync import async_to_sync

from protege.conf import Config
from protege.exceptions import ModelError, ModelNameError
from protege.inference.encoding import declared, decode, encode
from protege.inference.naming import (
    COMPATIBLE,
    OFFLINE,
    PLACEHOLDER_KEY,
    ModelTarget,
    provider_class,
    target_of,
)
from protege.inference.replies import Reply
from protege.inference.request import Request
from protege.inference.wire import Wire, shown_url, wire_sha256

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model

CAPTURE_SECONDS = 30.0
OPENAI_KINDS = ("openai", "openai-chat", "openai-responses")
Observe = Callable[[bytes], None]
Answered = TypeVar("Answered")

_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b")


def send(
    request: Request,
    *,
    model: str,
    max_tokens: int,
    config: Config,
    timeout: float,
    observe: Observe | None = None,
) -> Reply:
    """Post `request` and wait for the answer, `timeout` seconds at most.

    `observe` is called with the exact body that was posted, also when the request failed. It is called here and not
    in the midst of the request, as it may use the database. Raises `ModelError`; nothing is retried.
    """
    posted: list[bytes] = []
    try:
        target = target_of(model, config)
        return _waited_for(lambda: _send(request, target, max_tokens, timeout, posted))
    finally:
        if observe is not None and posted:
            observe(posted[0])


def capture(request: Request, *, model: str, max_tokens: int, config: Config) -> Wire:
    """The body that `send` would post, without a socket and without a credential."""
    target = target_of(model, config)
    return _waited_for(lambda: _capture(request, target, max_tokens))


def context_window(model: str) -> int | None:
    """The model's window in tokens, where the price data knows it."""
    from genai_prices import data_snapshot

    provider, _, name = model.partition(":")
    try:
        _, info = data_snapshot.get_snapshot().find_provider_model(name, None, provider.partition("-")[0], None)
    except LookupError:
        return None
    return info.context_window


def _waited_for(work: Callable[[], Coroutine[Any, Any, Answered]]) -> Answered:
    """The result of `work`, waited for. Where a loop runs in this thread, another thread does the work.

    A notebook, and an asynchronous view that calls us directly, are such places; their loop stands still meanwhile.
    """

    async def awaited() -> Answered:
        return await work()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return async_to_sync(awaited)()
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(contextvars.copy_context().run, asyncio.run, awaited()).result()


async def _send(request: Request, target: ModelTarget, max_tokens: int, timeout: float, posted: list[bytes]) -> Reply:
    async with _client(_transport_of(target), posted, timeout) as client:
        model = build_model(target, key=target.key(), http_client=client)
        try:
            async with asyncio.timeout(timeout):
                return await _post(request, model, _settings(target, max_tokens), posted)
        except TimeoutError:
            raise ModelError(f"The model gave no answer within {timeout:g} seconds.", code="timeout") from None


async def _capture(request: Request, target: ModelTarget, max_tokens: int) -> Wire:
    captured: list[httpx2.Request] = []
    posted: list[bytes] = []
    async with _client(_capturing_transport(captured), posted, CAPTURE_SECONDS) as client:
        model = build_model(target, key=PLACEHOLDER_KEY, http_client=client)
        with contextlib.suppress(CapturedRequest):
            await _post(request, model, _settings(target, max_tokens), posted)
    if not captured:
        raise ModelError("The model's library did not come to post a request.", code="invalid_request")
    first = captured[0]
    body = json.loads(first.content)
    url = shown_url(str(first.url))
    return Wire(provider=_wire_name(target), method=first.method, url=url, body=body, sha256=wire_sha256(body))


class CapturedRequest(BaseException):
    """Stops a request at the socket. No `Exception`: the SDKs would take it for a broken connection and retry."""


def _settings(target: ModelTarget, max_tokens: int) -> Any:
    """Always a limit for the answer; the SDKs retry nothing; OpenAI is asked to keep nothing."""
    settings: dict[str, Any] = {"max_tokens": max_tokens, "max_retries": 0}
    if target.kind in OPENAI_KINDS:
        settings["openai_store"] = False
    return settings


async def _post(request: Request, model: "Model", settings: Any, posted: list[bytes]) -> Reply:
    """Encode, post, decode. The library's errors become `ModelError`, without the text of the provider's body."""
    from pydantic_ai import direct

    from protege.inference.errors import as_model_error

    parameters = declared(request.tools)
    try:
        messages = encode(request.messages, model, parameters)
        response = await direct.model_request(
            model, messages, model_settings=settings, model_request_parameters=parameters, instrument=False
        )
    except Exception as error:  # told apart by class in `errors`
        raise as_model_error(error, posted=bool(posted)) from None
    return decode(response)


def build_model(target: ModelTarget, *, key: str | None, http_client: Any) -> "Model":
    """The library's model over our HTTP client. No socket is opened; a key may be a placeholder."""
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.models.openai import OpenAIChatModel

    try:
        if target.kind in (OFFLINE, COMPATIBLE):
            return OpenAIChatModel(target.model, provider=_compatible(target, key, http_client))
        name = f"{target.kind}:{target.model}"
        return infer_model(name, provider_factory=lambda _: _provider(target, key, http_client))
    except UserError as error:
        if key is None:
            build_model(target, key=PLACEHOLDER_KEY, http_client=http_client)  # raises if more than the key is missing
            raise ModelError(_missing_key(error), code="authentication") from None
        raise ModelNameError(str(error)) from None


def _missing_key(error: Exception) -> str:
    """Only the name of the variable: the rest of the library's text speaks to its own users."""
    variable = _VARIABLE.search(str(error))
    return f"Set the environment variable {variable[0]}." if variable else str(error)


def _provider(target: ModelTarget, key: str | None, http_client: Any) -> Any:
    """The provider with what its constructor takes; a key of None lets it read its own environment variable."""
    cls = provider_class(target)
    given = {"api_key": key, "base_url": target.base_url, "http_client": http_client}
    accepted = inspect.signature(cls.__init__).parameters
    if target.base_url is not None and "base_url" not in accepted:
        raise ModelNameError(f"The provider {target.kind!r} takes no base_url.")
    return cls(**{name: value for name, value in given.items() if value is not None and name in accepted})


def _compatible(target: ModelTarget, key: str | None, http_client: Any) -> Any:
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    base_url = target.base_url or "http://offline.invalid/v1"
    return OpenAICompatibleProvider(
        target.provider, base_url=base_url, api_key=key or PLACEHOLDER_KEY, http_client=http_client
    )


@contextlib.asynccontextmanager
async def _client(transport: Any, posted: list[bytes], timeout: float) -> AsyncIterator[Any]:
    """A fresh client for one request: no connection outlives the event loop that opened it.

    The body is put into `posted` by a hook, not by a transport of ours, so that the environment's proxies still apply.
    """
    import httpx2

    async def hook(request: "httpx2.Request") -> None:
        posted.append(await request.aread())

    hooks: dict[str, list[Callable[..., Awaitable[None]]]] = {"request": [hook]}
    async with httpx2.AsyncClient(transport=transport, event_hooks=hooks, timeout=timeout) as client:
        yield client


def _transport_of(target: ModelTarget) -> Any:
    """None is the network; the offline models answer from within."""
    if target.kind != OFFLINE:
        return None
    from protege.inference.offline import offline_transport

    return offline_transport(target.model)


def closed_client() -> Any:
    """A client that opens no socket, for a model that is only built: it needs no certificates to be read."""
    import httpx2

    return httpx2.AsyncClient(transport=_capturing_transport([]))


def _capturing_transport(captured: "list[httpx2.Request]") -> Any:
    import httpx2

    class CapturingTransport(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await request.aread()
            captured.append(request)
            raise CapturedRequest

    return CapturingTransport()


def _wire_name(target: ModelTarget) -> str:
    """`openai` for all of OpenAI's own interfaces, else the provider's name."""
    return "openai" if target.provider in OPENAI_KINDS else target.provider
