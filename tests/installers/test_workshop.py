"""What is kept of a box and what is made of a command that failed, without any box."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest
from bench import LIMITS

from installers.interface import TooLarge
from installers.workshop import depends_on_index, export, too_large
from miner.core.blobs import BlobStore
from miner.sandbox.interface import ExecResult

_CHUNK = bytes(1 << 20)


class Endless:
    """A box with a folder that has no end, as sparse files can make one."""

    killed = False

    def kill(self) -> None:
        self.killed = True

    def fetch(self, _path: str) -> Iterator[bytes]:
        assert self.killed
        return repeat(_CHUNK)


def ended(text: str, **how: object) -> ExecResult:
    return ExecResult(exit_code=1, output=text.encode(), truncated=False, duration_s=1.0, **how)


def test_export_ends_where_the_disk_of_a_box_does(tmp_path: Path) -> None:
    limits = LIMITS.model_copy(update={"disk_mb": 64})
    with pytest.raises(TooLarge, match="/opt/env is larger than 64 MiB"):
        export(Endless(), "/opt/env", tmp_path / "env.tar", limits)
    assert (tmp_path / "env.tar").stat().st_size <= 320 << 20


def test_what_is_too_large_is_a_limit_that_was_reached(tmp_path: Path) -> None:
    seen = too_large(ended("installed"), "installing", BlobStore(str(tmp_path)))
    assert (seen.outcome, seen.payload["detail"]) == ("build-limit", "installing exceeded its limit of disk")


@pytest.mark.parametrize(
    ("result", "depends"),
    [
        (ended("error: No solution found when resolving dependencies:\n"), True),
        (
            ended("error: Failed to build `x`\n  cause: Failed to resolve requirements from `build-system.requires`\n"),
            True,
        ),
        (ended("error: The build backend returned an error\n  cause: Call to `b.build_wheel` failed\n"), False),
        (ended("error: Failed to build `x`\n  cause: The build backend returned an error\n  cause: Call to\n"), False),
        (ended('  File "/opt/build/offline.py", line 45, in build\n'), False),
        (ended("", limit="memory"), False),
        (ended("", limit="time"), True),
    ],
)
def test_failures_that_another_answer_of_the_index_could_change(result: ExecResult, depends: bool) -> None:
    assert depends_on_index(result) is depends
