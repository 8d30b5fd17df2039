"""The REST endpoints that the crawl and the collectors that it is compared with ask for.

https://docs.github.com/en/rest
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from forge import shapes
from forge.exchange import Reply, encode, reply_json
from forge.faults import blocked_value
from forge.githttp import diff_of
from forge.limits import Budgets
from forge.nodes import number_of
from forge.records import Actor, Commit, Head, Issue, Pull
from forge.repository import Repo
from forge.search import MOST, BadQuery, item_of, search_issues, search_repositories
from forge.shelf import By, Shelf
from forge.world import World

DOCS = "https://docs.github.com/rest"
ROOT = "/api/v3"


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


@dataclass
class Ask:
    """A REST request."""

    world: World
    path: str
    params: Mapping[str, str]
    accept: str
    budgets: Budgets
    token: int
    headers: dict[str, str] = field(default_factory=dict)

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.params.get(name, default))
        except ValueError:
            return default

    @property
    def size(self) -> int:
        """At most 100, 30 where it is not said: https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api"""
        return max(1, min(100, self.number("per_page", 30)))

    @property
    def page(self) -> int:
        return max(1, self.number("page", 1))

    def links(self, total: int) -> None:
        """Say where the other pages are."""
        last = max(1, -(-total // self.size))
        pages: dict[str, int] = {}
        if self.page > 1:
            pages |= {"prev": min(self.page - 1, last), "first": 1}
        if self.page < last:
            pages |= {"next": self.page + 1, "last": last}
        if pages:
            self.headers["link"] = ", ".join(
                f'<{self.world.url}{ROOT}{self.path}?{urlencode({**self.params, "page": page})}>; rel="{name}"'
                for name, page in pages.items()
            )

    def slice(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return the page of a list that is asked for."""
        self.links(len(items))
        return items[(self.page - 1) * self.size : self.page * self.size]


def answer(world: World, path: str, query: str, accept: str, budgets: Budgets, token: int) -> Reply:
    """Answer a GET request; `path` is without the root of the API."""
    ask = Ask(world, path, dict(parse_qsl(query)), accept, budgets, token)
    for pattern, handle in _COMPILED:
        if match := pattern.fullmatch(path):
            try:
                with world.lock:
                    value = handle(ask, *match.groups())
            except Refused as refused:
                return refused.reply
            if isinstance(value, Reply):
                return value
            return Reply(200, encode(value), {"content-type": "application/json; charset=utf-8", **ask.headers})
    return missing()


def missing() -> Reply:
    return reply_json(404, {"message": "Not Found", "documentation_url": DOCS, "status": "404"})


def _moved(url: str) -> Refused:
    value = {
        "message": "Moved Permanently",
        "url": url,
        "documentation_url": f"{DOCS}/guides/best-practices-for-using-the-rest-api#follow-redirects",
    }
    return Refused(reply_json(301, value, location=url))


def _invalid(message: str, **more: Any) -> Refused:
    return Refused(reply_json(422, {"message": message, **more, "documentation_url": DOCS, "status": "422"}))


def _repo(ask: Ask, owner: str, name: str) -> Repo:
    repo = ask.world.find(f"{owner}/{name}")
    if repo is not None and repo.full_name.lower() != f"{owner}/{name}".lower():
        rest = ask.path.removeprefix(f"/repos/{owner}/{name}")
        query = f"?{urlencode(ask.params)}" if ask.params else ""
        raise _moved(f"{ask.world.url}{ROOT}/repositories/{repo.repo_id}{rest}{query}")
    return _seen(repo)


def _seen(repo: Repo | None) -> Repo:
    if repo is None or repo.deleted:
        raise Refused(missing())
    if repo.blocked is not None:
        raise Refused(reply_json(451, blocked_value(repo.blocked)))
    return repo


def _by_id(ask: Ask, repo_id: str, rest: str) -> Any:
    """Answer for a repository by its id, as redirects ask for it."""
    repo = _seen(ask.world.by_id.get(int(repo_id)))
    ask.path = f"/repos/{repo.full_name}{rest}"
    for pattern, handle in _COMPILED:
        if match := pattern.fullmatch(ask.path):
            return handle(ask, *match.groups())
    raise Refused(missing())


def _pull(ask: Ask, owner: str, name: str, number: str) -> Pull:
    pull = _repo(ask, owner, name).pulls.get(int(number))
    if pull is None:
        raise Refused(missing())
    return pull


