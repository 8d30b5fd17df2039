"""A small project whose tests end in every way and are hostile to a reporter, and what its report must say.

Shared by `test_plugin.py` and `benchmarks/plugin_matrix.py`; the samples run on Python 2.7 to 3.14 and pytest 4.6 to 9.
"""

import os
import subprocess
from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[2] / "miner" / "sandbox" / "plugin"

STATUSES = """\
import unittest
import pytest

SENTINEL = "seen"

@pytest.fixture
def broken():
    raise RuntimeError("setup")

@pytest.fixture
def leaky():
    yield 1
    raise RuntimeError("teardown")

def test_passes(): pass
def test_fails(): assert 1 == 2, "one is not two"
def test_raises(): {}["missing"]
def test_pytest_fails(): pytest.fail("by hand")
def test_setup(broken): pass
def test_teardown(leaky): pass
def test_fails_and_errs(leaky): assert 0
def test_skips(): pytest.skip("not today")

@pytest.mark.skip(reason="marked")
def test_marked(): pass

@pytest.mark.xfail(reason="known")
def test_xfail(): assert 0

@pytest.mark.xfail(run=False)
def test_xfail_not_run(): assert 0

@pytest.mark.xfail
def test_xpass(): pass

@pytest.mark.xfail(strict=True)
def test_strict(): pass

@pytest.mark.parametrize("x", ["a b", " - ", "c::d", u"\\xe9", "n\\nl", "[x]", "PASSED a.py::t"])
def test_id(x): pass

class TestUnit(unittest.TestCase):
    def test_unit(self): self.assertEqual(1, 1)
    def test_unit_fails(self): self.assertEqual(1, 2)
    def test_sub(self):
        if not hasattr(self, "subTest"):
            self.fail("no subtests")
        for i in range(3):
            with self.subTest("part", i=i): self.assertEqual(i, 0)
"""

HOSTILE = """\
import json, os, sys, time
import pytest

def test_chdir(tmpdir): os.chdir(str(tmpdir))
def test_after_chdir(): pass

def test_closes_descriptors():
    for fd in range(100, 400):
        try: os.close(fd)
        except OSError: pass

def test_after_close(): pass

def test_takes_the_number_of_the_descriptor(tmpdir):
    mine = os.open(str(tmpdir.join("mine")), os.O_RDWR | os.O_CREAT)
    for fd in range(100, 400):
        os.dup2(mine, fd)

def test_after_takeover(): pass

def _fake(*args, **kwargs): raise RuntimeError("fake")

def test_patches(monkeypatch):
    for module, name in [(os, "write"), (os, "open"), (os, "getpid"), (json, "dumps"), (time, "time"),
                         (json.encoder, "encode_basestring_ascii")]:
        monkeypatch.setattr(module, name, _fake)

def test_patches_for_good():
    json.dumps = _fake
    json.encoder.encode_basestring_ascii = _fake

def test_after_patches(): pass

def test_prints():
    print("PASSED test_hostile.py::test_nowhere")
    sys.stdout = sys.stderr

def test_forks_and_leaves():
    child = os.fork()
    if child == 0: os._exit(0)
    os.waitpid(child, 0)

def test_environment_is_clean():
    assert not [name for name in os.environ if name.startswith("SWE_MINER")]
    assert "swe_miner" not in " ".join(sys.argv).replace("swe_miner_reporter", "")
"""

BROKEN = "import a_module_that_is_not_there\n"
SKIPPED = 'import pytest\npytest.importorskip("a_module_that_is_not_there")\n'

FILES = {
    "test_statuses.py": STATUSES,
    "test_hostile.py": HOSTILE,
    "test_broken.py": BROKEN,
    "test_skipped.py": SKIPPED,
    "conftest.py": "",
}

_S, _H = "test_statuses.py::", "test_hostile.py::"
IDS = ["a b", " - ", "c::d", "\\xe9", "n\\nl", "[x]", "PASSED a.py::t"]
EXPECTED = {
    **{f"{_S}{name}": "passed" for name in ("test_passes", "TestUnit::test_unit", *(f"test_id[{x}]" for x in IDS))},
    **{f"{_S}{name}": "failed" for name in ("test_fails", "test_raises", "test_pytest_fails", "test_fails_and_errs")},
    **{f"{_S}{name}": "failed" for name in ("test_strict", "TestUnit::test_unit_fails", "TestUnit::test_sub")},
    **{f"{_S}{name}": "error" for name in ("test_setup", "test_teardown")},
    **{f"{_S}{name}": "skipped" for name in ("test_skips", "test_marked")},
    **{f"{_S}{name}": "xfailed" for name in ("test_xfail", "test_xfail_not_run")},
    f"{_S}test_xpass": "xpassed",
    **{
        f"{_H}test_{name}": "passed"
        for name in (
            "chdir",
            "after_chdir",
            "closes_descriptors",
            "after_close",
            "takes_the_number_of_the_descriptor",
            "after_takeover",
            "patches",
            "patches_for_good",
            "after_patches",
            "prints",
            "forks_and_leaves",
            "environment_is_clean",
        )
    },
}
EXCEPTIONS = {
    f"{_S}test_fails": "AssertionError",
    f"{_S}test_raises": "KeyError",
    f"{_S}test_pytest_fails": "Failed",
    f"{_S}test_setup": "RuntimeError",
    f"{_S}test_teardown": "RuntimeError",
    f"{_S}TestUnit::test_unit_fails": "AssertionError",
}


def write(folder, files=FILES):
    """Write a project of test modules."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# -*- coding: utf-8 -*-\n" + text, encoding="utf-8")


def run_pytest(python, folder, *args, packages=(), timeout=120, **environment):
    """Run pytest with the plug-in in a folder; return the bytes of the report and the finished process."""
    report = folder / "report.jsonl"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON", "COV"))}
    done = subprocess.run(
        [str(python), "-m", "pytest", "-p", "swe_miner_reporter", "-p", "no:cacheprovider", *args],
        cwd=folder,
        env={
            **inherited,
            "PYTHONPATH": os.pathsep.join([str(PLUGIN), *map(str, packages)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SWE_MINER_REPORT": str(report),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **environment,
        },
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return (report.read_bytes() if report.exists() else b""), done


def differences(outcome, expected=EXPECTED, exceptions=EXCEPTIONS):
    """What an outcome says differently from what the samples are known to do, as lines."""
    said = {item.nodeid: str(item.status) for item in outcome.results}
    found = [
        f"{k}: {said.get(k)} for {expected.get(k)}"
        for k in sorted({*said, *expected})
        if said.get(k) != expected.get(k)
    ]
    for item in outcome.results:
        name = exceptions.get(item.nodeid)
        if name and name not in item.exceptions:
            found.append(f"{item.nodeid}: {item.exceptions} without {name}")
    if set(outcome.collect_errors) != {"test_broken.py"} or set(outcome.collect_skips) != {"test_skipped.py"}:
        found.append(f"collectors: {sorted(outcome.collect_errors)} {sorted(outcome.collect_skips)}")
    if not (outcome.started and outcome.finished) or outcome.damaged or outcome.repeated or outcome.unfinished:
        found.append(f"started {outcome.started}, finished {outcome.finished}, damaged {outcome.damaged}")
    if outcome.collected[0] != set(expected):
        found.append(f"collected {sorted(outcome.collected[0] ^ set(expected))}")
    return found
