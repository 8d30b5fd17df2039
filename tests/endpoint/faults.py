"""What goes wrong before a model has said anything: errors with a status, and what a network does."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

from endpoint.exchange import Answer, Asked, Behaviour, Wire, answer, error
from endpoint.replies import text

PAGE = b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>\n"


def fails(status: int, message: str, kind: str, *, code: str | None = None, **headers: str) -> Behaviour:
    """Answer with an error of the documented shape. https://platform.openai.com/docs/guides/error-codes"""
    return lambda _: error(status, message, kind, code=code, **headers)


def rate_limited(retry_after: float | None = None, date: bool = False) -> Behaviour:
    """429, with the seconds to wait, with the date to wait for, or with neither.

    https://platform.openai.com/docs/guides/rate-limits
    https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
    """
    message = "Rate limit reached for requests. Please try again later."

    def behave(_: Asked) -> Answer:
        headers = {}
        if retry_after is not None:
            when = formatdate(time.time() + retry_after, usegmt=True)
            headers["retry_after"] = when if date else f"{retry_after:g}"
        return error(429, message, "requests", code="rate_limit_exceeded", **headers)

    return behave


def odd_retry_after(value: str = "soon") -> Behaviour:
    """429 with a Retry-After that is none: a word, a negative number, "nan", a century.

    https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
    """
    return fails(429, "Rate limit reached for requests.", "requests", code="rate_limit_exceeded", retry_after=value)


def insufficient_quota() -> Behaviour:
    """429 that no waiting helps: the account has no money left. https://platform.openai.com/docs/guides/error-codes"""
    message = "You exceeded your current quota, please check your plan and billing details."
    return fails(429, message, "insufficient_quota", code="insufficient_quota")


def payment_required() -> Behaviour:
    """402: no credits left. https://openrouter.ai/docs/api-reference/errors"""
    return lambda _: answer({"error": {"code": 402, "message": "Insufficient credits"}}, 402)


def server_error() -> Behaviour:
    """500. https://platform.openai.com/docs/guides/error-codes"""
    return fails(500, "The server had an error while processing your request. Sorry about that!", "server_error")


def bad_gateway() -> Behaviour:
    """502 with the page of a proxy. https://platform.openai.com/docs/guides/error-codes"""
    return lambda _: Answer(502, ((PAGE, 1),), {"content-type": "text/html"})


def overloaded() -> Behaviour:
    """503. https://platform.openai.com/docs/guides/error-codes"""
    message = "The engine is currently overloaded, please try again later."
    return fails(503, message, "service_unavailable")


def error_in_200() -> Behaviour:
    """The failure of a provider behind a gateway that has already said 200.

    https://openrouter.ai/docs/api-reference/errors
    """
    return lambda _: answer({"error": {"code": 502, "message": "Provider returned error"}})


def login_refused() -> Behaviour:
    """401: the key is wrong. https://platform.openai.com/docs/guides/error-codes"""
    return fails(401, "Incorrect API key provided.", "invalid_request_error", code="invalid_api_key")


def key_echoed(status: int = 401) -> Behaviour:
    """An error that repeats the key, in its message and in a header.

    https://github.com/Unstructured-IO/unstructured-api/pull/578
    """

    def behave(asked: Asked) -> Answer:
        message = f"API key {asked.key} is invalid (Authorization: Bearer {asked.key})"
        return error(status, message, "invalid_request_error", code="invalid_api_key", x_received=asked.key)

    return behave


def key_in_reply() -> Behaviour:
    """A reply that repeats the key, as one of a gateway may that shows what it received.

    https://github.com/Unstructured-IO/unstructured-api/pull/578
    """
    return lambda asked: text(f"Received Authorization: Bearer {asked.key}")(asked)


def forbidden() -> Behaviour:
    """403: the country, the project or the key may not. https://platform.openai.com/docs/guides/error-codes"""
    message = "Country, region, or territory not supported"
    return fails(403, message, "request_forbidden", code="unsupported_country_region_territory")


def moderated() -> Behaviour:
    """403: this one text may not, whatever comes next may. https://openrouter.ai/docs/api-reference/errors"""
    message = "Your chosen model requires moderation and your input was flagged"
    return lambda _: answer({"error": {"code": 403, "message": message, "metadata": {"reasons": ["violence"]}}}, 403)


def firewalled() -> Behaviour:
    """403 with the page of a firewall, which one text may have met. https://www.rfc-editor.org/rfc/rfc9110#section-15.5.4"""
    page = b"<html><head><title>403 Forbidden</title></head><body>Request blocked.</body></html>"
    return lambda _: Answer(403, ((page, 1),), {"content-type": "text/html"})


