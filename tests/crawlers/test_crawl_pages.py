"""One pull request of a page, without reading the others: the same as by reading all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from miner.core.errors import InfrastructureFault
from miner.crawlers.github.pages import pull_on

NODES: list[dict[str, Any] | None] = [
    None,
    {"number": 1, "repository": {"databaseId": 7}, "title": "one", "labels": {"nodes": [{"name": "a"}]}},
    {"number": 2, "repository": {"databaseId": 8}, "title": "of another repository"},
    {"number": 2, "repository": {"databaseId": 7}, "title": "two"},
    {"number": 3, "repository": None, "title": "of nobody knows which"},
]


def walked(nodes: list[Any]) -> bytes:
    return json.dumps({"data": {"repository": {"pullRequests": {"totalCount": 9, "nodes": nodes}}}}).encode()


def searched(nodes: list[Any]) -> bytes:
    return json.dumps({"data": {"search": {"issueCount": 9, "nodes": nodes}}}).encode()


@pytest.mark.parametrize("page", [walked, searched])
@pytest.mark.parametrize(("number", "at"), [(1, 1), (2, 3), (3, 4)])
def test_is_found_by_number_and_repository(page: Any, number: int, at: int) -> None:
    assert pull_on(page(NODES), number, 7) == NODES[at]


@pytest.mark.parametrize("page", [walked, searched])
def test_one_that_is_not_there_is_none(page: Any) -> None:
    assert pull_on(page(NODES), 9, 7) is None
    assert pull_on(page([]), 1, 7) is None


def test_half_of_a_surrogate_pair_anywhere_on_the_page_is_no_obstacle() -> None:
    node = {"number": 5, "repository": {"databaseId": 7}, "title": "\ud83d"}
    assert pull_on(walked([*NODES, node]), 5, 7) == node
    assert pull_on(walked([node, *NODES]), 1, 7) == NODES[1]


@pytest.mark.parametrize("page", [b'{"errors": []}', b'{"data": {"repository": {"issues": 1}}}', b"<html>"])
def test_what_is_no_page_is_a_fault(page: bytes) -> None:
    with pytest.raises((InfrastructureFault, ValueError)):
        pull_on(page, 1, 7)
