"""What discovery makes of a merged pull request with a link: an item, and where the answers about it are kept."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from miner.core.records import Record, Visibility
from miner.crawlers.github.candidate import instance_id
from miner.crawlers.github.model import Pull, Repository
from miner.crawlers.merged import Coordinates


class PullItem(Record):
    """A merged pull request that says, or of which the forge says, that it closes an issue.

    Attributes:
        repo: name of the repository at first sight, which stands in the instance id.
        full_name: its name now.
        answers: digest of all that the forge answered about it.
        raw: name -> digest of a raw answer that they were gathered from: `page`, `more-0` ..., `issues-0` ...,
            `renewed-0` ...
    """

    repository_id: int
    repo: str
    full_name: str
    number: int
    month: str
    coordinates: Coordinates
    answers: str
    raw: dict[str, str] = Field(default_factory=dict)
    visibility: Visibility | None = None

    @property
    def instance_id(self) -> str:
        """`owner__repo-N`."""
        return instance_id(self.repo, self.number)

    @property
    def origin(self) -> dict[str, Any]:
        """What identifies it, as the ledger keeps it."""
        return {
            "repository_id": self.repository_id,
            "repo": self.repo,
            "full_name": self.full_name,
            "number": self.number,
            "month": self.month,
        }

    @property
    def identity(self) -> dict[str, Any]:
        """The origin as it stands in the payload of its first fact."""
        return {"origin": self.origin}

    @property
    def inputs(self) -> dict[str, Any]:
        """What its first fact depends on."""
        return {"origin": self.origin, "coordinates": self.coordinates, "answers": self.answers}


def coordinates_of(pull: Pull, repository: Repository) -> Coordinates:
    """Return where a pull request is."""
    return Coordinates(
        repository_id=repository.forge_id,
        network_id=repository.network_id,
        full_name=repository.full_name,
        number=pull.number,
        base_branch=pull.base_branch,
        base_oid=pull.base_oid,
        head_oid=pull.head_oid,
        merge_commit=pull.merge_commit,
        merge_parents=pull.merge_parents,
        commits=tuple(commit.oid for commit in pull.commits),
        commit_titles=tuple(commit.message.partition("\n")[0] for commit in pull.commits),
    )