def _item(ask: Ask, owner: str, name: str, number: str) -> Issue | Pull:
    """https://docs.github.com/en/rest/issues/issues#get-an-issue"""
    repo = _repo(ask, owner, name)
    item = repo.issues.get(int(number)) or repo.pulls.get(int(number))
    if item is None:
        raise Refused(missing())
    if isinstance(item, Issue) and item.moved_to is not None:
        if not ask.path.endswith(f"/issues/{number}"):
            raise Refused(missing())  # the redirect is for the issue, not for what is below it
        to, moved = item.moved_to
        raise _moved(f"{ask.world.url}{ROOT}/repositories/{to}/issues/{moved}")
    if isinstance(item, Issue) and item.deleted:
        value = {
            "message": "This issue was deleted",
            "documentation_url": f"{DOCS}/issues/issues#get-an-issue",
            "status": "410",
        }
        raise Refused(reply_json(410, value))
    return item


def _shelf_page(ask: Ask, shelf: Shelf[Any], state: str) -> list[Any]:
    by: By = "updated" if ask.params.get("sort") == "updated" else "created"
    states = {"open": {"OPEN"}, "closed": {"CLOSED", "MERGED"}}.get(state, set())
    default = "desc" if by == "created" or "sort" not in ask.params else "asc"
    keys, total = shelf.page(
        by,
        frozenset(states),
        (ask.page - 1) * ask.size,
        ask.size,
        descending=ask.params.get("direction", default) == "desc",
    )
    ask.links(total)
    return [shelf[number] for _, number in keys]


def _list_pulls(ask: Ask, owner: str, name: str) -> Any:
    """https://docs.github.com/en/rest/pulls/pulls#list-pull-requests"""
    repo = _repo(ask, owner, name)
    return [shapes.pull_simple(pull) for pull in _shelf_page(ask, repo.pulls, ask.params.get("state", "open"))]


def _list_issues(ask: Ask, owner: str, name: str) -> Any:
    """Issues and pull requests together: https://docs.github.com/en/rest/issues/issues#list-repository-issues"""
    repo = _repo(ask, owner, name)
    state, field_ = ask.params.get("state", "open"), f"{ask.params.get('sort', 'created')}_at"
    heads: list[tuple[str, int, Head, bool]] = [
        (getattr(head, field_, head.created_at), head.number, head, pulls)
        for shelf, pulls in ((repo.issues, False), (repo.pulls, True))
        for head in shelf.heads
        if state == "all" or (head.state == "OPEN") == (state == "open")
    ]
    if (since := ask.params.get("since")) is not None:
        heads = [head for head in heads if head[2].updated_at >= since]
    heads.sort(key=lambda head: head[:2], reverse=ask.params.get("direction", "desc") == "desc")
    return [shapes.issue(item_of(repo, head, pull)) for _, _, head, pull in ask.slice(heads)]


def _get_pull(ask: Ask, owner: str, name: str, number: str) -> Any:
    """https://docs.github.com/en/rest/pulls/pulls#get-a-pull-request"""
    pull = _pull(ask, owner, name, number)
    for kind in ("diff", "patch"):
        if re.search(rf"application/vnd\.github\.(v3\.)?{kind}", ask.accept):
            return Reply(200, diff_text(pull, kind), {"content-type": f"application/vnd.github.{kind}; charset=utf-8"})
    return shapes.pull_full(pull)


def diff_text(pull: Pull, kind: str) -> bytes:
    """Return the diff of a pull request: git's own where it has a repository, else made of its files' hunks."""
    if pull.repo.path is not None:
        return diff_of(pull.repo.path, pull.base_oid, pull.head_oid, patch=kind == "patch")
    parts = []
    for file in pull.files:
        old = "/dev/null" if file.change == "ADDED" else f"a/{file.path}"
        new = "/dev/null" if file.change == "DELETED" else f"b/{file.path}"
        mode = {"ADDED": "new file mode 100644\n", "DELETED": "deleted file mode 100644\n"}.get(file.change, "")
        parts.append(f"diff --git a/{file.path} b/{file.path}\n{mode}--- {old}\n+++ {new}\n{file.patch or ''}\n")
    return "".join(parts).encode(errors="surrogateescape")


def _commits_of_pull(ask: Ask, owner: str, name: str, number: str) -> Any:
    """At most 250 of them: https://docs.github.com/en/rest/pulls/pulls#list-commits-on-a-pull-request"""
    pull = _pull(ask, owner, name, number)
    return [shapes.commit(pull.repo, commit, pull.author) for commit in ask.slice(pull.commits[:250])]


def _files_of_pull(ask: Ask, owner: str, name: str, number: str) -> Any:
    """At most 3000 of them: https://docs.github.com/en/rest/pulls/pulls#list-pull-requests-files"""
    pull = _pull(ask, owner, name, number)
    return [shapes.file(pull, file) for file in ask.slice(pull.files[:3000])]


