"""How the assumptions on points, pages and conditional requests are looked at."""

from __future__ import annotations

from miner.core.errors import ForgeUnreachable
from miner.crawlers.github import queries
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.doctor_known import Known, Seen
from miner.crawlers.github.limits import cost_of

_PAGE = 100
_USED = "query used { rateLimit { used cost } }"
_TOO_LONG = f"""query long($owner: String!, $name: String!) {{
  repository(owner: $owner, name: $name) {{ pullRequests(first: {_PAGE + 1}) {{ totalCount }} }}
  {queries.RATE}
}}"""
_COUNTS = f"""query counts($query: String!) {{
  search(query: $query, type: REPOSITORY, first: {_PAGE}) {{ nodes {{ ... on Repository {{
    issues(first: 1) {{ totalCount }} pullRequests(first: 1) {{ totalCount }} }} }} }}
  {queries.RATE}
}}"""
_NODES = _COUNTS.replace("totalCount", "totalCount nodes { id }")


def page_limit(forge: ForgeClient, known: Known) -> Seen:
    """Ask for a longer page than there may be."""
    refusal = _refused(forge, known)
    return "EXCESSIVE_PAGINATION" in refusal, refusal or f"a page of {_PAGE + 1} was given"


def predicted_cost(forge: ForgeClient, known: Known) -> Seen:
    """Compare what a page of the crawl costs with what the documented formula says."""
    variables = {**known.names, "first": _PAGE // 2, "after": None}
    cost = forge.graphql(queries.PULLS, variables).data["rateLimit"]["cost"]
    predicted = cost_of(queries.PULLS, variables)
    return cost in (predicted, predicted - 1), f"charged {cost}, predicted {predicted} (rounded up)"


def cost_of_counts(forge: ForgeClient, known: Known) -> Seen:
    """Compare what connections cost of which only the length is asked for with what they cost with their nodes."""
    variables = {"query": f"user:{known.names['owner']}"}
    bare, whole = (forge.graphql(document, variables).data["rateLimit"]["cost"] for document in (_COUNTS, _NODES))
    return bare == whole, f"charged {bare} without their nodes, {whole} with them"


def cost_of_errors(forge: ForgeClient, known: Known) -> Seen:
    """Ask what was used before and after a query that is refused; something else that uses the token disturbs it."""
    before, between = _used(forge), _used(forge)
    _refused(forge, known)
    after = _used(forge)
    return after - between == between - before, f"{after - between - (between - before)} points"


def unchanged(forge: ForgeClient, known: Known) -> Seen:
    """Ask twice for the same, the second time with what the forge gave as its ETag."""
    path = f"/repos/{known.repository}/pulls/{known.pull}/commits"
    first = forge.get(path)
    again = forge.get(path, etag=first.etag)
    return again.status == 304 and first.etag is not None, f"ETag {first.etag}, then status {again.status}"


def _refused(forge: ForgeClient, known: Known) -> str:
    """Return why a query is refused that asks for too long a page, "" where it is not."""
    try:
        forge.graphql(_TOO_LONG, known.names)
    except ForgeUnreachable as error:
        return str(error)
    return ""


def _used(forge: ForgeClient) -> int:
    return int(forge.graphql(_USED, {}).data["rateLimit"]["used"])
