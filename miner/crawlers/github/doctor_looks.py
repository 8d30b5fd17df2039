"""How the assumptions on repositories, issues, pull requests and searches are looked at."""

from __future__ import annotations

from typing import Any

from miner.crawlers.github import queries
from miner.crawlers.github.client import ForgeClient, GraphReply
from miner.crawlers.github.doctor_known import Known, NotNamed, Seen, split

_PAGE = 100
_MISSING = 999_999_999
_NUMBER = f"""query number($owner: String!, $name: String!, $number: Int!) {{
  repository(owner: $owner, name: $name) {{ id issueOrPullRequest(number: $number) {{ __typename }} }}
  {queries.RATE}
}}"""
_NAME = f"""query named($owner: String!, $name: String!) {{
  repository(owner: $owner, name: $name) {{ databaseId nameWithOwner }}
  {queries.RATE}
}}"""
_CLOSING = f"""query closing($owner: String!, $name: String!, $number: Int!) {{
  repository(owner: $owner, name: $name) {{ pullRequest(number: $number) {{
    closingIssuesReferences(first: 10) {{ nodes {{ number repository {{ nameWithOwner }} }} }} }} }}
  {queries.RATE}
}}"""
_COUNT = f"""query count($query: String!) {{
  search(query: $query, type: ISSUE, first: 1) {{ issueCount }}
  {queries.RATE}
}}"""
_LIST = f"""query list($owner: String!, $name: String!, $after: String) {{
  repository(owner: $owner, name: $name) {{
    pullRequests(states: [MERGED], orderBy: {{field: CREATED_AT, direction: ASC}}, first: {_PAGE}, after: $after) {{
      {queries.PAGE_INFO} nodes {{ createdAt mergedAt }}
    }}
  }}
  {queries.RATE}
}}"""
_EDITED = f"""query edited($owner: String!, $name: String!) {{
  repository(owner: $owner, name: $name) {{
    issues(first: {_PAGE}, orderBy: {{field: UPDATED_AT, direction: DESC}}) {{ nodes {{
      number body createdAt userContentEdits(first: {_PAGE}) {{ totalCount nodes {{ editedAt deletedAt diff }} }} }} }}
  }}
  {queries.RATE}
}}"""


def missing_number(forge: ForgeClient, known: Known) -> Seen:
    """Ask for a number that does not exist."""
    return _no_number(forge.graphql(_NUMBER, {**known.names, "number": _MISSING}))


def deleted_issue(forge: ForgeClient, known: Known) -> Seen:
    """Ask for an issue that was deleted."""
    if known.deleted_issue is None:
        raise NotNamed("deleted_issue")
    return _no_number(forge.graphql(_NUMBER, {**known.names, "number": known.deleted_issue}))


def missing_repository(forge: ForgeClient, known: Known) -> Seen:
    """Ask for a repository that does not exist, by both interfaces."""
    owner, name = known.names["owner"], f"swe-miner-{_MISSING}"
    types = _types(forge.graphql(_NAME, {"owner": owner, "name": name}))
    status = forge.get(f"/repos/{owner}/{name}").status
    return types == ["NOT_FOUND"] and status == 404, f"errors {types}, status {status}"


def blocked_repository(forge: ForgeClient, known: Known) -> Seen:
    """Ask for a repository that was taken down, by both interfaces."""
    if known.blocked is None:
        raise NotNamed("blocked")
    types = _types(forge.graphql(_NAME, split(known.blocked)))
    status = forge.get(f"/repos/{known.blocked}").status
    return types == ["FORBIDDEN"] and status in (403, 451), f"errors {types}, status {status}"


def renamed_repository(forge: ForgeClient, known: Known) -> Seen:
    """Ask for a repository by a former name, by both interfaces."""
    graph = forge.graphql(_NAME, split(known.old_name)).data.get("repository") or {}
    rest = forge.get(f"/repos/{known.old_name}").data
    same = graph.get("databaseId") == rest.get("id") and graph.get("databaseId") is not None
    names = (graph.get("nameWithOwner"), rest.get("full_name"))
    return same and names == (known.new_name, known.new_name), f"{names[0]} and {names[1]}, same id: {same}"


