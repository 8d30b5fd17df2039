"""Settings are layered, typed and closed: an unknown key is an error that names the nearest known one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from miner.core.errors import ConfigError
from miner.core.settings import Measure, known_keys, load_settings


def test_a_chosen_file_wins_over_the_defaults_and_a_key_over_both(tmp_path: Path) -> None:
    chosen = tmp_path / "my.toml"
    chosen.write_text("[run]\nworkers = 5\n")
    assert load_settings(environ={}).run.workers == 2
    assert load_settings(chosen, environ={}).run.workers == 5
    assert load_settings(chosen, environ={"SWE_MINER_RUN__WORKERS": "6"}).run.workers == 6
    assert load_settings(chosen, ["run.workers=7"], {"SWE_MINER_RUN__WORKERS": "6"}).run.workers == 7


def test_pairs_come_from_a_chosen_file(tmp_path: Path) -> None:
    chosen = tmp_path / "my.toml"
    chosen.write_text('[[pairs]]\nname = "demo"\nold = "1.0"\nnew = "1.1"\n')
    assert [pair.new for pair in load_settings(chosen, environ={}).pairs] == ["1.1"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("run.wrokers=3", r"run\.wrokers: unknown key; did you mean run\.workers\?"),
        ("measure.test.timeout=3", r"did you mean measure\.test\.timeout_s\?"),
        ("zzz=1", r"^zzz: unknown key$"),
        ("run.workers=many", r'run\.workers: .*\(got "many"\)'),
        ("run.workers=0", r"run\.workers: .*greater than or equal to 1"),
        ("run.workers.deep=1", r"workers is a value, not a section"),
        ("run.workers", r"expected key=value"),
        ("run.engine=ray", r"run\.engine"),
    ],
)
def test_a_wrong_key_or_value_says_where_and_what(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(overrides=[override], environ={})


def test_a_broken_or_missing_file_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[run\n")
    with pytest.raises(ConfigError, match=r"broken\.toml"):
        load_settings(broken, environ={})
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot be read"):
        load_settings(tmp_path / "absent.toml", environ={})


def test_policy_and_measure_have_hashes_of_their_own() -> None:
    base, policy = load_settings(environ={}), load_settings(overrides=["policy.min_statement_chars=9"], environ={})
    assert base.policy_hash != policy.policy_hash
    assert base.measure == policy.measure


def test_what_is_true_of_this_machine_only_changes_no_hash() -> None:
    here, there = (
        load_settings(environ={}),
        load_settings(overrides=["paths.work=elsewhere", "run.workers=9"], environ={}),
    )
    assert here.hash == there.hash


def test_every_section_is_known_by_its_dotted_name() -> None:
    assert {"measure.test.memory_mb", "policy.min_fail_to_pass", "docker.base_image"} <= set(known_keys())


def test_the_shipped_tables_that_steer_results_are_part_of_what_stands_on_a_run() -> None:
    portable = load_settings(environ={}).portable()
    versions = [python["version"] for python in portable["pythons"]]
    assert versions == ["3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]
    assert "git" in portable["base_packages"]
    assert "gcc" in portable["tool_chain"]
    assert json.loads(json.dumps(portable)) == portable


def test_settings_of_a_release_from_before_there_were_models_are_read_as_using_none():
    before = load_settings(environ={}).measure.model_dump(mode="json")
    del before["model"]
    read = Measure.model_validate(before).model
    assert (read.order, read.structured.candidates, read.agent.attempts) == ((), 0, 0)
