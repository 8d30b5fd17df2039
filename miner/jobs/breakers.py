"""Breakers: a fault that spreads says something about the infrastructure, not about what met it (law 2)."""

from __future__ import annotations

from miner.core.errors import DiskFull, DockerUnavailable, ForgeLimited, ForgeToken, InfrastructureFault

_STOPS_THE_RUN = (DockerUnavailable, DiskFull, ForgeLimited, ForgeToken)
_FAULTS_IN_A_ROW = 3


class Breaker:
    """Ends a stage whose infrastructure is gone: at once, or when one fault is met several times in a row."""

    def __init__(self) -> None:
        self._row: list[InfrastructureFault] = []

    def note(self, error: InfrastructureFault | None) -> None:
        """Take note of how one piece of work ended.

        Raises:
            InfrastructureFault: the last of those that ended the stage.
        """
        if error is None:
            self._row = []
            return
        if self._row and self._row[-1].reason is not error.reason:
            self._row = []
        self._row.append(error)
        if isinstance(error, _STOPS_THE_RUN) or len(self._row) >= _FAULTS_IN_A_ROW:
            raise error
