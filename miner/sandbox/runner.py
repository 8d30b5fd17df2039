"""Runs tests in a fresh box: network off, our plug-in loaded by path, nothing installed in the target.

What it returns are facts: the exit code of each step, the raw lines of the plug-in, what was printed. What they mean is
computed elsewhere (`outcomes.py`, the rules), so a run that timed out is an observation like any other.

The steps, in `/testbed`:

    git apply --whitespace=nowarn /opt/swe-miner/<patch>     the test patch, then the gold patch
    bash -c <rebuild_cmd>                                    where the recipe has one
    python -m pytest ... --collect-only <test files>         twice, in different seconds, with different hash seeds
    python -m pytest ... <test files>

A patch or a re-install that fails ends the run.
"""

from __future__ import annotations

import posixpath
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import docker

from miner.core.blobs import BlobStore
from miner.core.records import Observation
from miner.core.settings import Settings
from miner.sandbox.container import sandbox_container
from miner.sandbox.interface import Box, ExecResult, Files, ProbeRequest, TestRequest
from miner.sandbox.profile import Profile, suite_env

ATTRIBUTE = "swe_miner_probe"
VALUE = "seen"

_FOLDER = "/opt/swe-miner"
_PLUGIN = Path(__file__).with_name("plugin") / "swe_miner_reporter.py"
_TESTBED = "/testbed"
_OF_COMPILER = ("ignore::SyntaxWarning", "ignore:invalid escape sequence")
_REPORT = "/report"
_SEED, _SEEDS = "PYTHONHASHSEED", 2**32
_MAX_REPORT = 256 * 1024 * 1024
_EXISTING = 'for path in "$@"; do if [ -e "$path" ]; then printf "%s\\0" "$path"; fi; done'
_EDIT = 'printf "\\n\\n%s = \\"%s\\"\\n" "$2" "$3" >> "$1"'


def run_tests(
    client: docker.DockerClient, image: str, request: TestRequest, profile: Profile, blobs: BlobStore
) -> Observation:
    """Run tests once in a fresh box.

    Returns:
        payload: `steps` (name, exit_code, limit, truncated; in order), `missing` (test files that are not there),
        `ended` (name of the step that ended the run early, or None), `reports_cut` (reports longer than we read).
        logs: what each step printed, under its name; `events.jsonl`, `collect-0.jsonl`, `collect-1.jsonl`: the
        plug-in's lines, where the step was come to. They hold durations, so they are logs and not content.
        measures: seconds of each step and most bytes of memory.
    """
    with sandbox_container(client, image, profile, "tests") as box:
        run = _Run(box, blobs, time.monotonic() + profile.limits.timeout_s)
        run.prepare(_patches(request))
        _steps(run, request, profile.env.get(_SEED, "0"))
        return run.observation()


def probe(
    client: docker.DockerClient, image: str, request: ProbeRequest, profile: Profile, blobs: BlobStore
) -> Observation:
    """Edit modules in the working tree and ask a pytest process whether it sees the edits.

    The edit appends `swe_miner_probe = "seen"` to each module; it was seen where the plug-in's event "probe" has
    `value == "'seen'"`.

    Returns:
        payload: as of `run_tests`, and `files` (module -> the file that was edited, None where there is none).
        logs: as of `run_tests`; `events.jsonl`: the plug-in's lines.
    """
    with sandbox_container(client, image, profile, "probe") as box:
        run = _Run(box, blobs, time.monotonic() + profile.limits.timeout_s)
        run.prepare(_patches(request))
        if not _apply(run, request):
            return run.observation()
        files = {module: run.module_file(module, request.root) for module in request.modules}
        run.payload["files"] = files
        for path in filter(None, files.values()):
            run.step("edit", ["bash", "-c", _EDIT, "bash", path, ATTRIBUTE, VALUE])
        if not run.ended and (request.rebuild_cmd is None or run.step("rebuild", ["bash", "-c", request.rebuild_cmd])):
            tests = run.existing(request.test_files)
            asked = {"SWE_MINER_PROBE": ",".join(request.modules), "SWE_MINER_PROBE_ATTR": ATTRIBUTE}
            env = {**(request.env or {}), **asked}
            run.pytest("events", request.project_dir, request.addopts, tests, ["--collect-only"], env)
        return run.observation()


def _patches(request: TestRequest | ProbeRequest) -> dict[str, bytes]:
    named = {"test": request.test_patch, "gold": request.gold_patch}
    return {name: patch for name, patch in named.items() if patch is not None}


def _apply(run: _Run, request: TestRequest | ProbeRequest) -> bool:
    for name in _patches(request):
        if not run.step(f"apply-{name}", ["git", "apply", "--whitespace=nowarn", f"{_FOLDER}/{name}.patch"]):
            return False
    return True


def _steps(run: _Run, request: TestRequest, seed: str) -> None:
    if not _apply(run, request):
        return
    if request.rebuild_cmd is not None and not run.step("rebuild", ["bash", "-c", request.rebuild_cmd]):
        return
    tests = run.existing(request.test_files)
    if not tests:
        return
    for number in range(request.collections):
        if number > 0:
            _next_second()
        env = {**(request.env or {}), _SEED: str((int(seed) + number) % _SEEDS)}  # ids that come from sets differ then
        run.pytest(f"collect-{number}", request.project_dir, request.addopts, tests, ["--collect-only"], env)
    run.pytest("events", request.project_dir, request.addopts, tests, [], request.env)


def _next_second() -> None:
    """Wait for the next second of the clock: ids that contain the time then differ between collections."""
    time.sleep(1.0 - time.time() % 1.0)


