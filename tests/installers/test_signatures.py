"""Logs of uv, pip, compilers, pytest and its plug-ins to signatures: the same for the same failure, and bounded."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.interface import Signature
from installers.repair.kinds import MEANINGS, RANK, Kind
from installers.repair.signatures import MOST, signatures_of_log, signatures_of_run
from miner.core.records import RunOutcome, TestResult, TestStatus


def first(step: str, text: str) -> str:
    found = signatures_of_log(step, text)
    return str(found[0]) if found else ""


def build(name: str, error: str) -> str:
    """What uv prints for a build that fails, in its form of 2026."""
    lines = "\n".join(f"         {line}" for line in error.splitlines())
    return (
        f"error: Failed to build `{name}`\n  cause: The build backend returned an error\n"
        f"  cause: Call to `setuptools.build_meta:__legacy__.build_wheel` failed (exit status: 1)\n\n"
        f"         [stderr]\n{lines}\n\nhint: Build failures usually indicate a problem with the package\n"
    )


def unsolved(because: str, hint: str = "") -> str:
    return f"error: No solution found when resolving dependencies\n  cause: Because {because}\n{hint}"


THUS = "we can conclude that your requirements are unsatisfiable."
LATE = "\nhint: `{0}` was filtered by `exclude-newer` to only include packages uploaded before 2022-01-01T00:00:00Z."

RESOLVED = {
    "pin-never-existed": (
        unsolved(f"there is no version of types-demo==9.9.9 and you require types-demo==9.9.9, {THUS}"),
        "no-version: types-demo==9.9.9",
    ),
    "newer-than-date": (
        unsolved(f"only demo<=1.22.0 is available and you require demo>=1.24, {THUS}", LATE.format("demo")),
        "newer-than-date: demo>=1.24",
    ),
    "not-on-index": (
        unsolved(f"demo-private was not found in the package registry and you require demo-private>=1, {THUS}"),
        "not-on-index: demo-private",
    ),
    "conflict": (
        unsolved(
            "demo-web>=2.0.0 depends on demo-view>=3.0 and you require demo-web>=2, we can conclude that you require "
            f"demo-view>=3.0.\n         And because you require demo-view<2.9, {THUS}"
        ),
        "no-solution: demo-web, demo-view",
    ),
    "python-too-old": (
        unsolved(
            "the current Python version (3.6.15) does not satisfy Python>=3.8 and demo==2.0 depends on Python>=3.8, "
            "we can conclude that demo==2.0 cannot be used."
        ),
        "python-mismatch: demo: >=3.8",
    ),
    "no-wheel-for-this-python": (
        unsolved("demo==1.0.0 has no wheels with a matching Python ABI tag (e.g., `cp312`), we can conclude that ..."),
        "no-wheel: demo",
    ),
    "metadata-that-cannot-be-read": (
        unsolved("demo>=0.19.0 has invalid metadata and other==0.10.0 depends on demo>=0.19, we can conclude ..."),
        "invalid-metadata: demo",
    ),
    "pip-no-version": (
        "ERROR: Could not find a version that satisfies the requirement demo==9 (from versions: 1.0, 2.0)\n"
        "ERROR: No matching distribution found for demo==9\n",
        "no-version: demo==9",
    ),
    "pip-not-on-index": (
        "ERROR: Could not find a version that satisfies the requirement demo-private (from versions: none)\n",
        "not-on-index: demo-private",
    ),
}


@pytest.mark.parametrize("case", RESOLVED)
def test_a_resolution_that_fails_names_who_is_to_blame(case: str) -> None:
    text, expected = RESOLVED[case]
    assert first("lock", text) == expected


BUILDS = {
    "setup-py-needs-numpy": (
        build("demo @ file:///w/demo-1.0", "  File \"setup.py\", line 3\nModuleNotFoundError: No module named 'numpy'"),
        "build-needs-module: : numpy",
    ),
    "locked-one-needs-numpy": (
        build("old-demo==1.0", "ModuleNotFoundError: No module named 'numpy'"),
        "build-needs-module: old-demo: numpy",
    ),
    "name-of-setuptools": (
        build("old-demo==1.0", "  from setuptools import setup, Feature\nImportError: cannot import name 'Feature'"),
        "build-needs-name: old-demo: setuptools:Feature",
    ),
    "header": (
        build("demo==1", "src/m.c:4:10: fatal error: libpq-fe.h: No such file or directory"),
        "missing-header: libpq-fe.h",
    ),
    "pkg-config": (
        build("demo==1", "Package 'libxml-2.0', required by 'virtual:world', not found"),
        "missing-header: libxml-2.0.pc",
    ),
    "linker": (build("demo==1", "/usr/bin/ld: cannot find -lpq: No such file or directory"), "missing-library: -lpq"),
    "compiler": (build("demo==1", "error: command 'gcc' failed: No such file or directory"), "missing-tool: gcc"),
    "pg_config": (build("demo==1", "Error: pg_config executable not found."), "missing-tool: pg_config"),
    "shell": (build("demo==1", "/bin/sh: 1: mysql_config: not found"), "missing-tool: mysql_config"),
    "rust": (build("demo==1", "error: can't find Rust compiler"), "missing-tool: cargo"),
    "cmake": (build("demo==1", "CMake must be installed to build the following extensions: x"), "missing-tool: cmake"),
    "2to3": (build("demo==1", "error in demo setup command: use_2to3 is invalid."), "use-2to3: demo"),
    "cython": (
        build("demo==1", "Error compiling Cython file:\n-----\n demo.pyx:3:1: undeclared name"),
        "cython-language: demo",
    ),
    "wheel": (
        build(
            "demo==1",
            'File "/c/wheel/bdist_wheel.py", line 443, in egg2dist\n  shutil.copy(a, b)\nTypeError: not NoneType',
        ),
        "old-wheel: demo",
    ),
    "version": (
        build("demo==1", "packaging.version.InvalidVersion: Invalid version: '2020b-x'"),
        "strict-metadata: demo: version",
    ),
    "flat": (
        build("demo @ file:///w", "error: Multiple top-level packages discovered in a flat-layout: ['a', 'b']."),
        "flat-layout",
    ),
    "git-tags": (
        build("demo @ file:///w", "LookupError: setuptools-scm was unable to detect version for /w/demo."),
        "no-version-from-vcs: : setuptools-scm",
    ),
    "python-2": (
        build("demo==1", "  File \"setup.py\", line 2\n    print 'hello'\n          ^\nSyntaxError: invalid syntax"),
        "python-2-syntax",
    ),
    "unknown": (build("demo==1", "RuntimeError: no way"), "build-failed: demo==1"),
    "pip": ("  ERROR: Failed building wheel for demo\nFailed to build demo\n", "build-failed: demo"),
    "time": ("resolving the dependencies exceeded its time limit", "time-out"),
    "memory": ("installing the project exceeded its limit of memory", "memory-limit"),
    "disk": ("installing the project exceeded its limit of disk", "limit: disk"),
}


@pytest.mark.parametrize("case", BUILDS)
def test_a_build_that_fails_names_what_it_lacks(case: str) -> None:
    text, expected = BUILDS[case]
    assert first("environment", text) == expected


RAN = {
    "module": ("E   ModuleNotFoundError: No module named 'yaml'", "missing-module: yaml"),
    "dotted": ("E   ModuleNotFoundError: No module named 'google.cloud'", "missing-module: google.cloud"),
    "name": (
        "E   ImportError: cannot import name 'Markup' from 'jinja2' (/opt/env/x.py)",
        "missing-name: jinja2:Markup",
    ),
    "name-python-3.6": (
        "    from jinja2 import a, Markup\nE   ImportError: cannot import name 'Markup'",
        "missing-name: jinja2:Markup",
    ),
    "name-of-nobody": ("    )\nE   ImportError: cannot import name 'Markup'", "missing-name: ?:Markup"),
    "attribute": ("E   AttributeError: module 'numpy' has no attribute 'float'.\n", "missing-attribute: numpy:float"),
    "object": ("E   AttributeError: 'EntryPoints' object has no attribute 'get'", "missing-attribute: EntryPoints:get"),
    "argument": (
        "E   TypeError: attrib() got an unexpected keyword argument 'convert'",
        "unexpected-argument: attrib:convert",
    ),
    "library": (
        "E   ImportError: libGL.so.1: cannot open shared object file: No such file",
        "missing-library: libGL.so.1",
    ),
    "magic": ("E   ImportError: failed to find libmagic.  Check your installation", "missing-library: libmagic.so.1"),
    "program": (
        "/usr/lib/python3.11/subprocess.py:1955: in _execute_child\n    raise child_exception_type(errno_num)\n"
        "E   FileNotFoundError: [Errno 2] No such file or directory: 'git'",
        "missing-tool: git",
    ),
    "option": ("ERROR: usage: pytest\npytest: error: unrecognized arguments: --cov=demo -n", "unknown-option: --cov"),
    "plugin": ('ImportError: Error importing plugin "pytest_demo": No such thing', "missing-plugin: pytest_demo"),
    "required": ("ERROR: Missing required plugins: pytest-mock, pytest-env>=1", "missing-plugin: pytest-env>=1"),
    "hook": (
        "PluginValidationError: unknown hook 'pytest_html_report_title' in plugin <x>",
        "unknown-hook: pytest_html_report_title",
    ),
    "fixture": ("E       fixture 'mocker' not found\n>  available fixtures: cache", "missing-fixture: mocker"),
    "mark": ("E   'asyncio' not found in `markers` configuration option", "unknown-mark: asyncio"),
    "async": ("E   Failed: async def functions are not natively supported.", "async-plugin"),
    "setting": ("ERROR: setup.cfg: Unknown config option: asyncio_mode", "unknown-ini: asyncio_mode"),
    "warning": (
        "E   DeprecationWarning: pkg_resources is deprecated as an API. See https://x/y",
        "warning-as-error: DeprecationWarning: pkg_resources is deprecated as an API. See",
    ),
    "abi": ("E   ValueError: numpy.dtype size changed, may indicate binary incompatibility.", "binary-mismatch: numpy"),
    "redis": ("E   redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379.", "needs-service: redis"),
    "postgres": ('E   psycopg2.OperationalError: connection to server at "x" failed', "needs-service: postgresql"),
    "port": (
        "E   ConnectionRefusedError: [Errno 111] Connect call failed ('127.0.0.1', 27017)",
        "needs-service: mongodb",
    ),
    "docker": ("E   docker.errors.DockerException: Error while fetching server API version", "needs-service: docker"),
    "network": ("E   socket.gaierror: [Errno -3] Temporary failure in name resolution", "needs-network"),
    "display": ("E   _tkinter.TclError: no display name and no $DISPLAY environment variable", "needs-display: tk"),
    "gpu": ("E   RuntimeError: Found no NVIDIA driver on your system.", "needs-gpu: cuda"),
    "locale": ("E   locale.Error: unsupported locale setting", "locale"),
    "zone": (
        "E   zoneinfo._common.ZoneInfoNotFoundError: 'No time zone found with key Europe/Rome'",
        "time-zone: data",
    ),
    "user": ("E   KeyError: 'getpwuid(): uid not found: 1000'", "user"),
    "git": ("*** Please tell me who you are.", "git-identity"),
    "walrus": (
        'E     File "/x/y.py", line 3\nE       if (n := 1):\nE            ^\nE   SyntaxError: invalid syntax',
        "newer-syntax: 3.8",
    ),
    "match": (
        '  File "/x/y.py", line 3\n    match value:\n          ^\nSyntaxError: invalid syntax',
        "newer-syntax: 3.10",
    ),
    "async-name": (
        '  File "y.py", line 3\n    def f(self, async=True):\n              ^\nSyntaxError: invalid syntax',
        "older-syntax: 3.6",
    ),
    "future": ("E   SyntaxError: future feature annotations is not defined", "newer-syntax: 3.7"),
    "yield": ("E   yield tests were removed in pytest 4.0 - test_x will be ignored", "known-message: yield-tests"),
    "protobuf": ("E   TypeError: Descriptors cannot not be created directly.", "known-message: protobuf-descriptors"),
}


@pytest.mark.parametrize("case", RAN)
def test_a_run_that_fails_names_what_it_lacks(case: str) -> None:
    text, expected = RAN[case]
    assert first("suite", text) == expected


def test_a_conflict_is_told_only_where_nothing_more_exact_is() -> None:
    text = unsolved(f"only demo<=1.22.0 is available and you require demo>=1.24, {THUS}", LATE.format("demo"))
    assert [one.kind for one in signatures_of_log("lock", text)] == ["newer-than-date"]


def test_what_a_build_prints_is_no_missing_module_of_the_tests() -> None:
    log = build("demo==1", "ModuleNotFoundError: No module named 'numpy'")
    assert "missing-module" not in {signature.kind for signature in signatures_of_log("environment", log)}


def test_a_name_without_its_module_is_not_told_beside_the_name_with_it() -> None:
    text = "    from jinja2 import Markup\nE   ImportError: cannot import name 'Markup'"
    assert [str(one) for one in signatures_of_log("suite", text)] == ["missing-name: jinja2:Markup"]


def test_what_most_tests_lack_is_told_first() -> None:
    def failed(number: int, message: str) -> TestResult:
        return TestResult(nodeid=f"t.py::t{number}", status=TestStatus.FAILED, phase="call", message=message)

    network = [failed(n, "socket.gaierror: [Errno -2] Name or service not known") for n in range(9)]
    fixture = TestResult(nodeid="t.py::f", status=TestStatus.ERROR, text="E  fixture 'mocker' not found")
    outcome = RunOutcome(results=(fixture, *network), started=True, finished=True)
    assert [one.kind for one in signatures_of_run(outcome, "")] == ["needs-network", "missing-fixture"]


def test_a_file_that_cannot_be_collected_counts_as_several_tests() -> None:
    failed = TestResult(nodeid="t.py::t", status=TestStatus.FAILED, text="E  fixture 'mocker' not found")
    error = {"u.py": "u.py:1: in <module>\n    import yaml\nE   ModuleNotFoundError: No module named 'yaml'"}
    outcome = RunOutcome(results=(failed,), collect_errors=error, started=True, finished=True)
    assert [one.kind for one in signatures_of_run(outcome, "")] == ["missing-module", "missing-fixture"]


def test_a_run_that_did_not_start_is_told_by_what_pytest_printed() -> None:
    found = signatures_of_run(RunOutcome(), "pytest: error: unrecognized arguments: --reuse-db")
    assert found == (Signature(kind="unknown-option", subject="--reuse-db"),)


def test_a_run_that_was_healthy_but_printed_errors_has_no_signature() -> None:
    passed = TestResult(nodeid="t.py::t", status=TestStatus.PASSED, phase="call")
    outcome = RunOutcome(results=(passed,), started=True, finished=True)
    assert signatures_of_run(outcome, "ModuleNotFoundError: No module named 'yaml'") == ()


def test_bounds_of_a_run_are_signatures() -> None:
    assert signatures_of_run(RunOutcome(started=True, timed_out=True), "")[0].kind == "time-out"
    assert signatures_of_run(RunOutcome(started=True, out_of_memory=True), "")[0].kind == "memory-limit"
    assert str(signatures_of_run(RunOutcome(started=True, limit="pids"), "")[0]) == "limit: pids"


def test_every_kind_has_a_meaning_and_a_rank() -> None:
    assert set(MEANINGS) == set(Kind) == set(RANK)


MANY = [text for text, _ in (*RESOLVED.values(), *BUILDS.values(), *RAN.values())]


@given(
    st.lists(st.sampled_from(MANY) | st.text(max_size=80), max_size=40), st.sampled_from(["lock", "project", "suite"])
)
def test_any_log_gives_few_short_signatures(parts: list[str], step: str) -> None:
    found = signatures_of_log(step, "\n".join(parts))
    assert len(found) <= MOST
    assert all(len(one.subject) <= 120 and "\n" not in one.subject for one in found)
    assert len(set(found)) == len(found)


@given(st.binary(max_size=400))
def test_bytes_that_are_no_text_do_no_harm(data: bytes) -> None:
    signatures_of_log("environment", data.decode("utf-8", "surrogateescape"))


PLACES = ("/home/miner/uvc/.tmpAb12Cd", "/tmp/x9/y", "/srv/another/place", "/w")


@given(st.sampled_from(PLACES), st.sampled_from(PLACES), st.integers(10_000, 2**40), st.integers(10_000, 2**40))
def test_the_place_and_the_moment_of_a_failure_do_not_change_its_signature(a: str, b: str, n: int, m: int) -> None:
    form = (
        "{0}/demo/x.py:3: in <module>\n    import yaml\nE   DeprecationWarning: object <X at {1:#x}> in {0}/demo/x.py "
        "of {1}.25s is old\nE   ModuleNotFoundError: No module named 'yaml'\nError at {0}/demo/z.c: 9"
    )
    assert signatures_of_log("suite", form.format(a, n)) == signatures_of_log("suite", form.format(b, m))


def test_a_huge_log_is_read_at_its_ends_in_little_time() -> None:
    text = (
        "x" * 1000
        + "E   ModuleNotFoundError: No module named 'yaml'\n"
        + "subprocess.py " * 2_000_000
        + "\n"
        + "a/" * 100_000
    )
    assert first("suite", text) == "missing-module: yaml"


@pytest.mark.parametrize(
    "text",
    [
        f"No solution found {'a' * 200_000}",
        f"No solution found a{'!' * 200_000} ",
        f"No solution found a{'>=1,' * 50_000}",
        "\n" * 200_000,
        f"E   UserWarning: {'a' * 200_000}",
        f'File "x", line 1\ndef f{"(" * 200_000}\nSyntaxError: bad',
        "lib" * 60_000,
    ],
    ids=["name", "epochs", "bounds", "blank lines", "warning", "line of source", "library"],
)
def test_hostile_output_takes_no_time(text: str) -> None:
    started = time.monotonic()
    signatures_of_log("lock", text)
    signatures_of_log("suite", text)
    assert time.monotonic() - started < 5
