"""GraphQL over the world: the schema, and where each of its fields is found.

Fields whose name is that of a record's attribute (in snake case) are read from it; the others stand in `_FIELDS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from graphql import (
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
)

from forge import nodes
from forge.nodes import CommitIn, Missing, Named
from forge.pages import Page, search_page, shelf_page, slice_of
from forge.records import Actor, Issue, Pull
from forge.repository import Repo
from forge.search import BadQuery, item_of, search_issues, search_repositories
from forge.shelf import By
from forge.world import World

SCHEMA = Path(__file__).with_name("schema.graphql")
Info: TypeAlias = "GraphQLResolveInfo[Any]"
_TYPES: dict[type, str] = {
    Repo: "Repository",
    Issue: "Issue",
    Pull: "PullRequest",
    CommitIn: "Commit",
    nodes.ClosedIn: "ClosedEvent",
    nodes.CommentIn: "IssueComment",
}


@dataclass
class Context:
    """What a document is executed with."""

    world: World
    rate: Mapping[str, Any]


@cache
def load_schema() -> GraphQLSchema:
    """Return the schema with its resolvers."""
    schema = build_schema(SCHEMA.read_text(encoding="utf-8"))
    for name, type_ in schema.type_map.items():
        if isinstance(type_, GraphQLObjectType) and not name.startswith("__"):
            for field_name, field in type_.fields.items():
                field.resolve = _FIELDS.get(f"{name}.{field_name}") or _attribute(field_name)
        elif isinstance(type_, GraphQLInterfaceType | GraphQLUnionType):
            type_.resolve_type = _type_of
    return schema


def _attribute(name: str) -> Callable[..., Any]:
    get = attrgetter(re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower())

    def resolve(source: Any, info: Info, **arguments: Any) -> Any:
        return get(source)

    return resolve


def _type_of(value: Any, info: Info, type_: Any) -> str:
    return value.kind if isinstance(value, Actor) else _TYPES[type(value)]


def _of(get: Callable[[Any], Any]) -> Callable[..., Any]:
    """Make a resolver of a function of the source alone."""

    def resolve(source: Any, info: Info, **arguments: Any) -> Any:
        return get(source)

    return resolve


def _list(get: Callable[[Any], Any]) -> Callable[..., Any]:
    """Make a resolver of a list inside an item."""

    def resolve(
        source: Any,
        info: Info,
        first: int | None = None,
        after: str | None = None,
        last: int | None = None,
        before: str | None = None,
        **arguments: Any,
    ) -> Page:
        return slice_of(get(source), first, after, last, before)

    return resolve


def _shelf(name: str) -> Callable[..., Any]:
    get = attrgetter(name)

    def resolve(
        repo: Repo,
        info: Info,
        first: int | None = None,
        after: str | None = None,
        states: list[str] | None = None,
        order_by: Any = None,
        last: int | None = None,
        **arguments: Any,
    ) -> Page:
        order = arguments.get("orderBy") or order_by or {"field": "CREATED_AT", "direction": "ASC"}
        descending = order["direction"] == "DESC"
        by: By = "updated" if order["field"] == "UPDATED_AT" else "created"
        if first is None:
            first, descending = last or 0, not descending
        return shelf_page(get(repo), by, frozenset(states or ()), first, after, descending=descending)

    return resolve


def _repository(root: None, info: Info, owner: str, name: str, followRenames: bool = True) -> Repo:  # noqa: N803 - GraphQL's
    repo: Repo | None = info.context.world.find(f"{owner}/{name}")
    if repo is None or (not followRenames and repo.full_name.lower() != f"{owner}/{name}".lower()):
        raise Missing(f"Could not resolve to a Repository with the name '{owner}/{name}'.")
    if repo.blocked is not None:
        raise Missing("Repository access blocked", "FORBIDDEN")
    return repo


def _search(
    root: None,
    info: Info,
    query: str,
    type: str,  # noqa: A002 - GraphQL's
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    **arguments: Any,
) -> Page:
    world = info.context.world
    size = first or last or 0
    try:
        if type == "REPOSITORY":
            page = search_page(search_repositories(world, query), size, after, lambda repo: repo)
        else:
            page = search_page(search_issues(world, query), size, after, lambda found: item_of(*found))
    except BadQuery:
        page = Page()
    page.sizes = {"issue": 0, "repository": 0, "repository" if type == "REPOSITORY" else "issue": page.total_count}
    return page


def _number(*kinds: str) -> Callable[..., Any]:
    what = "an issue or pull request" if len(kinds) > 1 else "an Issue" if kinds == ("issues",) else "a PullRequest"

    def resolve(repo: Repo, info: Info, number: int) -> Issue | Pull:
        for kind in kinds:
            item: Issue | Pull | None = getattr(repo, kind).get(number)
            if item is not None and not (isinstance(item, Issue) and (item.deleted or item.moved_to)):
                return item
        raise Missing(f"Could not resolve to {what} with the number of {number}.")

    return resolve


def _languages(repo: Repo, info: Info, first: int | None = None, after: str | None = None, **_: Any) -> Page:
    sizes = sorted(repo.languages.items(), key=lambda item: (-item[1], item[0]))
    page = slice_of(sizes, first, after)
    page.sizes = dict(sizes)
    return page


_EDITS = _list(lambda item: [nodes.EditOf(item, index) for index in range(len(item.edits))])
_LABELS = _list(lambda item: [Named("LA", f"{item.repo.repo_id}_{name}", name) for name in item.labels])
_URL = _of(nodes.url_of)

_FIELDS: dict[str, Callable[..., Any]] = {
    "Query.repository": _repository,
    "Query.search": _search,
    "Query.rateLimit": lambda root, info, **_: Named.rate(info.context.rate),
    "Query.node": lambda root, info, **given: nodes.find(info.context.world, given["id"]),
    "Query.viewer": lambda root, info: Actor("octocat"),
    "Repository.id": _of(nodes.id_of),
    "Repository.databaseId": _of(lambda repo: repo.repo_id),
    "Repository.nameWithOwner": _of(lambda repo: repo.full_name),
    "Repository.url": _URL,
    "Repository.isFork": _of(lambda repo: repo.parent is not None),
    "Repository.hasIssuesEnabled": _of(lambda repo: repo.has_issues),
    "Repository.diskUsage": _of(lambda repo: repo.disk_kb),
    "Repository.stargazerCount": _of(lambda repo: repo.stars),
    "Repository.forkCount": _of(lambda repo: repo.forks),
    "Repository.defaultBranchRef": _of(lambda repo: None if repo.is_empty else nodes.RefOf(repo, repo.default_branch)),
    "Repository.licenseInfo": _of(lambda repo: None if repo.license is None else nodes.LicenseOf(repo.license)),
    "Repository.primaryLanguage": _of(nodes.primary_language),
    "Repository.languages": _languages,
    "Repository.issues": _shelf("issues"),
    "Repository.pullRequests": _shelf("pulls"),
    "Repository.issue": _number("issues"),
    "Repository.pullRequest": _number("pulls"),
    "Repository.issueOrPullRequest": _number("issues", "pulls"),
    "Repository.object": lambda repo, info, oid=None, expression=None: nodes.commit_of(repo, oid or expression),
    "LanguageConnection.edges": _of(lambda page: page.nodes),
    "LanguageConnection.nodes": _of(lambda page: [Named("LNG", name, name) for name, _ in page.nodes]),
    "LanguageConnection.totalSize": _of(lambda page: sum(page.sizes.values())),
    "LanguageEdge.node": _of(lambda edge: Named("LNG", edge[0], edge[0])),
    "LanguageEdge.size": _of(lambda edge: edge[1]),
    "LanguageEdge.cursor": _of(lambda edge: edge[0]),
    "SearchResultItemConnection.issueCount": _of(lambda page: page.sizes["issue"]),
    "SearchResultItemConnection.repositoryCount": _of(lambda page: page.sizes["repository"]),
    **{
        f"{kind}.{name}": get
        for kind in ("Issue", "PullRequest")
        for name, get in {
            "id": _of(nodes.id_of),
            "databaseId": _of(nodes.database_id),
            "repository": _of(lambda item: item.repo),
            "url": _URL,
            "labels": _LABELS,
            "userContentEdits": _EDITS,
        }.items()
    },
    "Issue.closed": _of(lambda issue: issue.state == "CLOSED"),
    "Issue.comments": _list(lambda issue: [nodes.CommentIn(issue, comment) for comment in issue.comments]),
    "Issue.timelineItems": _list(lambda issue: [nodes.ClosedIn(issue, event) for event in issue.closed_events]),
    "PullRequest.additions": _of(lambda pull: sum(file.additions for file in pull.files)),
    "PullRequest.deletions": _of(lambda pull: sum(file.deletions for file in pull.files)),
    "PullRequest.changedFiles": _of(lambda pull: len(pull.files)),
    "PullRequest.baseRefName": _of(lambda pull: pull.base_ref),
    "PullRequest.headRefName": _of(lambda pull: pull.head_ref),
    "PullRequest.baseRefOid": _of(lambda pull: pull.base_oid),
    "PullRequest.headRefOid": _of(lambda pull: pull.head_oid),
    "PullRequest.headRepository": _of(nodes.head_repository),
    "PullRequest.merged": _of(lambda pull: pull.state == "MERGED"),
    "PullRequest.mergeCommit": _of(
        lambda pull: None if pull.merge_commit is None else CommitIn(pull.repo, pull.merge_commit)
    ),
    "PullRequest.files": _list(lambda pull: pull.files),
    "PullRequest.commits": _list(lambda pull: [CommitIn(pull.repo, commit) for commit in pull.commits]),
    "PullRequest.closingIssuesReferences": _list(nodes.closing_of),
    "PullRequestChangedFile.changeType": _of(lambda file: file.change),
    "PullRequestCommit.commit": _of(lambda commit: commit),
    "PullRequestCommit.id": _of(lambda commit: "PRC_" + commit.id),
    "ClosedEvent.closer": _of(nodes.closer_of),
    "Commit.parents": _list(lambda commit: [nodes.commit_of(commit.repo, oid) for oid in commit.parents]),
    "Commit.repository": _of(lambda commit: commit.repo),
    **{
        f"{kind}.{name}": get
        for kind in ("User", "Bot", "Organization", "Mannequin", "EnterpriseUserAccount")
        for name, get in {
            "id": _of(lambda actor: f"U_{actor.login}"),
            "url": _of(lambda actor: f"/{actor.login}"),
            "databaseId": _of(nodes.actor_id),
        }.items()
    },
}