def model_not_found() -> Behaviour:
    """404. https://platform.openai.com/docs/guides/error-codes"""

    def behave(asked: Asked) -> Answer:
        message = f"The model `{asked.model}` does not exist or you do not have access to it."
        return error(404, message, "invalid_request_error", code="model_not_found")

    return behave


def context_exceeded() -> Behaviour:
    """400: the conversation is longer than the model reads. https://github.com/rahul2002m/ChatPDF/issues/9"""
    message = "This model's maximum context length is 2048 tokens. However, your messages resulted in 6988 tokens."
    return lambda _: error(400, message, "invalid_request_error", code="context_length_exceeded", param="messages")


def max_tokens_unsupported() -> Behaviour:
    """400 where `max_tokens` stands, a reply where `max_completion_tokens` does.

    https://github.com/griptape-ai/ComfyUI-Griptape/issues/312
    """
    message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
    return _without("max_tokens", f"{message}instead.", "unsupported_parameter")


def max_completion_tokens_unsupported() -> Behaviour:
    """The other way round: an older server that only knows `max_tokens`.

    https://platform.openai.com/docs/api-reference/chat/create#chat_create-max_tokens
    """
    message = "Unrecognized request argument supplied: max_completion_tokens"
    return _without("max_completion_tokens", message, None)


def temperature_unsupported() -> Behaviour:
    """400 for any temperature but the model's own. https://platform.openai.com/docs/guides/reasoning"""
    message = "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is "
    return _without("temperature", f"{message}supported.", "unsupported_value")


def form_unsupported() -> Behaviour:
    """400 for a form by JSON schema. https://github.com/llm-exe/llm-exe/issues/662"""
    return _without("response_format", "This response_format type is unavailable now", "invalid_request_error")


def tools_unsupported() -> Behaviour:
    """400 for tools. https://github.com/ollama/ollama/issues/6027"""
    return _without("tools", "stablelm2:latest does not support tools", None)


def _without(parameter: str, message: str, code: str | None) -> Behaviour:
    """Refuse requests with a parameter, and answer those without it."""

    def behave(asked: Asked) -> Answer:
        if parameter in asked.value:
            return error(400, message, "invalid_request_error", code=code, param=parameter)
        return text("fine without it")(asked)

    return behave


def redirected(to: str, status: int = 307) -> Behaviour:
    """Sent elsewhere: the key must not go along to another host.

    https://www.rfc-editor.org/rfc/rfc9110#section-15.4
    """
    return lambda _: Answer(status, (), {"location": to})


def never_answers() -> Behaviour:
    """Nothing comes, and the connection stays. https://platform.openai.com/docs/guides/error-codes (APITimeoutError)"""
    return lambda _: Answer(wire="silent")


def drips() -> Behaviour:
    """Blank lines for ever, each before a time-out of reading: "keep-alive" of a queue, as DeepSeek documents it.

    https://api-docs.deepseek.com/quick_start/rate_limit
    https://github.com/SillyTavern/SillyTavern/pull/4351
    """
    return lambda _: Answer(headers={"content-type": "application/json"}, wire="drip")


def stalls() -> Behaviour:
    """Half of the body comes, and then nothing. https://www.rfc-editor.org/rfc/rfc9112#section-8"""
    return _broken("stalled")


def connection_closed() -> Behaviour:
    """The connection ends without an answer. https://www.rfc-editor.org/rfc/rfc9112#section-9.5"""
    return _broken("closed")


def connection_reset() -> Behaviour:
    """The connection breaks. https://www.rfc-editor.org/rfc/rfc9112#section-9.5"""
    return _broken("reset")


def cut() -> Behaviour:
    """The body is shorter than its Content-Length. https://www.rfc-editor.org/rfc/rfc9112#section-8"""
    return _broken("cut")


def cut_chunks() -> Behaviour:
    """A chunked body without its last chunk. https://www.rfc-editor.org/rfc/rfc9112#section-8"""
    return _broken("chunked-cut")


def _broken(wire: Wire) -> Behaviour:
    def behave(asked: Asked) -> Answer:
        whole = text("hello " * 100)(asked)
        return Answer(whole.status, whole.parts, whole.headers, wire)

    return behave


def error_body(value: Any, status: int = 500) -> Behaviour:
    """An error whose body is of another shape than the documented one: a list, a number, a string, null.

    https://github.com/kenlasko/monize/pull/405
    """
    return lambda _: answer(value, status)
