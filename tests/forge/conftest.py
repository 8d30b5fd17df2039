"""Fixtures of the forge's own tests: a world with one repository, a forge that shows it, and two plain clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from forge import Forge, Repo, World

TOKEN = {"Authorization": "Bearer a-token"}
Ask = Callable[..., requests.Response]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def repo(world: World) -> Repo:
    return world.repository("octo/lib", files={"lib.py": "value = 1\n"})


@pytest.fixture
def forge(world: World) -> Iterator[Forge]:
    with Forge(world) as forge:
        yield forge


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


@pytest.fixture
def ask(forge: Forge, session: requests.Session) -> Ask:
    """Send a GraphQL document."""

    def send(document: str, *, headers: dict[str, str] = TOKEN, **variables: Any) -> requests.Response:
        return session.post(
            forge.graphql_url, json={"query": document, "variables": variables}, headers=headers, timeout=5
        )

    return send


@pytest.fixture
def get(forge: Forge, session: requests.Session) -> Ask:
    """Get a path of the REST API."""

    def send(path: str, *, headers: dict[str, str] = TOKEN, **params: Any) -> requests.Response:
        url = f"{forge.api_url}{path}"
        return session.get(url, params=params, headers={**TOKEN, **headers}, timeout=5, allow_redirects=False)

    return send
