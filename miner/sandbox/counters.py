"""What the kernel counts for a box: killed for memory, refused processes, most memory used; and the engine's free disk.

Read from inside, as the keeper's user, by a shell that starts no process before its last (a box may have none left).
Both versions of control groups: <https://docs.kernel.org/admin-guide/cgroup-v2.html>, `memory.events`, `pids.events`,
and `memory.oom_control` of version 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FILES = (
    "memory/memory.oom_control",
    "memory/memory.max_usage_in_bytes",
    "memory/memory.limit_in_bytes",
    "pids/pids.events",
    "memory.events",
    "memory.peak",
    "memory.max",
    "pids.events",
)
_SCRIPT = (
    'for file in {files}; do path="/sys/fs/cgroup/$file"; [ -r "$path" ] || continue; '
    'while read -r line; do echo "$file $line"; done < "$path"; done; exec df -B1 --output=avail,iavail /'
)
COMMAND = ("sh", "-c", _SCRIPT.format(files=" ".join(_FILES)))
_NEAR = 0.98
_NUMBER = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True)
class Counters:
    """Counts since the start of a box.

    Attributes:
        oom_kills: processes that the kernel killed for want of memory, the box's or the host's.
        at_memory_limit: whether the box itself ran into its memory limit.
        pids_refused: how often a new process was refused.
        disk_available: free bytes where the engine keeps its containers; None if unknown.
        files_available: how many files can still be made there; None if unknown.
    """

    oom_kills: int = 0
    at_memory_limit: bool = False
    pids_refused: int = 0
    memory_peak: int | None = None
    disk_available: int | None = None
    files_available: int | None = None


def parse_counters(text: str) -> Counters:
    """Read what `COMMAND` printed; what a kernel does not tell stays at zero or None."""
    values: dict[str, int] = {}
    free: tuple[int, int] | None = None
    for line in text.splitlines():
        *name, number = line.split() or [""]
        if not _NUMBER.fullmatch(number):
            continue
        if len(name) == 1 and _NUMBER.fullmatch(name[0]):
            free = int(name[0]), int(number)
        else:
            values[" ".join(name)] = int(number)
    peak = values.get("memory/memory.max_usage_in_bytes", values.get("memory.peak"))
    limit = values.get("memory/memory.limit_in_bytes", values.get("memory.max"))
    at_limit = peak is not None and limit is not None and peak >= _NEAR * limit
    return Counters(
        oom_kills=values.get("memory/memory.oom_control oom_kill", values.get("memory.events oom_kill", 0)),
        at_memory_limit=at_limit or values.get("memory.events oom", 0) > 0,
        pids_refused=values.get("pids/pids.events max", values.get("pids.events max", 0)),
        memory_peak=peak,
        disk_available=free[0] if free else None,
        files_available=free[1] if free else None,
    )
