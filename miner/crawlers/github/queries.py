"""The GraphQL documents of the crawl (https://docs.github.com/en/graphql/reference/objects).

Lists that are longer than what a page holds are completed by `MORE`, one document for each of them. Every document asks
for its own cost (https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api): a
hundredth of the lists that it would open if every list around them were as long as its `first` says. What counts is
therefore how many lists stand in a list of lists, not how long the innermost are: a pull request costs 0.06 points, and
0.04 more for each issue that `closingIssuesReferences` may hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

RATE = "rateLimit { cost limit remaining resetAt used nodeCount }"
PAGE_INFO = "pageInfo { endCursor hasNextPage }"

# What a list holds in the page of pull requests. Two issues are as many as 99 of 100 pull requests close.
FIRST = {
    "labels": 20,
    "files": 100,
    "commits": 100,
    "closingIssuesReferences": 2,
    "comments": 50,
    "userContentEdits": 20,
    "timelineItems": 10,
}
LIGHT = dict.fromkeys(FIRST, 1)
"""The same for a pull request that is too heavy for a page of its own: nearly all of it comes by `MORE`."""
MORE_FIRST = 100
MORE_ISSUES = 20

REPOSITORIES_AT_ONCE = 20
IDENTITIES_AT_ONCE = 100
ISSUES_AT_ONCE = 40
LISTS_AT_ONCE = 20
TOUCHED_AT_ONCE = 100

_ACTOR = "author { __typename login }"
_HEAD = f"totalCount {PAGE_INFO} nodes"
_EDITS = f"{_HEAD} {{ editedAt deletedAt diff }}"
_LABELS = f"{_HEAD} {{ name }}"
_FILES = f"{_HEAD} {{ path additions deletions changeType }}"
_COMMITS = f"{_HEAD} {{ commit {{ oid message authoredDate committedDate }} }}"
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


def _issue(sizes: Mapping[str, int]) -> str:
    return f"""
fragment issue on Issue {{
  id number title body url state stateReason createdAt updatedAt closedAt lastEditedAt locked {_ACTOR}
  repository {{ databaseId nameWithOwner }}
  labels(first: {sizes["labels"]}) {{ {_LABELS} }}
  comments(first: {sizes["comments"]}) {{ {_COMMENTS} }}
  timelineItems(first: {sizes["timelineItems"]}, itemTypes: [CLOSED_EVENT]) {{ {_CLOSED} }}
  userContentEdits(first: {sizes["userContentEdits"]}) {{ {_EDITS} }}
}}
"""


def _pull(sizes: Mapping[str, int]) -> str:
    """Return the fragments of a pull request and of its issues."""
    return f"""
