"""A model that says what a script holds: for tests, and for trying out prompts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from installers.models.interface import Reply, Request, Trouble
from miner.core.reasons import Reason

Line = Reply | Exception


class ScriptedModel:
    """Says one line after the other; threads share it.

    Args:
        script: lines, or a function that makes one of a request; an exception is raised.

    Attributes:
        requests: that it saw, in order.
    """

    def __init__(self, script: Sequence[Line] | Callable[[Request], Line]) -> None:
        self._script = script
        self._guard = threading.Lock()
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Reply:
        """Say the next line.

        Raises:
            Trouble: the script has no more lines.
        """
        with self._guard:
            number = len(self.requests)
            self.requests.append(request)
        line = self._script(request) if callable(self._script) else self._line(self._script, number)
        if isinstance(line, Exception):
            raise line
        return line

    @staticmethod
    def _line(script: Sequence[Line], number: int) -> Line:
        if number < len(script):
            return script[number]
        return Trouble(
            f"the script of {len(script)} lines has ended", reason=Reason.MODEL_ERROR, again=False, free=True
        )
