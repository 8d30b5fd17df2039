"""The command line says what is wrong and what to do, with the exit code that `miner.core.errors` documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crawlers.index_server import IndexServer
from planted import plant
from world import files, options, pair, publish, quiet_pair, settings

from miner.cli import main
from miner.core.ledger import Ledger
from miner.core.records import State

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def server() -> Iterator[IndexServer]:
    with IndexServer() as found:
        yield found


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls the program as its entry point does; the answer is exit code, output and error output."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["swe-miner", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        code = left.value.code
        return code if isinstance(code, int) else int(code is not None), out, err

    return call


WRONG = {
    "misspelt": (["-c", "run.workerz=3"], r"run.workerz: unknown key; did you mean run.workers?"),
    "misspelt-section": (["-c", "polizy.max_vanished=3"], "did you mean policy"),
    "not-a-number": (["-c", "run.workers=many"], 'run.workers: Input should be a valid integer'),
    "too-small": (["-c", "run.workers=0"], "run.workers: Input should be greater than or equal to 1"),
    "no-value": (["-c", "run.workers"], "-c run.workers: expected key=value"),
    "below-a-value": (["-c", "run.workers.first=x"], "workers is a value, not a section"),
    "no-such-file": (["--config", "none.toml"], "none.toml: cannot be read (No such file or directory)"),
    "a-folder": (["--config", "."], "cannot be read (Is a directory)"),
    "no-toml": (["--config", "text.toml"], "text.toml: "),
    "no-text": (["--config", "bytes.toml"], "bytes.toml: "),
    "pairs-are-no-list": (["-c", "pairs=3"], "pairs: "),
    "half-a-pair": (["-c", 'pairs=[{name="x", old="1"}]'], "pairs.0.new: Field required"),
    "pair-with-more": (["-c", 'pairs=[{name="x", old="1", new="2", newer="3"}]'], "pairs.0.newer: unknown key"),
    "no-name": (["-c", 'pairs=[{name="not a name!", old="1", new="2"}]'], "pairs: not a name! 2: name is invalid"),
    "no-version": (["-c", 'pairs=[{name="x", old="1", new="latest"}]'], "pairs: x latest: Invalid version: 'latest'"),
    "no-old-version": (["-c", 'pairs=[{name="x", old="first", new="2"}]'], "pairs: Invalid version: 'first'"),
    "backwards": (["-c", 'pairs=[{name="x", old="2", new="1"}]'], "pairs: x 2 -> 1: the old version is not the earl"),
    "one-id-twice": (
        ["-c", 'pairs=[{name="x-y", old="1", new="3"}, {name="X_y", old="2", new="3.0"}]'],
        "pairs: X_y 3.0 stands twice, after 1 and after 2",
    ),
    "one-pair-twice": (
        ["-c", 'pairs=[{name="x", old="1", new="3"}, {name="x", old="1", new="3", visibility="private"}]'],
        "pairs: x 3 stands twice, with one visibility and another",
    ),
    "no-visibility": (["-c", 'pairs=[{name="x", old="1", new="2", visibility="secret"}]'], "pairs.0.visibility: "),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_configuration_is_named_with_the_place_where_it_stands(
    case: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.toml").write_text("not toml at all")
    Path("bytes.toml").write_bytes(b'name = "caf\xe9"\n')
    arguments, message = WRONG[case]
    code, out, err = call("run", *arguments)
    assert (code, out) == (3, "")
    assert message in err
    assert "\nnext: " in err


def test_unknown_variable_of_the_environment_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWE_MINER_RUN__WORKER", "3")
    code, _, err = call("funnel")
    assert code == 3
    assert "run.worker: unknown key; did you mean run.workers?" in err


def test_a_pair_given_twice_is_mined_once(call: Call, server: IndexServer, tmp_path: Path) -> None:
    twice = [pair("none"), pair("None"), pair("none", "1.0.0", "1.1.0")]
    code, out, _ = call("run", "--json", *options(tmp_path, server, *twice))
    assert code == 0
    assert [one["instance_id"] for one in json.loads(out)["decisions"]] == ["pypi__none-1.1"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--source", "pypi"], "`pairs` is empty"),
        (["--source", "github", "--month", "2025-05"], "no repository is named\nnext: set `mine.repositories`"),
    ],
)
def test_run_without_candidates_leaves_the_release_of_before(
    flags: list[str], said: str, call: Call, server: IndexServer, tmp_path: Path
) -> None:
    call("run", *options(tmp_path, server, pair("none")))
    before = files(tmp_path / "out")
    code, _, err = call("run", *options(tmp_path, server), *flags)
    assert code == 2
    assert said in err
    assert files(tmp_path / "out") == before


def test_unknown_verb_is_a_usage_error(call: Call) -> None:
    assert call("mine")[0] == 2


def test_candidate_that_was_never_seen_is_a_usage_error_that_names_the_nearest(
    call: Call, server: IndexServer, tmp_path: Path
) -> None:
    chosen = options(tmp_path, server, pair("none"), pair("other"))
    call("run", *chosen)
    code, _, err = call("why", "pypi__nome-1.1", *chosen)
    assert code == 2
    assert "pypi__nome-1.1 was never seen; did you mean pypi__none-1.1" in err
    assert "swe-miner funnel --ids" in err


@pytest.mark.parametrize("verb", [["funnel"], ["why", "x"], ["invalidate", "x", "--why", "y"]])
def test_reading_a_ledger_that_is_not_there_makes_none(verb: list[str], call: Call, tmp_path: Path) -> None:
    code, _, err = call(*verb, "-c", f"paths.work={tmp_path / 'typo'}")
    assert code == 4
    assert "there is no ledger at" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["text", "half"])
def test_damaged_ledger_is_a_clear_error_and_is_left_alone(
    damage: str, call: Call, server: IndexServer, tmp_path: Path
) -> None:
    chosen = options(tmp_path, server, pair("none"))
    call("run", *chosen)
    file = tmp_path / "var" / "ledger.sqlite3"
    broken = b"no database\n" * 1000 if damage == "text" else file.read_bytes()[:5000]
    file.write_bytes(broken)
    code, _, err = call("run", *chosen)
    assert code == 4
    assert "ledger" in err
    assert file.read_bytes() == broken


def test_second_run_on_the_same_ledger_is_told_that_it_is_busy(call: Call, server: IndexServer, tmp_path: Path) -> None:
    chosen = options(tmp_path, server, pair("none"))
    assert call("run", *chosen)[0] == 0
    ledger = Ledger(settings(tmp_path, server).paths.ledger)
    with ledger.exclusive():
        code, out, _ = call("run", *chosen)
        assert (code, out) == (0, "already running: `swe-miner status` shows how far it is\n")
        for verb in (["remeasure"], ["invalidate", "pypi.look_up", "--why", "y"]):
            code, _, err = call(*verb, *chosen)
            assert code == 5
            assert "another run writes to this ledger" in err
        assert call("why", "pypi__none-1.1", *chosen)[0] == 0, "reading is always possible"
    assert len(ledger.runs()) == 1
    assert call("run", *chosen)[0] == 0


def test_engine_that_does_not_run_ends_the_run_keeps_what_was_measured_and_rejects_nothing(
    call: Call, server: IndexServer, tmp_path: Path
) -> None:
    good = publish(server, "good")
    chosen = options(tmp_path, server, pair("none"), good, run__workers=1)
    code, out, err = call("run", *chosen)
    assert code == 7
    assert "no container engine answers at tcp://127.0.0.1:1" in err
    assert "make docker" in err
    assert "pypi__good-1.1 source.extract ok" in out
    ledger = Ledger(settings(tmp_path, server).paths.ledger)
    states = {one.instance_id: (one.state, one.code) for one in ledger.decisions()}
    assert states["pypi__good-1.1"] == (State.FAULTED, "docker-unavailable")
    assert [fact.key.kind for fact in ledger.facts_of("pypi__good-1.1")] == ["source.look_up", "source.extract"]
    assert [run.status for run in ledger.runs()] == ["faulted"]
    plant(settings(tmp_path, server, good))  # what the engine would have shown
    code, out, _ = call("run", "--json", *chosen)
    assert (code, json.loads(out)["tasks"]) == (0, 1)


@pytest.mark.parametrize("url", ["postgresql://me:pw@db.invalid/ledger", "sqlite+aiosqlite:///x.db", "no url"])
def test_ledger_that_could_not_be_kept_to_one_writer_is_refused(
    url: str, call: Call, server: IndexServer, tmp_path: Path
) -> None:
    for verb in (["run"], ["why", "x"], ["funnel"]):
        code, _, err = call(*verb, *options(tmp_path, server, pair("none")), "-c", f"paths.ledger_url={url}")
        assert code == 3
        assert "paths.ledger_url: " in err
        assert "pw" not in err


def test_second_run_is_told_that_it_is_busy_however_the_ledger_is_named(
    call: Call, server: IndexServer, tmp_path: Path
) -> None:
    other_name = ("-c", f"paths.ledger_url=sqlite+pysqlite:///{tmp_path / 'var' / 'ledger.sqlite3'}")
    chosen = options(tmp_path, server, pair("none"))
    assert call("run", *chosen)[0] == 0
    with Ledger(settings(tmp_path, server).paths.ledger).exclusive():
        assert call("run", *chosen, *other_name)[1].startswith("already running")


def test_error_that_quotes_hostile_text_does_not_reach_the_terminal_with_it(
    call: Call, server: IndexServer, tmp_path: Path
) -> None:
    code, _, err = call("why", "pypi__\x1b]0;owned\x07-1", *options(tmp_path, server, pair("none")))
    assert code == 4
    call("run", *options(tmp_path, server, pair("none")))
    code, _, err = call("why", "pypi__\x1b]0;owned\x07-1", *options(tmp_path, server, pair("none")))
    assert code == 2
    assert "\\x1b]0;owned\\x07" in err
    assert "\x1b" not in err


@pytest.mark.parametrize(("where", "expected"), [("paths.work", 4), ("paths.blobs_url", 3), ("paths.release", 10)])
def test_folder_that_cannot_be_written_is_named(
    where: str, expected: int, call: Call, server: IndexServer, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    code, _, err = call("run", *options(tmp_path, server, pair("none")), "-c", f"{where}={tmp_path}/file/below")
    assert code == expected
    assert str(tmp_path / "file") in err
    assert "next: " in err


def test_release_folder_with_foreign_files_is_not_touched_and_nothing_measured_is_lost(
    call: Call, server: IndexServer, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("the only copy")
    chosen = options(tmp_path, server, pair("none"))
    code, _, err = call("run", *chosen)
    assert code == 10
    assert "thesis.txt" in err
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]
    (out / "thesis.txt").unlink()
    code, said, _ = call("run", "--json", *chosen)
    assert (code, json.loads(said)["measured"]) == (0, 0)


def test_lock_that_is_no_lock_is_a_release_error(call: Call, server: IndexServer, tmp_path: Path) -> None:
    chosen = options(tmp_path, server, pair("none"))
    call("run", *chosen)
    for lock in (tmp_path / "pairs.toml", tmp_path / "no-such-file"):
        code, _, err = call("release", "rebuild", str(lock), "--out", str(tmp_path / "again"), *chosen)
        assert code == 10
        assert str(lock) in err
    assert not (tmp_path / "again").exists()


def test_help_names_every_verb(call: Call) -> None:
    code, out, _ = call("--help")
    assert code == 0
    for verb in ("run", "status", "why", "funnel", "doctor", "invalidate", "remeasure", "release"):
        assert f" {verb} " in out


def test_paths_that_are_not_said_lie_where_the_program_was_started(
    call: Call, server: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = options(tmp_path, server, quiet_pair(server, "pkg"))
    kept = [
        part
        for option, value in zip(chosen[::2], chosen[1::2], strict=True)
        if not value.startswith("paths.")
        for part in (option, value)
    ]
    code, out, err = call("run", *kept)
    assert (code, err) == (0, "")
    assert "no-test-change" in out
    assert (tmp_path / "out" / "release.lock").is_file()
    assert list((tmp_path / "var" / "repos").glob("*.git"))
