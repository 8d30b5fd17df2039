"""The GraphQL documents of the crawl (https://docs.github.com/en/graphql/reference/objects).

Lists that are longer than what a page holds are completed by `MORE`, one document for each of them. Every document asks
for its own cost (https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api).
"""

from __future__ import annotations

from collections.abc import Iterable

RATE = "rateLimit { cost limit remaining resetAt used nodeCount }"
PAGE_INFO = "pageInfo { endCursor hasNextPage }"

# What a list holds in the page of pull requests, and in a page of its own.
FIRST = {
    "labels": 20,
    "files": 30,
    "commits": 20,
    "closingIssuesReferences": 10,
    "comments": 20,
    "userContentEdits": 5,
    "timelineItems": 10,
}
MORE_FIRST = 100

_ACTOR = "author { __typename login }"
_HEAD = f"totalCount {PAGE_INFO} nodes"
_EDITS = f"{_HEAD} {{ editedAt deletedAt diff }}"
_LABELS = f"{_HEAD} {{ name }}"
_FILES = f"{_HEAD} {{ path additions deletions changeType }}"
_COMMITS = f"{_HEAD} {{ commit {{ oid message authoredDate committedDate parents(first: 3) {{ totalCount }} }} }}"
_COMMENTS = f"{_HEAD} {{ id body createdAt lastEditedAt {_ACTOR} }}"
_CLOSED = f"""{_HEAD} {{ __typename ... on ClosedEvent {{ createdAt stateReason closer {{ __typename
  ... on PullRequest {{ number repository {{ databaseId nameWithOwner }} }}
  ... on Commit {{ oid repository {{ databaseId nameWithOwner }} }} }} }} }}"""

_REPOSITORY = """
fragment repository on Repository {
  id databaseId nameWithOwner isFork isArchived isTemplate isPrivate isDisabled isEmpty isLocked isMirror
  hasIssuesEnabled diskUsage stargazerCount forkCount createdAt pushedAt updatedAt
  defaultBranchRef { name target { oid } }
  licenseInfo { key spdxId }
  primaryLanguage { name }
  languages(first: 20, orderBy: {field: SIZE, direction: DESC}) { totalSize edges { size node { name } } }
  parent { databaseId nameWithOwner }
}
"""
_ISSUE = f"""
fragment issue on Issue {{
  id number title body url state stateReason createdAt updatedAt closedAt lastEditedAt locked {_ACTOR}
  repository {{ databaseId nameWithOwner }}
  labels(first: {FIRST["labels"]}) {{ {_LABELS} }}
  comments(first: {FIRST["comments"]}) {{ {_COMMENTS} }}
  timelineItems(first: {FIRST["timelineItems"]}, itemTypes: [CLOSED_EVENT]) {{ {_CLOSED} }}
  userContentEdits(first: {FIRST["userContentEdits"]}) {{ {_EDITS} }}
}}
"""
_PULL = f"""
fragment pull on PullRequest {{
  id number title body url createdAt updatedAt mergedAt closedAt lastEditedAt {_ACTOR}
  repository {{ databaseId nameWithOwner }}
  baseRefName baseRefOid headRefName headRefOid
  headRepository {{ databaseId nameWithOwner }}
  mergeCommit {{ oid message committedDate parents(first: 3) {{ totalCount nodes {{ oid }} }} }}
  changedFiles additions deletions
  labels(first: {FIRST["labels"]}) {{ {_LABELS} }}
  files(first: {FIRST["files"]}) {{ {_FILES} }}
  commits(first: {FIRST["commits"]}) {{ {_COMMITS} }}
  userContentEdits(first: {FIRST["userContentEdits"]}) {{ {_EDITS} }}
  closingIssuesReferences(first: {FIRST["closingIssuesReferences"]}) {{ {_HEAD} {{ ...issue }} }}
}}
"""

REPOSITORIES_AT_ONCE = 20
ISSUES_AT_ONCE = 40

PULLS = f"""query pulls($owner: String!, $name: String!, $first: Int!, $after: String) {{
  repository(owner: $owner, name: $name) {{
    databaseId nameWithOwner
    pullRequests(states: [MERGED], orderBy: {{field: UPDATED_AT, direction: DESC}}, first: $first, after: $after) {{
      totalCount {PAGE_INFO} nodes {{ ...pull }}
    }}
  }}
  {RATE}
}}
{_PULL}{_ISSUE}"""
"""A page of the walk: merged pull requests of one repository, those that were touched last first."""