def _comments(ask: Ask, owner: str, name: str, number: str) -> Any:
    """https://docs.github.com/en/rest/issues/comments#list-issue-comments"""
    item = _item(ask, owner, name, number)
    return [shapes.comment(item, made) for made in ask.slice(item.comments)]


def _timeline(ask: Ask, owner: str, name: str, number: str) -> Any:
    """Closed-events alone: https://docs.github.com/en/rest/issues/timeline"""
    item = _item(ask, owner, name, number)
    return (
        [shapes.closed_event(item, event) for event in ask.slice(item.closed_events)] if isinstance(item, Issue) else []
    )


def _commits(ask: Ask, owner: str, name: str) -> Any:
    """https://docs.github.com/en/rest/commits/commits#list-commits"""
    repo = _repo(ask, owner, name)
    since, until = ask.params.get("since", ""), ask.params.get("until", "9")
    made: list[Commit] = [commit for commit in reversed(repo.history) if since <= commit.committed_at <= until]
    return [shapes.commit(repo, commit, Actor("octocat")) for commit in ask.slice(made)]


def _search_repositories(ask: Ask) -> Any:
    """https://docs.github.com/en/rest/search/search#search-repositories"""
    return _search(ask, [shapes.found_repository, search_repositories])


def _search_issues(ask: Ask) -> Any:
    """https://docs.github.com/en/rest/search/search#search-issues-and-pull-requests"""
    return _search(ask, [lambda found: shapes.found_issue(item_of(*found)), search_issues])


def _search(ask: Ask, how: Sequence[Callable[..., Any]]) -> Any:
    show, find = how
    if ask.page * ask.size > MOST and (ask.page - 1) * ask.size >= MOST:
        raise _invalid("Only the first 1000 search results are available")
    query = ask.params.get("q", "")
    if "sort" in ask.params:
        query += f" sort:{ask.params['sort']}-{ask.params.get('order', 'desc')}"
    try:
        found = find(ask.world, query)
    except BadQuery as error:
        found_wrong = {"message": str(error), "resource": "Search", "field": "q", "code": "invalid"}
        raise _invalid("Validation Failed", errors=[found_wrong]) from error
    items = [show(item) for item in ask.slice(found[:MOST])]
    kind = {"search_type": "lexical"} if find is search_issues else {}
    return {"total_count": len(found), "incomplete_results": False, "items": items, **kind}


def _rate_limit(ask: Ask) -> Any:
    """Costs nothing: https://docs.github.com/en/rest/rate-limit/rate-limit"""
    resources = {
        name: {"limit": window.limit, "used": window.used, "remaining": window.remaining, "reset": int(window.reset)}
        for name, window in ((name, ask.budgets.window(ask.token, name)) for name in ("core", "search", "graphql"))
    }
    return {"resources": resources, "rate": resources["core"]}


def _user(ask: Ask) -> Any:
    """Whom the token belongs to: https://docs.github.com/en/rest/users/users#get-the-authenticated-user"""
    value = shapes.user(Actor(f"user{ask.token}"), ask.world.url) or {}
    stands = {
        "name": None,
        "company": None,
        "blog": None,
        "location": None,
        "email": None,
        "hireable": None,
        "bio": None,
    }
    counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
    return {
        **value,
        **stands,
        "user_view_type": "public",
        **counts,
        "id": number_of(value["login"]),
        "created_at": "2020-01-01T00:00:00Z",
        "updated_at": "2020-01-01T00:00:00Z",
    }


_OF = "/repos/{owner}/{repo}"
ROUTES: dict[str, Callable[..., Any]] = {
    "/rate_limit": _rate_limit,
    "/user": _user,
    "/search/repositories": _search_repositories,
    "/search/issues": _search_issues,
    _OF: lambda ask, owner, name: shapes.full(_repo(ask, owner, name)),
    f"{_OF}/pulls": _list_pulls,
    f"{_OF}/pulls/{{pull_number}}": _get_pull,
    f"{_OF}/pulls/{{pull_number}}/commits": _commits_of_pull,
    f"{_OF}/pulls/{{pull_number}}/files": _files_of_pull,
    f"{_OF}/issues": _list_issues,
    f"{_OF}/issues/{{issue_number}}": lambda *found: shapes.issue(_item(*found)),
    f"{_OF}/issues/{{issue_number}}/comments": _comments,
    f"{_OF}/issues/{{issue_number}}/timeline": _timeline,
    f"{_OF}/commits": _commits,
}
"""By the paths of GitHub's OpenAPI description; `/repositories/{id}` stands for the name in all of them."""


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", lambda part: r"(\d+)" if "number" in part[1] else "([^/]+)", path))


_COMPILED = [
    *((_pattern(path), handle) for path, handle in ROUTES.items()),
    (re.compile(r"/repositories/(\d+)((?:/.*)?)"), _by_id),
]