fragment pull on PullRequest {{
  id number title body url createdAt updatedAt mergedAt closedAt lastEditedAt {_ACTOR}
  repository {{ databaseId nameWithOwner }}
  baseRefName baseRefOid headRefName headRefOid
  headRepository {{ databaseId nameWithOwner }}
  mergeCommit {{ oid message committedDate parents(first: 3) {{ totalCount nodes {{ oid }} }} }}
  changedFiles additions deletions
  labels(first: {sizes["labels"]}) {{ {_LABELS} }}
  files(first: {sizes["files"]}) {{ {_FILES} }}
  commits(first: {sizes["commits"]}) {{ {_COMMITS} }}
  userContentEdits(first: {sizes["userContentEdits"]}) {{ {_EDITS} }}
  closingIssuesReferences(first: {sizes["closingIssuesReferences"]}) {{ {_HEAD} {{ ...issue }} }}
}}
{_issue(sizes)}"""


def _walked(i: str = "") -> str:
    order = "states: [MERGED], orderBy: {field: UPDATED_AT, direction: DESC}"
    return f"""repository(owner: $owner{i}, name: $name{i}) {{
    databaseId nameWithOwner
    pullRequests({order}, first: $first{i}, after: $after{i}) {{ totalCount {PAGE_INFO} nodes {{ ...pull }} }}
  }}"""


def _searched(i: str = "") -> str:
    return f"""search(query: $query{i}, type: ISSUE, first: $first{i}, after: $after{i}) {{
    issueCount {PAGE_INFO} nodes {{ ... on PullRequest {{ ...pull }} }}
  }}"""


def _walk_variables(i: str = "") -> str:
    return f"$owner{i}: String!, $name{i}: String!, $first{i}: Int!, $after{i}: String"


def _search_variables(i: str = "") -> str:
    return f"$query{i}: String!, $first{i}: Int!, $after{i}: String"


def _pulls(sizes: Mapping[str, int]) -> str:
    return f"query pulls({_walk_variables()}) {{\n  {_walked()}\n  {RATE}\n}}\n{_pull(sizes)}"


def _search_pulls(sizes: Mapping[str, int]) -> str:
    return f"query searchPulls({_search_variables()}) {{\n  {_searched()}\n  {RATE}\n}}\n{_pull(sizes)}"


PULLS = _pulls(FIRST)
"""A page of the walk: merged pull requests of one repository, those that were touched last first."""
PULLS_LIGHT = _pulls(LIGHT)

SEARCH_PULLS = _search_pulls(FIRST)
"""A page of the search: merged pull requests of a window of merge times."""
SEARCH_PULLS_LIGHT = _search_pulls(LIGHT)


def pages(ways: Iterable[str]) -> str:
    """Return a document that asks for pages of several repositories at once: `p0`, `p1` ...

    Each is a page of `PULLS` ("walk") or of `SEARCH_PULLS` ("search"), with their variables numbered: `$first0` ...
    """
    variables, parts = [], []
    for i, way in enumerate(ways):
        variables.append(_walk_variables(str(i)) if way == "walk" else _search_variables(str(i)))
        parts.append(f"  p{i}: " + (_walked(str(i)) if way == "walk" else _searched(str(i))))
    listed = "\n".join(parts)
    return f"query pages({', '.join(variables)}) {{\n{listed}\n  {RATE}\n}}\n{_pull(FIRST)}"


COUNT_PULLS = f"""query countPulls($query: String!) {{
  search(query: $query, type: ISSUE, first: 1) {{ issueCount }}
  {RATE}
}}"""

SEARCH_REPOSITORIES = f"""query searchRepositories($query: String!, $first: Int!, $after: String) {{
  search(query: $query, type: REPOSITORY, first: $first, after: $after) {{
    repositoryCount {PAGE_INFO} nodes {{ ... on Repository {{ databaseId nameWithOwner }} }}
  }}
  {RATE}
}}"""


def repositories(names: Iterable[str]) -> str:
    """Return a document that asks for many repositories at once: `r0`, `r1` ... in the order of the names.

    Each with the highest numbers that its issues and pull requests have, and two searches, `m0`, `m1` ... and `u0`,
    `u1` ..., for the numbers of pull requests that the queries in `$m0` ... and `$u0` ... find.
    """
    count = len(list(names))
    variables = ", ".join(f"$o{i}: String!, $n{i}: String!, $m{i}: String!, $u{i}: String!" for i in range(count))
    newest = "first: 1, orderBy: {field: CREATED_AT, direction: DESC}"
    parts = "\n".join(
        f"  r{i}: repository(owner: $o{i}, name: $n{i}) {{ ...repository "
        f"newestIssue: issues({newest}) {{ nodes {{ number }} }} "
        f"newestPull: pullRequests({newest}) {{ nodes {{ number updatedAt }} }} "
        f"lastMerged: pullRequests(states: [MERGED], first: 1, orderBy: {{field: UPDATED_AT, direction: DESC}}) "
        f"{{ totalCount nodes {{ updatedAt }} }} }}\n"
        f"  m{i}: search(query: $m{i}, type: ISSUE, first: 1) {{ issueCount }}\n"
        f"  u{i}: search(query: $u{i}, type: ISSUE, first: 1) {{ issueCount }}"
        for i in range(count)
    )
    return f"query repositories({variables}) {{\n{parts}\n  {RATE}\n}}\n{_REPOSITORY}"


def identities(names: Iterable[str]) -> str:
    """Return a document that asks only which repositories names stand for: `r0`, `r1` ... in the order of the names."""
    count = len(list(names))
    variables = ", ".join(f"$o{i}: String!, $n{i}: String!" for i in range(count))
    parts = "\n".join(
        f"  r{i}: repository(owner: $o{i}, name: $n{i}) {{ databaseId nameWithOwner }}" for i in range(count)
    )
    return f"query identities({variables}) {{\n{parts}\n  {RATE}\n}}"


def issues(numbers: Iterable[int]) -> str:
    """Return a document that asks for many numbers of one repository (`$owner`, `$name`): `n12`, `n13` ..."""
    return f"query issues($owner: String!, $name: String!) {{\n{_numbers('', numbers)}\n  {RATE}\n}}\n{_issue(FIRST)}"


def issues_of(numbers: Iterable[Iterable[int]]) -> str:
    """Return a document that asks for numbers of several repositories (`$owner0`, `$name0` ...): `p0`, `p1` ...

    Each of them is what `issues` calls `repository`.
    """
    parts = [f"  p{i}: {_numbers(str(i), of_one).lstrip()}" for i, of_one in enumerate(numbers)]
    variables = ", ".join(f"$owner{i}: String!, $name{i}: String!" for i in range(len(parts)))
    listed = "\n".join(parts)
    return f"query issuesOf({variables}) {{\n{listed}\n  {RATE}\n}}\n{_issue(FIRST)}"


def touched(numbers: Iterable[Iterable[int]]) -> str:
    """Return a document that asks when issues of several repositories were touched last: as `issues_of`, and little."""
    parts = [
        f"  p{i}: {_numbers(str(i), of_one, '... on Issue { updatedAt }').lstrip()}" for i, of_one in enumerate(numbers)
    ]
    variables = ", ".join(f"$owner{i}: String!, $name{i}: String!" for i in range(len(parts)))
    listed = "\n".join(parts)
    return f"query touched({variables}) {{\n{listed}\n  {RATE}\n}}"


_WHOLE = "... on Issue { ...issue } ... on PullRequest { number url }"


def _numbers(i: str, numbers: Iterable[int], what: str = _WHOLE) -> str:
    parts = "\n".join(
        f"    n{number}: issueOrPullRequest(number: {int(number)}) {{ __typename {what} }}" for number in numbers
    )
    return f"  repository(owner: $owner{i}, name: $name{i}) {{\n    databaseId nameWithOwner\n{parts}\n  }}"


_INSIDE = {
    ("PullRequest", "labels"): _LABELS,
    ("PullRequest", "files"): _FILES,
    ("PullRequest", "commits"): _COMMITS,
    ("PullRequest", "userContentEdits"): _EDITS,
    ("PullRequest", "closingIssuesReferences"): f"{_HEAD} {{ ...issue }}",
    ("Issue", "labels"): _LABELS,
    ("Issue", "comments"): _COMMENTS,
    ("Issue", "timelineItems"): _CLOSED,
    ("Issue", "userContentEdits"): _EDITS,
}


def _listed(i: str, on: str, name: str) -> str:
    only = ", itemTypes: [CLOSED_EVENT]" if name == "timelineItems" else ""
    arguments = f"first: $first{i}, after: $after{i}{only}"
    return f"node(id: $id{i}) {{ ... on {on} {{ id {name}({arguments}) {{ {_INSIDE[on, name]} }} }} }}"


def _fragments(names: Iterable[str]) -> str:
    return _issue(FIRST) if "closingIssuesReferences" in names else ""


def _more(on: str, name: str) -> str:
    first = MORE_ISSUES if name == "closingIssuesReferences" else MORE_FIRST
    variables = f"$id: ID!, $after: String, $first: Int = {first}"
    return f"query more({variables}) {{\n  {_listed('', on, name)}\n  {RATE}\n}}\n{_fragments([name])}"


def more_of(lists: Iterable[tuple[str, str]]) -> str:
    """Return a document that goes on with several lists, keys of `MORE`; `p0`, `p1` ... are what that has as `node`.

    Its variables are those of `MORE`, numbered.
    """
    lists = list(lists)
    parts = "\n".join(f"  p{i}: {_listed(str(i), on, name)}" for i, (on, name) in enumerate(lists))
    variables = ", ".join(f"$id{i}: ID!, $after{i}: String, $first{i}: Int" for i in range(len(lists)))
    return f"query moreOf({variables}) {{\n{parts}\n  {RATE}\n}}\n{_fragments(name for _, name in lists)}"


MORE = {(on, name): _more(on, name) for on, name in _INSIDE}
"""(type, list) -> the document that goes on with a list of a node (`$id`) after a cursor (`$after`, or None)."""