SEARCH_PULLS = f"""query searchPulls($query: String!, $first: Int!, $after: String) {{
  search(query: $query, type: ISSUE, first: $first, after: $after) {{
    issueCount {PAGE_INFO} nodes {{ ... on PullRequest {{ ...pull }} }}
  }}
  {RATE}
}}
{_PULL}{_ISSUE}"""
"""A page of the search: merged pull requests of a window of merge times, of one or more repositories."""

SEARCH_REPOSITORIES = f"""query searchRepositories($query: String!, $first: Int!, $after: String) {{
  search(query: $query, type: REPOSITORY, first: $first, after: $after) {{
    repositoryCount {PAGE_INFO} nodes {{ ... on Repository {{ ...repository }} }}
  }}
  {RATE}
}}
{_REPOSITORY}"""


def repositories(names: Iterable[str]) -> str:
    """Return a document that asks for many repositories at once: `r0`, `r1` ... in the order of the names.

    Each with the highest numbers that its issues and pull requests have, and a search `m0`, `m1` ... for the number of
    pull requests that the query in `$m0`, `$m1` ... finds.
    """
    count = len(list(names))
    variables = ", ".join(f"$o{i}: String!, $n{i}: String!, $m{i}: String!" for i in range(count))
    newest = "first: 1, orderBy: {field: CREATED_AT, direction: DESC}"
    parts = "\n".join(
        f"  r{i}: repository(owner: $o{i}, name: $n{i}) {{ ...repository "
        f"newestIssue: issues({newest}) {{ nodes {{ number }} }} "
        f"newestPull: pullRequests({newest}) {{ nodes {{ number updatedAt }} }} "
        f"lastMerged: pullRequests(states: [MERGED], first: 1, orderBy: {{field: UPDATED_AT, direction: DESC}}) "
        f"{{ totalCount nodes {{ updatedAt }} }} }}\n"
        f"  m{i}: search(query: $m{i}, type: ISSUE, first: 1) {{ issueCount }}"
        for i in range(count)
    )
    return f"query repositories({variables}) {{\n{parts}\n  {RATE}\n}}\n{_REPOSITORY}"


def issues(numbers: Iterable[int]) -> str:
    """Return a document that asks for many numbers of one repository (`$owner`, `$name`): `n12`, `n13` ..."""
    parts = "\n".join(
        f"    n{number}: issueOrPullRequest(number: {int(number)}) "
        "{ __typename ... on Issue { ...issue } ... on PullRequest { number url } }"
        for number in numbers
    )
    return (
        f"query issues($owner: String!, $name: String!) {{\n  repository(owner: $owner, name: $name) {{\n"
        f"    databaseId nameWithOwner\n{parts}\n  }}\n  {RATE}\n}}\n{_ISSUE}"
    )


def _more(on: str, field: str, inside: str, fragments: str = "") -> str:
    arguments = f"first: {MORE_FIRST}, after: $after"
    if field == "timelineItems":
        arguments += ", itemTypes: [CLOSED_EVENT]"
    return (
        f"query more($id: ID!, $after: String) {{\n  node(id: $id) {{ ... on {on} {{ id {field}({arguments}) "
        f"{{ {inside} }} }} }}\n  {RATE}\n}}\n{fragments}"
    )


MORE = {
    ("PullRequest", "labels"): _more("PullRequest", "labels", _LABELS),
    ("PullRequest", "files"): _more("PullRequest", "files", _FILES),
    ("PullRequest", "commits"): _more("PullRequest", "commits", _COMMITS),
    ("PullRequest", "userContentEdits"): _more("PullRequest", "userContentEdits", _EDITS),
    ("PullRequest", "closingIssuesReferences"): _more(
        "PullRequest", "closingIssuesReferences", f"{_HEAD} {{ ...issue }}", _ISSUE
    ),
    ("Issue", "labels"): _more("Issue", "labels", _LABELS),
    ("Issue", "comments"): _more("Issue", "comments", _COMMENTS),
    ("Issue", "timelineItems"): _more("Issue", "timelineItems", _CLOSED),
    ("Issue", "userContentEdits"): _more("Issue", "userContentEdits", _EDITS),
}
"""(type, list) -> the document that goes on with a list of a node (`$id`) after a cursor (`$after`, or None)."""
