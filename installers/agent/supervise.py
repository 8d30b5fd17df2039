"""Inside a box: runs one command of a session, or reads one file, within bounds, and says how it ended.

    python3 -I supervise.py run SECONDS BYTES COMMAND
    python3 -I supervise.py read SECONDS BYTES PATH

It prints one line of JSON, then what is kept of the output: head and tail, each half of BYTES. Output lies on no disk,
and its end is not waited for: a process that a command leaves behind may hold the pipe. A command that takes too long
is killed with everything that it has started. It guards nothing: it keeps a box usable, the box is the lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

CHUNK = 65536
DRAIN_S = 0.5
ROUNDS = 50
PR_SET_CHILD_SUBREAPER = 36
A_FOLDER, NO_FILE = FAULTS = ("it is a folder", "it is no regular file")


class Kept:
    """Head and tail of a stream.

    Args:
        most: bytes that are kept.
        share: of them that are head.
    """

    def __init__(self, most: int, share: float = 0.5) -> None:
        self.room = int(most * share)
        self.back = most - self.room
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        room = self.room - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        if len(self.tail) > self.back + CHUNK:
            del self.tail[: len(self.tail) - self.back]

    def say(self, **values: object) -> None:
        """Print how it ended and what is kept."""
        tail = self.tail[len(self.tail) - self.back :] if len(self.tail) > self.back else self.tail
        left_out = self.total - len(self.head) - len(tail)
        line = json.dumps({**values, "head": len(self.head), "left_out": left_out})
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.buffer.write(line.encode() + b"\n" + self.head + tail)
            sys.stdout.buffer.flush()


def run(command: str, seconds: float, most: int) -> None:
    """Run a command to its end, or for so long."""
    adopt()
    end = time.monotonic() + seconds
    reader, writer = os.pipe()
    child = subprocess.Popen(
        ["/bin/bash", "-c", command], stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, start_new_session=True
    )
    os.close(writer)
    kept = Kept(most)
    while child.poll() is None and time.monotonic() < end:
        if take(reader, kept, 0.2) == "end":
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, end - time.monotonic()))
    late = child.poll() is None
    if late:
        kill_descendants()
        child.wait(10)
    drained = time.monotonic() + DRAIN_S
    while time.monotonic() < drained and take(reader, kept, 0.05) == "data":
        pass
    kept.say(exit=None if late else child.returncode)


def take(descriptor: int, kept: Kept, wait: float) -> str:
    """Read what is there: "data", "nothing" within so many seconds, or the "end" of it."""
    if not select.select([descriptor], [], [], wait)[0]:
        return "nothing"
    data = os.read(descriptor, CHUNK)
    kept.add(data)
    return "data" if data else "end"


def kill_descendants() -> None:
    """Kill every process that this one has started, and those that they have, until there is none."""
    for _ in range(ROUNDS):
        found = descendants()
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
        time.sleep(0.02)


def descendants() -> list[int]:
    """Return the living processes below this one; what has lost its parent is below it as well (`adopt`)."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = folder.joinpath("stat").read_bytes().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    parents[int(folder.name)] = int(parent)
    found: list[int] = []
    level = {os.getpid()}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        found += level
    return found


def adopt() -> None:
    """Become the parent of all orphans below: a daemon that a command starts stays in reach (prctl(2))."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def read(path: str, most: int) -> None:
    """Read the beginning of a regular file; no device, no pipe, and nothing that would have to be waited for."""
    kept = Kept(most, share=1.0)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        kept.say(error=os.strerror(error.errno or 0))
        return
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        kept.say(error=A_FOLDER if stat.S_ISDIR(state.st_mode) else NO_FILE)
        return
    try:
        while kept.total < most and (data := os.read(descriptor, min(CHUNK, most - kept.total))):
            kept.add(data)
    except OSError as error:
        kept.say(error=os.strerror(error.errno or 0))
        return
    kept.say(size=max(state.st_size, kept.total))


def main(what: str, seconds: str, most: str, argument: str) -> None:
    """Do it; where not even this can be ended, end by itself."""
    signal.alarm(int(float(seconds)) + 20)
    if what == "run":
        run(argument, float(seconds), int(most))
    else:
        read(argument, int(most))
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:5])
