"""A plain client for the endpoint's own tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from endpoint import Endpoint

HELLO = [{"role": "user", "content": "hello"}]
Ask = Callable[..., requests.Response]


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


@pytest.fixture
def ask(session: requests.Session) -> Ask:
    """Ask for a completion; members are those of the request."""

    def send(endpoint: Endpoint, *, key: str = "a-key", wait_s: float = 5, **members: Any) -> requests.Response:
        sent = {"model": "a-model", "messages": HELLO, **members}
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return session.post(f"{endpoint.url}/chat/completions", json=sent, headers=headers, timeout=wait_s)

    return send