def conditions(settings: Settings) -> dict[str, str]:
    """Return what the outcome of a run depends on beside its request, its image and its bounds, for input hashes."""
    return {**suite_env(settings.measure), "runtime": settings.docker.runtime or ""}


def suite_command(addopts: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """Return the pytest call without names of files; pure. The same for our runs and for those who use a task.

    Node ids are relative to `/testbed` (`--rootdir`), while the project's own configuration is found as usual. Its
    `addopts` are replaced by those that are kept. A file that cannot be collected keeps no other from running. What the
    compiler warns about is no error of a test: an ordinary installation has compiled its packages before any test runs,
    ours hold no byte code.
    """
    return [
        *("python", "-m", "pytest", f"--rootdir={_TESTBED}", "--continue-on-collection-errors"),
        *(part for warning in _OF_COMPILER for part in ("-W", warning)),
        *("-o", f"addopts={shlex.join(addopts)}"),
        *options,
    ]


def pytest_command(
    project_dir: str, addopts: Sequence[str], test_files: Sequence[str], options: Sequence[str], cache: str
) -> list[str]:
    """Return the call with our reporter for test files given relative to the repository's root; pure.

    The cache stays usable, but outside of the tree.
    """
    paths = [posixpath.relpath(path, project_dir or ".") for path in test_files]
    ours = ("-p", "swe_miner_reporter", "-o", f"cache_dir={cache}")
    return [*suite_command(addopts, (*ours, *options)), *paths]


class _Run:
    """The steps of one run and what is known of them."""

    def __init__(self, box: Box, blobs: BlobStore, deadline: float) -> None:
        self._box = box
        self._blobs = blobs
        self._deadline = deadline
        self._steps: list[dict[str, Any]] = []
        self._logs: dict[str, str] = {}
        self._measures: dict[str, float] = {}
        self._reports: list[str] = []
        self.payload: dict[str, Any] = {}
        self.ended: str | None = None

    def prepare(self, patches: dict[str, bytes]) -> None:
        """Put the plug-in, the patches and the report folder in place."""
        files: Files = {
            f"{_FOLDER}/plugin/swe_miner_reporter.py": (_PLUGIN.read_bytes(), 0o644),
            **{f"{_FOLDER}/{name}.patch": (patch, 0o644) for name, patch in patches.items()},
        }
        self._box.put(files, uid=0)
        self._box.put({f"{_REPORT}/": (b"", 0o755)})

    def step(self, name: str, command: Sequence[str], **options: Any) -> bool:
        """Run and record a step; one that fails ends the run."""
        result = self._execute(name, command, **options)
        if not result.ok:
            self.ended = self.ended or name
        return result.ok

    def pytest(
        self,
        name: str,
        project_dir: str,
        addopts: Sequence[str],
        test_files: Sequence[str],
        options: Sequence[str],
        env: Any,
    ) -> None:
        """Run and record a step of pytest, whose exit code decides nothing; only a bound ends the run."""
        if self.ended is not None:
            return
        self._reports.append(name)
        own = {**(env or {})}
        variables = {
            **own,
            "PYTEST_ADDOPTS": "",
            "PYTHONPATH": ":".join(filter(None, (f"{_FOLDER}/plugin", own.get("PYTHONPATH", "")))),
            "SWE_MINER_REPORT": f"{_REPORT}/{name}.jsonl",
        }
        command = pytest_command(project_dir, addopts, test_files, options, f"/tmp/cache-{name}")  # noqa: S108 - in a box
        result = self._execute(name, command, env=variables, workdir=posixpath.join(_TESTBED, project_dir))
        if result.limit is not None:
            self.ended = name

    def _execute(self, name: str, command: Sequence[str], **options: Any) -> ExecResult:
        left = max(0.0, self._deadline - time.monotonic())
        result = self._box.run(command, timeout_s=left, **options)
        self._record(name, result)
        return result

    def _record(self, name: str, result: ExecResult) -> None:
        self._steps.append(
            {"name": name, "exit_code": result.exit_code, "limit": result.limit, "truncated": result.truncated}
        )
        self._logs[name] = self._blobs.put(result.output)
        self._measures[f"{name}_s"] = round(result.duration_s, 3)
        if result.memory_peak is not None:
            self._measures["memory_peak"] = float(result.memory_peak)

    def existing(self, paths: Sequence[str]) -> list[str]:
        """Return those paths that are there, and record the others."""
        result = self._box.run(["bash", "-c", _EXISTING, "bash", *paths])
        if not result.ok:
            self._record("files", result)
            self.ended = self.ended or "files"
            return []
        there = set(result.text.split("\0"))
        self.payload["missing"] = [path for path in paths if path not in there]
        return [path for path in paths if path in there]

    def module_file(self, module: str, root: str) -> str | None:
        """Return the file of a module, relative to the repository's root."""
        path = posixpath.join(root, *module.split("."))
        candidates = [f"{path}/__init__.py", f"{path}.py"]
        there = self._box.run(["bash", "-c", _EXISTING, "bash", *candidates]).text.split("\0")
        return next((candidate for candidate in candidates if candidate in there), None)

    def observation(self) -> Observation:
        """Read the reports and return everything that is known."""
        reports: dict[str, str] = {}
        cut: list[str] = []
        for name in self._reports:
            try:
                data = self._box.read_file(f"{_REPORT}/{name}.jsonl", _MAX_REPORT)
            except FileNotFoundError:
                data = b""
            reports[f"{name}.jsonl"] = self._blobs.put(data)
            if len(data) == _MAX_REPORT:
                cut.append(name)
        return Observation(
            payload={"missing": [], **self.payload, "steps": self._steps, "ended": self.ended, "reports_cut": cut},
            logs={**self._logs, **reports},
            measures=self._measures,
        )
