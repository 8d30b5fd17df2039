"""The list of an endpoint's models, which costs nothing to ask for: whether the endpoint is well, and what it has.

https://platform.openai.com/docs/api-reference/models/list
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from installers.models.reading import Nonsense, parsed
from miner.core.errors import ModelFault
from miner.core.reasons import Reason
from miner.core.settings import Endpoint

_NO_LIST = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.FORBIDDEN)
"""Answers of an endpoint that gives no list: a key may talk to models without the right to list them."""
_REASONS: Mapping[int, Reason] = {
    HTTPStatus.UNAUTHORIZED: Reason.MODEL_LOGIN,
    HTTPStatus.PAYMENT_REQUIRED: Reason.MODEL_LIMITED,
    HTTPStatus.TOO_MANY_REQUESTS: Reason.MODEL_LIMITED,
}


def names_listed(endpoint: Endpoint, environ: Mapping[str, str], within_s: float) -> frozenset[str] | None:
    """Return the names that a well endpoint lists; None where it has no list, which is an answer as well.

    Args:
        endpoint: its settings.
        environ: holds its address and its key, and names certificates.
        within_s: how long it may take, altogether.

    Raises:
        ModelFault: it is not well: no answer, an error, or a page of something else in its place.
        ConfigError: the address, the key or the file of certificates cannot be used.
    """
    from installers.models.wire import Silence, Wire  # its SDK takes a second to import: not for every command

    wire = Wire(endpoint, environ, threading.Event())
    answer = wire.listed(within_s)
    if isinstance(answer, Silence):
        raise ModelFault(
            f"the endpoint of language models gives no answer ({answer.detail})",
            next_step=f"check the network, {endpoint.url_env} and endpoint.ca_bundle",
        )
    if answer.status in _NO_LIST:
        return None
    if answer.status != HTTPStatus.OK:
        raise _unwell(endpoint, answer.status)
    try:
        return _names(parsed(answer.body, wire.redact))
    except Nonsense as error:
        raise _ill(endpoint, f"gives no list of them: {error}", Reason.MODEL_ERROR) from None


def _unwell(endpoint: Endpoint, status: int) -> ModelFault:
    reason = _REASONS.get(status, Reason.MODEL_ERROR)
    if reason is Reason.MODEL_LOGIN:
        message = f"the endpoint of language models refuses the key ({status})"
        return ModelFault(message, reason=reason, next_step=f"put a valid key into {endpoint.key_env}")
    return _ill(endpoint, f"answers with status {status}", reason)


def _ill(endpoint: Endpoint, what: str, reason: Reason) -> ModelFault:
    how = f"try again later, and check that {endpoint.url_env} is the base of the endpoint, as in https://host/v1"
    return ModelFault(f"the endpoint of language models {what}", reason=reason, next_step=how)


def _names(value: Any) -> frozenset[str] | None:
    """Return the names in a list of models, None where a JSON value is none."""
    try:
        return frozenset(str(one["id"]) for one in value["data"])
    except (LookupError, TypeError):
        return None
