"""The pytest plug-in: run for real, on our own small test modules, in a process of its own."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_samples import FILES, PLUGIN, STATUSES, differences, run_pytest, write

from miner.sandbox.outcomes import parse_events, read_run

SOURCE = (PLUGIN / "swe_miner_reporter.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """One run of all samples: the report and the process."""
    folder = tmp_path_factory.mktemp("samples")
    write(folder)
    return run_pytest(sys.executable, folder, "--continue-on-collection-errors")


def events_of(folder, text, *args, **environment):
    """The events of a run of one module."""
    write(folder, {"test_it.py": text})
    data, done = run_pytest(sys.executable, folder, *args, **environment)
    return list(parse_events(data).items), read_run(data), done


def test_every_way_a_test_ends_and_every_attack_is_reported_right(sampled):
    assert differences(read_run(sampled[0])) == []


def test_first_line_is_the_session(sampled):
    first = json.loads(sampled[0].splitlines()[0])
    assert first["event"] == "session"
    assert first["schema"] == 1
    assert first["pytest"] == pytest.__version__
    assert first["python"] == ".".join(map(str, sys.version_info[:3]))


def test_report_is_ascii_and_numbered_from_0(sampled):
    assert sampled[0].isascii()
    assert [json.loads(line)["n"] for line in sampled[0].splitlines()] == list(range(len(sampled[0].splitlines())))


def test_output_of_pytest_is_the_same_without_the_plug_in(tmp_path):
    files = {name: text for name, text in FILES.items() if name != "test_hostile.py"}
    write(tmp_path, files)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors", "-rA"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    bare = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    _, done = run_pytest(sys.executable, tmp_path, "--continue-on-collection-errors", "-rA")

    def settled(output):
        return [line for line in output.decode().splitlines() if " in 0." not in line and " in 1." not in line]

    assert settled(done.stdout) == settled(bare.stdout)
    assert done.stderr == bare.stderr


def test_failure_carries_its_message_and_text(sampled):
    failed = {item.nodeid: item for item in read_run(sampled[0]).results}
    item = failed["test_statuses.py::test_fails"]
    assert "one is not two" in item.message
    assert "AssertionError: one is not two" in item.text
    assert failed["test_statuses.py::test_marked"].message == "Skipped: marked"


def test_collection_error_carries_its_text(sampled):
    assert "a_module_that_is_not_there" in read_run(sampled[0]).collect_errors["test_broken.py"]


def test_process_that_dies_names_the_running_test(tmp_path):
    text = "import os\ndef test_a(): pass\ndef test_b(): os._exit(7)\ndef test_c(): pass\n"
    _, outcome, done = events_of(tmp_path, text)
    assert done.returncode == 7
    assert (outcome.running, outcome.finished) == ("test_it.py::test_b", False)
    assert {item.nodeid: str(item.status) for item in outcome.results} == {
        "test_it.py::test_a": "passed",
        "test_it.py::test_b": "error",
    }


def test_forked_child_that_runs_on_through_pytest_writes_nothing(tmp_path):
    text = "import os\ndef test_a(): os.fork()\ndef test_b(): pass\n"
    _, outcome, _ = events_of(tmp_path, text)
    assert outcome.damaged == 0
    assert outcome.repeated == frozenset()
    assert len(outcome.results) == 2


def test_pytest_that_a_test_starts_does_not_report_into_the_same_file(tmp_path):
    text = (
        "import pytest, subprocess, sys\n"
        "def test_outer(tmp_path):\n"
        "    (tmp_path / 'test_inner.py').write_text('def test_inner(): assert 0')\n"
        "    command = ['-p', 'swe_miner_reporter', str(tmp_path)]\n"
        "    assert pytest.main(command) == 1\n"
        "    assert subprocess.run([sys.executable, '-m', 'pytest', *command]).returncode == 1\n"
    )
    _, outcome, _ = events_of(tmp_path, text)
    assert [(item.nodeid, str(item.status)) for item in outcome.results] == [("test_it.py::test_outer", "passed")]
    assert outcome.damaged == 0


def test_report_that_a_test_removes_shows_the_loss(tmp_path):
    text = f"import os\ndef test_a(): os.remove({str(tmp_path / 'report.jsonl')!r})\ndef test_b(): pass\n"
    _, outcome, _ = events_of(tmp_path, text)
    assert outcome.damaged > 0
    assert "test_it.py::test_b" in {item.nodeid for item in outcome.results}


def test_line_that_a_test_writes_into_the_report_is_not_taken_for_a_result(tmp_path):
    line = json.dumps({"event": "report", "nodeid": "x", "when": "call", "outcome": "passed", "n": 1})
    text = f"def test_a(): open({str(tmp_path / 'report.jsonl')!r}, 'a').write({line!r} + chr(10))\n"
    _, outcome, _ = events_of(tmp_path, text)
    assert outcome.damaged == 1
    assert [item.nodeid for item in outcome.results] == ["test_it.py::test_a"]


def test_pytest_exit_and_its_reason(tmp_path):
    _, outcome, _ = events_of(tmp_path, "import pytest\ndef test_a(): pytest.exit('enough')\n")
    assert "enough" in outcome.stopped


def test_stop_after_the_first_failure_is_told(tmp_path):
    _, outcome, _ = events_of(tmp_path, "def test_a(): assert 0\ndef test_b(): pass\n", "-x")
    assert "stopping after 1 failures" in outcome.stopped
    assert outcome.finished


def test_internal_error_of_pytest_is_told(tmp_path):
    write(tmp_path, {"conftest.py": "def pytest_runtest_setup(item): pass\ndef pytest_runtestloop(session): 1 / 0\n"})
    _, outcome, done = events_of(tmp_path, "def test_a(): pass\n")
    assert done.returncode == 3
    assert "ZeroDivisionError" in outcome.stopped


def test_conftest_that_cannot_be_imported(tmp_path):
    write(tmp_path, {"conftest.py": "from nowhere import thing\n", "test_a.py": "def test_a(): pass\n"})
    data, done = run_pytest(sys.executable, tmp_path)
    log = (done.stdout + done.stderr).decode()
    outcome = read_run(data, log=log, exit_status=done.returncode)
    assert "nowhere" in outcome.collect_errors[""]


def test_collect_only_reports_the_collection(tmp_path):
    _, outcome, _ = events_of(tmp_path, "def test_a(): pass\ndef test_b(): pass\n", "--collect-only", "-q")
    assert outcome.collected == ({"test_it.py::test_a", "test_it.py::test_b"},)
    assert outcome.results == ()
    assert outcome.finished


def test_large_collection_comes_in_chunks(tmp_path):
    text = "import pytest\n@pytest.mark.parametrize('n', range(1203))\ndef test_a(n): pass\n"
    events, outcome, _ = events_of(tmp_path, text, "--collect-only", "-q")
    assert [len(event["ids"]) for event in events if event["event"] == "collected"] == [500, 500, 203]
    assert len(outcome.collected[0]) == 1203


def test_huge_failure_text_is_cut_in_its_middle(tmp_path):
    events, _, _ = events_of(tmp_path, "def test_a(): raise ValueError('a' * 10 ** 6 + 'end')\n", "--tb=native")
    failed = next(event for event in events if event.get("outcome") == "failed" and event["event"] == "report")
    assert len(failed["longrepr"]) < 21_000
    assert "characters left out" in failed["longrepr"]
    assert failed["message"].endswith("end")


def test_probe_imports_modules_after_the_collection_and_tells_their_file_and_value(tmp_path):
    write(tmp_path, {"thing.py": "MARK = 'edited'\n", "quits.py": "raise SystemExit(3)\n"})
    probe = {"SWE_MINER_PROBE": "thing,quits,nowhere", "SWE_MINER_PROBE_ATTR": "MARK"}
    events, outcome, _ = events_of(tmp_path, "def test_a(): pass\n", "--collect-only", **probe)
    probed = {event["module"]: event for event in events if event["event"] == "probe"}
    assert probed["thing"]["value"] == "'edited'"
    assert Path(probed["thing"]["file"]) == tmp_path / "thing.py"
    assert probed["quits"]["error"].startswith("SystemExit")
    assert probed["nowhere"]["error"].startswith("ModuleNotFoundError")
    assert outcome.finished


def test_without_a_report_file_the_plug_in_does_nothing(tmp_path):
    data, done = run_pytest(sys.executable, tmp_path, "--version", SWE_MINER_REPORT="")
    assert (data, done.returncode) == (b"", 0)


def test_report_file_that_cannot_be_written_does_not_break_the_tests(tmp_path):
    write(tmp_path, {"test_it.py": "def test_a(): pass\n"})
    _, done = run_pytest(sys.executable, tmp_path, SWE_MINER_REPORT=str(tmp_path / "none" / "report.jsonl"))
    assert done.returncode == 0


def test_module_keeps_no_function_that_fakes_of_files_or_clocks_replace():
    """Tools that fake them replace functions in the globals of modules: the plug-in keeps none there."""
    module = ast.parse(SOURCE)
    imported = {name.name for node in module.body if isinstance(node, ast.Import) for name in node.names}
    assert imported == {"json.encoder", "sys", "pytest"}
    assert not [node for node in module.body if isinstance(node, ast.ImportFrom)]


def test_source_has_only_syntax_of_python_2():
    assert SOURCE.isascii()
    tree = ast.parse(SOURCE)
    modern = (
        ast.JoinedStr,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.Nonlocal,
        ast.YieldFrom,
        ast.AsyncFunctionDef,
    )
    assert not [node for node in ast.walk(tree) if isinstance(node, modern)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert not node.returns
            assert not node.args.kwonlyargs
            assert not [arg for arg in node.args.args if arg.annotation]


@pytest.mark.index
@pytest.mark.parametrize("version", ["6.2", "7.4", "8.4", "9.0"])
def test_plug_in_on_other_versions_of_pytest_and_under_xdist(tmp_path, version):
    python = tmp_path / "venv" / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], check=True, timeout=300)
    wanted = [f"pytest=={version}.*", "pytest-xdist"]
    subprocess.run([*uv, "pip", "install", "--quiet", "--python", python, *wanted], check=True, timeout=300)
    write(tmp_path / "plain")
    data, _ = run_pytest(python, tmp_path / "plain", "--continue-on-collection-errors")
    outcome = read_run(data)
    assert differences(outcome) == []
    assert outcome.pytest_version.startswith(version)
    write(tmp_path / "spread", {"test_statuses.py": STATUSES})
    data, _ = run_pytest(python, tmp_path / "spread", "-p", "xdist.plugin", "-n2")
    spread, alone = read_run(data), {item.nodeid: item for item in outcome.results}
    assert spread.results
    assert spread.collected[0] == {item.nodeid for item in spread.results}
    for item in spread.results:
        assert (item.status, item.exceptions) == (alone[item.nodeid].status, alone[item.nodeid].exceptions)
