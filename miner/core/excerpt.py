"""What a log says about a failure: a few lines for people, a sentence's worth that is the same in every run.

Logs of installers and tests end in summaries; the cause stands somewhere above. The lines are found by the forms that
pytest (`E   `), Python (`Traceback`), pip and uv (boxes and `error:`), compilers and the kernel give to errors.
"""

from __future__ import annotations

import re

MAX_LINES = 12
_MAX_CHARS = 1500
_MAX_WIDTH = 400
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PYTEST = re.compile(r"^E( {2,}|$)")
_LOCATION = re.compile(r"^\S.*:\d+: \w+")
_TRACEBACK = re.compile(r"^\s*Traceback \(most recent call last\):\s*$")
_CROSS = "\u00d7"
_BOX = re.compile(rf"^\s*(?:[{_CROSS}│├╰]|(?:help|hint): )")
_ERROR = re.compile(
    r"^\s*(?:error|fatal|fatal error|E|ERROR)(?:\[\w+\])?:\s"
    r"|: (?:fatal )?error: "
    r"|No solution found|ModuleNotFoundError|ImportError|No matching distribution|Could not find a version"
    r"|unrecognized arguments|Fatal Python error|Segmentation fault|MemoryError|No space left on device|^Killed$"
)
_VOLATILE = (
    (re.compile(r"\.tmp\w{6}"), ".tmp"),
    (re.compile(r"/tmp/[\w.-]+"), "/tmp/tmp"),  # noqa: S108 - a pattern, not a path of ours
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x"),
    (re.compile(r"\b\d+(\.\d+)?m?s\b"), "some time"),
)


def explanation(log: str) -> str:
    """Return what a log says about a failure, without what changes from run to run: it is content of facts.

    uv ends with `error: ...` and its causes, which are taken whole; of other output the excerpt must do.
    """
    found = log.rfind("\nerror: ") + 1
    said = log[found:] if found or log.startswith("error: ") else error_excerpt(log)
    return _steady(said)


def last_error(text: str) -> str:
    """Return pytest's last line about an error (`E   ModuleNotFoundError: ...`), or the last line of all; steady."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    return _steady([*lines[-1:], *marked][-1]) if lines else ""


def _steady(said: str) -> str:
    """Take out what changes from run to run, and the beginning of what is too long."""
    said = _ANSI.sub("", said)
    for pattern, steady in _VOLATILE:
        said = pattern.sub(steady, said)
    said = said.strip()
    return said if len(said) <= _MAX_CHARS else f"... {said[-_MAX_CHARS:]}"


def error_excerpt(log: str, max_lines: int = MAX_LINES) -> str:
    """Return the lines that name the error, in their order; the last lines where no known form is found."""
    lines = [line[:_MAX_WIDTH].rstrip() for line in _ANSI.sub("", log).replace("\r", "\n").split("\n")]
    chosen: set[int] = set()
    for block in (_pytest_block(lines), _traceback_block(lines), _box_block(lines), _error_lines(lines)):
        for index in block:
            if len(chosen) < max_lines and lines[index].strip():
                chosen.add(index)
    if not chosen:
        chosen.update([index for index, line in enumerate(lines) if line.strip()][-max_lines:])
    return "\n".join(lines[index] for index in sorted(chosen))


def _pytest_block(lines: list[str]) -> list[int]:
    """Return the first run of pytest's `E` lines and the line that says where it was."""
    start = next((index for index, line in enumerate(lines) if _PYTEST.match(line)), None)
    if start is None:
        return []
    end = start
    while end < len(lines) and _PYTEST.match(lines[end]):
        end += 1
    block = list(range(start, end))
    if len(block) > MAX_LINES - 1:
        block = [*block[: MAX_LINES - 4], *block[-3:]]
    place = next((index for index in range(end, min(end + 3, len(lines))) if _LOCATION.match(lines[index])), None)
    return block if place is None else [place, *block]


def _traceback_block(lines: list[str]) -> list[int]:
    """Return the last frame and the exception of the last traceback."""
    starts = [index for index, line in enumerate(lines) if _TRACEBACK.match(line)]
    if not starts:
        return []
    margin = _indent(lines[starts[-1]])
    end = starts[-1] + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > margin):
        end += 1
    frame = max(starts[-1] + 1, end - 3)
    return [*range(end, min(end + 2, len(lines))), *range(frame, end)]


def _box_block(lines: list[str]) -> list[int]:
    """Return the first message that pip or uv draws with a cross, with its branches, and the hints below."""
    start = next((index for index, line in enumerate(lines) if line.lstrip().startswith(_CROSS)), None)
    if start is None:
        return []
    block = [start]
    for index in range(start + 1, len(lines)):
        wrapped = _indent(lines[index]) > _indent(lines[start]) + 1 and index == block[-1] + 1
        if _BOX.match(lines[index]) or wrapped:
            block.append(index)
        if len(block) >= MAX_LINES:
            break
    return block


def _error_lines(lines: list[str]) -> list[int]:
    return [index for index, line in enumerate(lines) if _ERROR.search(line)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
