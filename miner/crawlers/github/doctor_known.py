"""Public data of a forge that its assumptions are looked at with."""

from __future__ import annotations

from datetime import date

from miner.core.records import Record

Seen = tuple[bool, str]
"""Whether an assumption holds, and what was seen."""


class NotNamed(Exception):
    """The data that an assumption is looked at with is not named for this forge."""


class Known(Record):
    """Public data that does not change any more; what has no value by default nobody has named for GitHub yet.

    Attributes:
        pull: a merged pull request of `repository` that closes `issue`.
        since: first day of a window early in the life of the repository, in which pull requests were merged.
        until: its last day.
        old_name: a former name of `new_name`.
        deleted_issue: the number of an issue of `repository` that was deleted.
        replaced: a commit of a pull request of `repository` that a force-push has replaced.
        moved_pull: a pull request of `repository` that closes an issue which was transferred later.
        moved_issue: that issue, `owner/name#number`.
        blocked: a repository that was taken down.
    """

    repository: str = "pallets/flask"
    pull: int = 4045
    issue: int = 4041
    since: date = date(2010, 7, 1)
    until: date = date(2010, 9, 30)
    old_name: str = "kennethreitz/requests"
    new_name: str = "psf/requests"
    deleted_issue: int | None = None
    replaced: str | None = None
    moved_pull: int | None = None
    moved_issue: str | None = None
    blocked: str | None = None

    @property
    def names(self) -> dict[str, str]:
        """The repository as variables of a query."""
        return split(self.repository)


def split(full_name: str) -> dict[str, str]:
    """Return a repository's name as variables of a query."""
    owner, _, name = full_name.partition("/")
    return {"owner": owner, "name": name}