def closing_references(forge: ForgeClient, known: Known) -> Seen:
    """Ask which issues a pull request closes that was merged long ago."""
    return _closes(forge, known, known.pull, f"{known.repository}#{known.issue}")


def transferred_closing_reference(forge: ForgeClient, known: Known) -> Seen:
    """Ask which issues a pull request closes where one of them is in another repository now."""
    if known.moved_pull is None or known.moved_issue is None:
        raise NotNamed("moved_pull and moved_issue")
    return _closes(forge, known, known.moved_pull, known.moved_issue)


def edits_with_original(forge: ForgeClient, known: Known) -> Seen:
    """Compare the edits of issues with their bodies and the times at which they were opened."""
    issues = forge.graphql(_EDITED, known.names).data["repository"]["issues"]["nodes"]
    right, wrong = 0, []
    for issue in issues:
        edits = issue["userContentEdits"]["nodes"]
        whole = issue["userContentEdits"]["totalCount"] == len(edits)
        if len(edits) > 1 and whole and all(edit["deletedAt"] is None for edit in edits):
            newest, oldest = (pick(edits, key=lambda edit: edit["editedAt"]) for pick in (max, min))
            same = _lines(newest["diff"]) == _lines(issue["body"]) and oldest["editedAt"] == issue["createdAt"]
            right += same
            wrong += [] if same else [issue["number"]]
    if not right and not wrong:
        raise NotNamed(f"an issue with edits among the {len(issues)} that changed last")
    return not wrong, f"so in {right} issues, otherwise in {wrong}"


def search_count(forge: ForgeClient, known: Known) -> Seen:
    """Count the pull requests that were merged in a window by search, and one by one."""
    since, until = known.since.isoformat(), known.until.isoformat()
    counted = _count(forge, f"repo:{known.repository} is:pr is:merged merged:{since}..{until}")
    walked, after = 0, None
    while True:
        reply = forge.graphql(_LIST, {**known.names, "after": after})
        page: dict[str, Any] = reply.data["repository"]["pullRequests"]
        nodes, info = page["nodes"], page["pageInfo"]
        walked += sum(since <= node["mergedAt"][:10] <= until for node in nodes)
        if not nodes or not info["hasNextPage"] or nodes[-1]["createdAt"][:10] > until:
            break
        after = info["endCursor"]
    return counted == walked and walked > 0, f"search counts {counted}, a walk {walked}"


def search_of_nothing(forge: ForgeClient, known: Known) -> Seen:
    """Search in a repository that does not exist."""
    counted = _count(forge, f"repo:{known.names['owner']}/swe-miner-{_MISSING} is:pr is:merged")
    return counted == 0, f"search counts {counted}"


def search_renamed(forge: ForgeClient, known: Known) -> Seen:
    """Search by a former name and by the present one."""
    old, new = (_count(forge, f"repo:{name} is:pr is:merged") for name in (known.old_name, known.new_name))
    return old == new > 0, f"search counts {old} by the old name, {new} by the new one"


def _no_number(reply: GraphReply) -> Seen:
    types, there = _types(reply), bool((reply.data.get("repository") or {}).get("id"))
    return types == ["NOT_FOUND"] and there, f"errors {types}, the rest of the repository is there: {there}"


def _closes(forge: ForgeClient, known: Known, pull: int, issue: str) -> Seen:
    reply = forge.graphql(_CLOSING, {**known.names, "number": pull})
    nodes = reply.data["repository"]["pullRequest"]["closingIssuesReferences"]["nodes"]
    closed = [f"{node['repository']['nameWithOwner']}#{node['number']}" for node in nodes if node]
    return issue in closed, f"pull request {pull} closes {', '.join(closed) or 'nothing'}; expected {issue}"


def _count(forge: ForgeClient, query: str) -> int:
    return int(forge.graphql(_COUNT, {"query": query}).data["search"]["issueCount"])


def _types(reply: GraphReply) -> list[str]:
    return [str(error.get("type")) for error in reply.errors]


def _lines(text: str | None) -> list[str]:
    return (text or "").splitlines()
