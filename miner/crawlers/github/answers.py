"""From raw answers to records: pure. What GitHub's schema allows to be null may be null.

https://docs.github.com/en/graphql/reference/objects
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from miner.core.blobs import BlobStore
from miner.core.records import Fact, Record
from miner.crawlers.github.linking import named_numbers
from miner.crawlers.github.model import (
    Actor,
    ChangedFile,
    Closer,
    Comment,
    Commit,
    Edit,
    Issue,
    Pull,
    Repository,
)
from miner.crawlers.github.pages import Node, decode, lists_of, nodes, nonsense

Kind = TypeVar("Kind", bound=Record)
Reference = Issue | Literal["pull", "gone", "moved"]
Rest = Mapping[tuple[str, str], list[Any]]
"""(node id, list) -> what the list holds beyond its first page."""

PULL_LISTS = ("labels", "files", "commits", "userContentEdits", "closingIssuesReferences")
ISSUE_LISTS = ("labels", "comments", "timelineItems", "userContentEdits")
GATHERED = "answers"
"""Name of the blob that holds what the forge answered about one pull request."""

_LOOKED_UP = ("looked", "renewed")
_LISTS = tuple(dict.fromkeys((*PULL_LISTS, *ISSUE_LISTS)))


class Crawled(Record):
    """What the forge says about one merged pull request, its issues and its repository."""

    repository: Repository
    pull: Pull


def assemble(looked_up: Fact, blobs: BlobStore) -> Crawled:
    """Return the pull request of a `look_up` fact, with all its completions and references.

    Raises:
        InfrastructureFault: an answer is missing, damaged or makes no sense.
    """
    gathered = decode(blobs.get(looked_up.blobs[GATHERED]))
    try:
        repository, node = parse_repository(gathered["repository"]), gathered["pull"]
        looked, renewed = ([{"data": {"repository": gathered[name]}}] for name in _LOOKED_UP)
    except (KeyError, TypeError) as error:
        raise nonsense(f"the answers about {looked_up.key.subject} are not whole") from error
    pull = with_references(parse_pull(node), repository, looked, {})
    return Crawled(repository=repository, pull=as_renewed(pull, repository, renewed, {}))


def gather(repository: Node, node: Node, looked: Iterable[Node], renewed: Iterable[Node], rest: Rest) -> dict[str, Any]:
    """Return the answers about one pull request, and nothing else: the same whatever pages it was read from.

    Args:
        repository: what the forge says of its repository.
        node: the pull request as its page has it.
        looked: look-ups of issues that its texts name, with others.
        renewed: later ones of its issues.
        rest: what its lists and those of its issues hold beyond their first pages.
    """
    pull = whole(node, rest)
    known = parse_repository(repository)
    parsed = parse_pull(pull)
    named = set(named_numbers(parsed, known))
    own = named | {issue.number for issue in parsed.closing if issue.repository_id == known.forge_id}
    return {
        "repository": repository,
        "pull": _unpaged(pull),
        "looked": _unpaged(_only(looked, named, rest)),
        "renewed": _unpaged(_only(renewed, own, rest)),
    }


def _unpaged(value: Any) -> Any:
    """Return an answer without the cursors of its lists: they say how long the first pages were that it was read by."""
    if isinstance(value, Mapping):
        return {name: _unpaged(inside) for name, inside in value.items() if name != "pageInfo"}
    return [_unpaged(inside) for inside in value] if isinstance(value, list) else value


def _only(answers: Iterable[Node], numbers: Collection[int], rest: Rest) -> dict[str, Any]:
    """Return what look-ups say of these numbers; of an issue its newest version."""
    newest: dict[int, Node | None] = {}
    for answer in answers:
        for number, node in references_of(answer):
            known = newest.get(number)
            is_older = known is not None and node is not None and node.get("updatedAt", "") < known.get("updatedAt", "")
            if number in numbers and not is_older:
                newest[number] = node
    return {f"n{number}": node if node is None else whole(node, rest) for number, node in sorted(newest.items())}


def with_references(pull: Pull, repository: Repository, looked: Iterable[Node], rest: Rest) -> Pull:
    """Return a pull request that knows what the numbers are that its texts name; `looked` are look-ups of issues."""
    wanted = set(named_numbers(pull, repository))
    if not wanted:
        return pull
    references: dict[int, Reference] = {}
    for answer in looked:
        for number, node in references_of(answer):
            if number in wanted:
                references[number] = parse_reference(node, repository.forge_id, rest)
    return pull.model_copy(update={"references": references})


def as_renewed(pull: Pull, repository: Repository, renewed: Iterable[Node], rest: Rest) -> Pull:
    """Return a pull request with its issues as later answers have them; `renewed` are look-ups of issues."""
    closing, references = pull.closing, dict(pull.references)
    for answer in renewed:
        for number, node in references_of(answer):
            now = parse_reference(node, repository.forge_id, rest)
            own = [one.number == number and one.repository_id == repository.forge_id for one in closing]
            found = [_later(one, now) if is_it else one for one, is_it in zip(closing, own, strict=True)]
            closing = tuple(one for one in found if isinstance(one, Issue))
            if number in references or len(closing) < len(own):
                references[number] = _later(references.get(number, now), now)
    return pull.model_copy(update={"closing": closing, "references": references})


def _later(known: Reference, now: Reference) -> Reference:
    is_older = isinstance(known, Issue) and isinstance(now, Issue) and now.updated_at <= known.updated_at
    return known if is_older else now


def references_of(answer: Node) -> Iterator[tuple[int, Node | None]]:
    """Yield (number, node or None) of a look-up of issues."""
    for name, node in ((answer.get("data") or {}).get("repository") or {}).items():
        if name[:1] == "n" and name[1:].isdecimal():
            yield int(name[1:]), node


def parse_reference(node: Node | None, repository_id: int, rest: Rest) -> Reference:
    """Return what a number turned out to be."""
    if node is None:
        return "gone"
    if node.get("__typename") == "PullRequest":
        return "pull"
    issue = parse_issue(whole(node, rest))
    return issue if issue.repository_id == repository_id else "moved"


def parse_repository(node: Node) -> Repository:
    """Read a repository, as the documents of repositories ask for it."""
    parent = node.get("parent") or {}
    licence = node.get("licenseInfo") or {}
    newest = [*nodes(node.get("newestIssue")), *nodes(node.get("newestPull"))]
    return _record(
        Repository,
        forge_id=node.get("databaseId"),
        node_id=node.get("id"),
        full_name=node.get("nameWithOwner"),
        default_branch=(node.get("defaultBranchRef") or {}).get("name"),
        languages={
            edge["node"]["name"]: edge["size"]
            for edge in (node.get("languages") or {}).get("edges") or ()
            if edge is not None
        },
        spdx=licence.get("spdxId"),
        stars=node.get("stargazerCount") or 0,
        forks=node.get("forkCount") or 0,
        disk_kb=node.get("diskUsage") or 0,
        created_at=node.get("createdAt"),
        pushed_at=node.get("pushedAt"),
        updated_at=node.get("updatedAt"),
        is_fork=bool(node.get("isFork")),
        is_archived=bool(node.get("isArchived")),
        is_template=bool(node.get("isTemplate")),
        is_private=bool(node.get("isPrivate")),
        is_mirror=bool(node.get("isMirror")),
        is_unavailable=bool(node.get("isDisabled") or node.get("isLocked")),
        has_issues=node.get("hasIssuesEnabled") is not False,
        parent=parent.get("nameWithOwner"),
        network_id=parent.get("databaseId") or node.get("databaseId") or 0,
        newest_number=max((one["number"] for one in newest), default=0),
    )


def parse_pull(node: Node) -> Pull:
    """Read a merged pull request; lists longer than their page are read as far as the node holds them (`whole`)."""
    head = node.get("headRepository") or {}
    merge = node.get("mergeCommit") or {}
    own = node.get("repository") or {}
    return _record(
        Pull,
        node_id=node.get("id"),
        repository_id=own.get("databaseId"),
        repository=own.get("nameWithOwner"),
        number=node.get("number"),
        **_texts(node),
        merged_at=node.get("mergedAt"),
        base_branch=node.get("baseRefName"),
        base_oid=node.get("baseRefOid"),
        head_branch=node.get("headRefName"),
        head_oid=node.get("headRefOid"),
        head_repository_id=head.get("databaseId"),
        head_repository=head.get("nameWithOwner"),
        merge_commit=merge.get("oid"),
        merge_parents=tuple(parent["oid"] for parent in nodes(merge.get("parents"))),
        merge_message=merge.get("message") or "",
        changed_files=node.get("changedFiles") or 0,
        additions=node.get("additions") or 0,
        deletions=node.get("deletions") or 0,
        files=tuple(_file(one) for one in nodes(node.get("files"))),
        commits=tuple(_commit(one["commit"]) for one in nodes(node.get("commits")) if one.get("commit")),
        closing=tuple(parse_issue(one) for one in nodes(node.get("closingIssuesReferences"))),
    )


def parse_issue(node: Node) -> Issue:
    """Read an issue; lists longer than their page are read as far as the node holds them (`whole`)."""
    own = node.get("repository") or {}
    return _record(
        Issue,
        node_id=node.get("id"),
        repository_id=own.get("databaseId"),
        repository=own.get("nameWithOwner"),
        number=node.get("number"),
        **_texts(node),
        state=node.get("state"),
        state_reason=node.get("stateReason"),
        locked=bool(node.get("locked")),
        comments=tuple(_comment(one) for one in nodes(node.get("comments"))),
        closers=tuple(closer for one in nodes(node.get("timelineItems")) if (closer := _closer(one)) is not None),
    )


def rest_of(answers: Iterable[Node]) -> Rest:
    """Return what lists hold beyond their first page, from answers that go on with one of them each, in order."""
    rest: dict[tuple[str, str], list[Any]] = {}
    for answer in answers:
        node = (answer.get("data") or {}).get("node") or {}
        for name, more in lists_of(node, _LISTS):
            rest.setdefault((node["id"], name), []).extend(more.get("nodes") or ())
    return rest


def whole(node: Node, rest: Rest) -> Node:
    """Return a pull request or issue with its lists completed, and those of its issues."""
    if not rest:
        return node
    lists = {name: whole_list(node, name, rest) for name, _ in lists_of(node, _LISTS)}
    return {**node, **lists}


def whole_list(node: Node, name: str, rest: Rest) -> Node:
    """Return one list of a node, completed."""
    found = [*(node[name].get("nodes") or ()), *rest.get((node.get("id") or "", name), ())]
    if name == "closingIssuesReferences":
        found = [None if issue is None else whole(issue, rest) for issue in found]
    return {**node[name], "nodes": found}


def _texts(node: Node) -> dict[str, Any]:
    """Return the fields that a pull request and an issue have in common."""
    edits = [_edit(one) for one in nodes(node.get("userContentEdits"))]
    return {
        "title": node.get("title") or "",
        "body": node.get("body") or "",
        "url": node.get("url") or "",
        "created_at": node.get("createdAt"),
        "updated_at": node.get("updatedAt"),
        "closed_at": node.get("closedAt"),
        "last_edited_at": node.get("lastEditedAt"),
        "author": _actor(node),
        "labels": tuple(label["name"] for label in nodes(node.get("labels"))),
        "edits": tuple(sorted(edits, key=lambda edit: edit.edited_at)),
    }


def _actor(node: Node) -> Actor | None:
    author = node.get("author")
    return None if author is None else _record(Actor, login=author.get("login"), kind=author.get("__typename"))


def _edit(node: Node) -> Edit:
    text = node.get("diff") if node.get("deletedAt") is None else None
    return _record(Edit, edited_at=node.get("editedAt"), text=text)


def _comment(node: Node) -> Comment:
    return _record(
        Comment,
        node_id=node.get("id"),
        body=node.get("body") or "",
        created_at=node.get("createdAt"),
        last_edited_at=node.get("lastEditedAt"),
        author=_actor(node),
    )


def _closer(node: Node) -> Closer | None:
    """Return what closed an issue; None where a person did, or the forge does not show it."""
    closer = node.get("closer") or {}
    kind = closer.get("__typename")
    if kind not in ("PullRequest", "Commit"):
        return None
    return _record(
        Closer,
        at=node.get("createdAt"),
        repository_id=(closer.get("repository") or {}).get("databaseId"),
        pull=closer.get("number") if kind == "PullRequest" else None,
        commit=closer.get("oid") if kind == "Commit" else None,
    )


def _commit(node: Node) -> Commit:
    return _record(
        Commit,
        oid=node.get("oid"),
        message=node.get("message") or "",
        authored_at=node.get("authoredDate"),
        committed_at=node.get("committedDate"),
    )


def _file(node: Node) -> ChangedFile:
    return _record(
        ChangedFile,
        path=node.get("path"),
        additions=node.get("additions") or 0,
        deletions=node.get("deletions") or 0,
        change=node.get("changeType"),
    )


def _record(kind: type[Kind], /, **fields: Any) -> Kind:
    try:
        return kind(**fields)
    except ValidationError as error:
        wrong = ", ".join(sorted({".".join(map(str, item["loc"])) for item in error.errors()}))
        raise nonsense(f"{kind.__name__} without a usable {wrong}") from error
