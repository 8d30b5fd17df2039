"""A small project of the usual shape, with the pull requests that a month of one may have."""

from __future__ import annotations

from forge.repository import Repo
from forge.world import World

_PYPROJECT = """[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "1.0"
requires-python = ">=3.8"

[project.optional-dependencies]
test = ["pytest"]

[tool.setuptools]
packages = ["{name}"]
"""
_LICENSE = """MIT License

Copyright (c) 2020 The authors

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""
_BROKEN = {
    "mean": "def mean(values):\n    return sum(values) / len(values)\n",
    "clamp": "def clamp(value, low, high):\n    return min(value, high)\n",
    "chunks": "def chunks(items, size):\n    return [items[i:i + size] for i in range(0, len(items) - size, size)]\n",
}
_MENDED = {
    "mean": "def mean(values):\n    return sum(values) / len(values) if values else 0.0\n",
    "clamp": "def clamp(value, low, high):\n    return max(low, min(value, high))\n",
    "chunks": "def chunks(items, size):\n    return [items[i:i + size] for i in range(0, len(items), size)]\n",
}
_TESTS = {
    "mean": ("assert mean([1, 3]) == 2", "assert mean([]) == 0.0"),
    "clamp": ("assert clamp(9, 1, 5) == 5", "assert clamp(0, 1, 5) == 1"),
    "chunks": ("assert chunks([1, 2, 3], 2)[0] == [1, 2]", "assert chunks([1, 2, 3, 4], 2) == [[1, 2], [3, 4]]"),
}
_TITLES = {
    "mean": ("mean of nothing raises ZeroDivisionError", "`mean([])` should be 0.0, it raises ZeroDivisionError."),
    "clamp": ("clamp ignores the lower bound", "`clamp(0, 1, 5)` should be 1, it is 0."),
    "chunks": ("chunks loses the last items", "`chunks([1, 2, 3, 4], 2)` should have two lists, it has one."),
}


def sample_project(world: World, full_name: str, *, month: str = "2025-05") -> Repo:
    """Make a project in which three merged pull requests each close an issue (one by each way of merging), and more.

    The others of the month: without an issue, of a bot, only of documentation, into another branch, not merged; one
    of the month before.
    """
    name = full_name.partition("/")[2].replace("-", "_")
    files = {
        "pyproject.toml": _PYPROJECT.format(name=name),
        "LICENSE": _LICENSE,
        "README.md": f"# {name}\n",
        f"{name}/__init__.py": "".join(f"from .{what} import {what}\n" for what in _BROKEN),
        **{f"{name}/{what}.py": code for what, code in _BROKEN.items()},
        **{f"tests/test_{what}.py": _test(name, what, before=True) for what in _BROKEN},
    }
    repo = world.repository(full_name, files=files, at="2024-01-10T08:00:00Z")
    for day, (what, how) in enumerate(zip(_BROKEN, ("squash", "merge", "rebase"), strict=True), start=5):
        title, body = _TITLES[what]
        issue = repo.issue(title, body, at=f"{month}-01T0{day}:00:00Z", labels=["bug"])
        repo.comment(issue, "The same here.", at=f"{month}-01T1{day}:00:00Z")
        repo.pull(
            f"Mend {what}",
            f"It did not do what its name says.\n\nFixes #{issue.number}",
            commits=[
                (f"Mend {what}", {f"{name}/{what}.py": _MENDED[what]}),
                (f"Test {what}", {f"tests/test_{what}.py": _test(name, what, before=False)}),
            ],
            merge=how,
            at=f"{month}-{day:02}T12:00:00Z",
            closes=[issue],
            fork="contributor",
            upstream={"CHANGES.md": f"{what}\n"},
        )
    at = f"{month}-20T10:00:00Z"
    repo.pull("Say more", "No issue.", files={f"{name}/more.py": "MORE = 1\n"}, merge="squash", at=at)
    bump = {"pyproject.toml": _PYPROJECT.format(name=name).replace("61", "77")}
    repo.pull("Bump setuptools", "Bumps it.", files=bump, merge="squash", at=at, author="dependabot[bot]")
    words = repo.issue("The README says little", "Nothing in it.", at=f"{month}-02T08:00:00Z")
    repo.pull(
        "Words", f"Closes #{words.number}", files={"README.md": "# More\n"}, merge="squash", at=at, closes=[words]
    )
    repo.move("stable", repo.branches[repo.default_branch])
    repo.pull("Backport", "Fixes #1", files={f"{name}/old.py": "OLD = 1\n"}, base="stable", merge="merge", at=at)
    repo.pull("Not taken", "Fixes #1", files={f"{name}/no.py": "NO = 1\n"}, state="CLOSED", at=at)
    repo.pull("Earlier", "", files={f"{name}/early.py": "EARLY = 1\n"}, merge="squash", at="2025-01-20T10:00:00Z")
    return repo


def _test(name: str, what: str, *, before: bool) -> str:
    first, second = _TESTS[what]
    lines = [f"from {name} import {what}", "", "", f"def test_{what}():", f"    {first}"]
    if not before:
        lines += ["", "", f"def test_{what}_at_the_edge():", f"    {second}"]
    return "\n".join([*lines, ""])
