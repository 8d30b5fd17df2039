"""What a rung of the installer's ladder is: it looks at a tree and gives a recipe, or says why it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from installers.pythons import Python
from miner.core.reasons import Reason
from miner.core.records import Recipe, Record


class Refusal(Record):
    """Why a rung has no recipe for a tree: a property of the project, never a fault of the infrastructure."""

    reason: Reason
    detail: str


class Rung(Protocol):
    """One way to come from a repository tree to a recipe. Pure: it reads what it is given and runs nothing."""

    def __call__(
        self,
        files: Mapping[str, bytes],
        paths: Sequence[str],
        pythons: Sequence[Python],
        created_at: datetime,
        test_files: Sequence[str],
    ) -> Recipe | Refusal:
        """Describe an environment.

        Args:
            files: path -> content of the declaration files (`miner.project.facts.is_declaration`).
            paths: every path of the tree.
            pythons: the interpreters that there are.
            created_at: when the change was proposed.
            test_files: paths of the tests that are going to run.
        """
        ...
