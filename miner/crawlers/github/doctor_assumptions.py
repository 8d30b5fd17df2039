"""What the crawl assumes of the forge, each with a query on public data that shows whether it is so.

The names are those under `check` in tests/forge/behaviours.toml, which says what of our own forge they stand for.
"""

from __future__ import annotations

from collections.abc import Callable

from miner.core.records import Record
from miner.crawlers.github import doctor_looks as looks
from miner.crawlers.github import doctor_prices as prices
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.doctor_known import Known, Seen


class Assumption(Record):
    """One assumption: its name, what is assumed, and how it is looked at."""

    name: str
    assumed: str
    look: Callable[[ForgeClient, Known], Seen]


def _of(name: str, assumed: str, look: Callable[[ForgeClient, Known], Seen]) -> Assumption:
    return Assumption(name=name, assumed=assumed, look=look)


ASSUMPTIONS = (
    _of("missing-number", "a number that does not exist is NOT_FOUND beside the other data", looks.missing_number),
    _of("deleted-issue", "an issue that was deleted is NOT_FOUND beside the other data", looks.deleted_issue),
    _of(
        "missing-repository",
        "a repository that does not exist is NOT_FOUND in GraphQL and 404 in REST",
        looks.missing_repository,
    ),
    _of(
        "blocked-repository",
        "a repository that was taken down is FORBIDDEN in GraphQL and 451 or 403 in REST",
        looks.blocked_repository,
    ),
    _of(
        "renamed-repository",
        "a former name leads to the repository, with its id, in GraphQL and in REST",
        looks.renamed_repository,
    ),
    _of(
        "closing-references",
        "closingIssuesReferences names the issues that a pull request's text closes",
        looks.closing_references,
    ),
    _of(
        "transferred-closing-reference",
        "a closing reference to an issue that was transferred shows it in its new repository",
        looks.transferred_closing_reference,
    ),
    _of(
        "edits-with-original",
        "the newest edit of a text holds its body, the oldest the text as it was opened, at that time",
        looks.edits_with_original,
    ),
    _of(
        "search-count",
        "issueCount of a search for a closed window is the number of pull requests merged in it",
        looks.search_count,
    ),
    _of("search-of-nothing", "a search in a repository that does not exist finds 0", looks.search_of_nothing),
    _of("search-renamed", "a search by a former name finds what is in the repository now", looks.search_renamed),
    _of("page-limit", "a page of more than 100 is refused: EXCESSIVE_PAGINATION", prices.page_limit),
    _of("predicted-cost", "the points of a query follow the documented formula", prices.predicted_cost),
    _of("cost-of-counts", "a connection costs the same without its nodes", prices.cost_of_counts),
    _of("cost-of-errors", "a query that is refused costs nothing", prices.cost_of_errors),
    _of("unchanged", "a GET with the ETag of what has not changed answers 304", prices.unchanged),
)
