"""REST answers of the forge against the OpenAPI description that GitHub publishes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from openapi_schema_validator import OAS30Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4

from forge import Actor, Forge, World
from forge.contract import OPENAPI, can_fetch, contract
from forge.rest import ROUTES

pytestmark = pytest.mark.index
HERE = "urn:github"
Errors = Callable[[str, str, Any], list[str]]

ASKED = {
    "/rate_limit": ["/rate_limit"],
    "/user": ["/user"],
    "/search/repositories": ["/search/repositories?q=language:python"],
    "/search/issues": ["/search/issues?q=repo:octo/lib+is:pr", "/search/issues?q=repo:octo/lib+is:issue"],
    "/repos/{owner}/{repo}": ["/repos/octo/lib", "/repos/fan/lib", "/repos/octo/bare"],
    "/repos/{owner}/{repo}/pulls": ["/repos/octo/lib/pulls?state=all"],
    "/repos/{owner}/{repo}/pulls/{pull_number}": ["/repos/octo/lib/pulls/2", "/repos/octo/lib/pulls/3"],
    "/repos/{owner}/{repo}/pulls/{pull_number}/commits": ["/repos/octo/lib/pulls/2/commits"],
    "/repos/{owner}/{repo}/pulls/{pull_number}/files": ["/repos/octo/lib/pulls/2/files"],
    "/repos/{owner}/{repo}/issues": ["/repos/octo/lib/issues?state=all"],
    "/repos/{owner}/{repo}/issues/{issue_number}": ["/repos/octo/lib/issues/1", "/repos/octo/lib/issues/2"],
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ["/repos/octo/lib/issues/1/comments"],
    "/repos/{owner}/{repo}/issues/{issue_number}/timeline": ["/repos/octo/lib/issues/1/timeline"],
    "/repos/{owner}/{repo}/commits": ["/repos/octo/lib/commits"],
}


@pytest.fixture(scope="module")
def errors() -> Errors:
    if not can_fetch():
        pytest.skip("no npm, and NPM_CONFIG_REGISTRY names no registry")
    description = json.loads(contract(OPENAPI).read_text(encoding="utf-8"))
    registry: Registry[Any] = Registry().with_resource(
        HERE, Resource.from_contents(description, default_specification=DRAFT4)
    )

    def errors(path: str, status: str, value: Any) -> list[str]:
        response = description["paths"][path]["get"]["responses"][status]
        place = response.get("$ref", f"#/paths/{path.replace('/', '~1')}/get/responses/{status}")
        validator = OAS30Validator({"$ref": f"{HERE}{place}/content/application~1json/schema"}, registry=registry)
        return [
            f"{'/'.join(map(str, error.path))}: {error.message[:300]}"
            for error in validator.iter_errors(value)
            if error.instance is not None or not _may_be_null(path, error)
        ]

    return errors


def _may_be_null(path: str, error: Any) -> bool:
    """Whether null stands where GitHub is known to give it, though its description does not say so everywhere.

    A head repository: https://github.com/github/rest-api-description/issues/1811; the user of a pull request, and a
    body in a search, which it says may be null in other answers; a nullable enumeration that does not name null.
    """
    field = error.path[-1] if error.path else ""
    return field in ("repo", "body") or (field == "user" and "/pulls" in path) or bool(error.schema.get("nullable"))


@pytest.fixture
def world() -> World:
    """One of everything: ghosts, bots, a deleted fork, a binary file, no licence, closed by a commit."""
    world = World()
    repo = world.repository("octo/lib", files={"lib.py": "1\n", "gone.py": "2\n"})
    issue = repo.issue(author=None, labels=["bug"])
    repo.comment(issue, "Yes.", at="2025-04-03T00:00:00Z", author=None, edits=[("2025-04-04T00:00:00Z", "No.")])
    files = {"lib.py": "2\n", "gone.py": None, "image.png": b"\x89PNG\0\1", "new.py": "n\n"}
    repo.pull("Fix", files=files, merge="squash", closes=[issue], fork="fan", author="renovate[bot]", labels=["fix"])
    repo.pull("Open", files={"lib.py": "3\n"}, author=None, fork="gone")
    world.delete(world.fork(repo, "gone"))
    repo.commit({"lib.py": "4\n"}, at="2025-05-12T00:00:00Z", closes=[repo.issue(author=Actor("m", "Mannequin"))])
    world.bare("octo/bare", license=None, languages={})
    return world


def test_every_endpoint_is_looked_at() -> None:
    assert ASKED.keys() == ROUTES.keys()


@pytest.mark.parametrize("path", ASKED)
def test_answers_hold_what_the_description_requires(path: str, errors: Errors, forge: Forge, get: Any) -> None:
    for asked in ASKED[path]:
        answer = get(asked)
        assert answer.status_code == 200, asked
        assert answer.json(), asked
        assert errors(path, "200", answer.json()) == [], asked


def test_an_answer_without_a_required_field_is_seen(errors: Errors, get: Any) -> None:
    pull = get("/repos/octo/lib/pulls/2").json()
    del pull["merged"]
    assert errors("/repos/{owner}/{repo}/pulls/{pull_number}", "200", pull) == [": 'merged' is a required property"]


def test_refusals_hold_what_the_description_requires(errors: Errors, get: Any, world: World) -> None:
    path = "/repos/{owner}/{repo}"
    assert errors(path, "404", get("/repos/no/thing").json()) == []
    repo = world.find("octo/lib")
    assert repo is not None
    repo.delete_issue(1)
    assert errors(f"{path}/issues/{{issue_number}}", "410", get("/repos/octo/lib/issues/1").json()) == []
    repo.rename("octo/library")
    moved = get("/repos/octo/lib")
    assert moved.status_code == 301
    assert errors(path, "301", moved.json()) == []
