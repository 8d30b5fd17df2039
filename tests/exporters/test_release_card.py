"""The dataset card: its text, and that the example in it does what it says."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import datasets
import pytest
from release_items import VERSIONS, accepted, faulted, rejected, settings

from exporters.card import card_bytes
from exporters.interface import PublicItem, ReleaseItem
from exporters.publish import redact
from exporters.release import build
from miner.core.records import Recipe, Visibility

GOLDEN = Path(__file__).parent / "golden" / "card.md"

# Stands for an engine: runs the script of a container in a folder that is the image's `/testbed`.
_ENGINE = """\
#!/bin/bash
for script; do :; done
cd {testbed} && exec bash -c "${{script//\\/testbed/{testbed}}}"
"""


def card(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def test_card_is_the_golden_file(tmp_path: Path) -> None:
    items = [
        accepted("pypi__wordlib-1.1.0"),
        accepted("pypi__wordlib-1.2.0"),
        accepted("pypi__quietlib-7.7.7", visibility=Visibility.PRIVATE),
        accepted("pypi__secretlib-6.6", visibility=Visibility.HOLD_OUT),
        rejected(),
        faulted(),
    ]
    build(items, settings(), VERSIONS, tmp_path)
    lines = [line for line in card(tmp_path).splitlines() if not line.startswith("Made by")]
    assert "\n".join(lines) + "\n" == GOLDEN.read_text(encoding="utf-8")


def test_numbers_of_the_card_add_up(tmp_path: Path) -> None:
    made = build([accepted(), rejected(), faulted()], settings(), VERSIONS, tmp_path)
    counts = [int(n) for n in re.findall(r"\| (?:accepted|rejected:|unmeasured|left out).*\| (\d+) \|", card(tmp_path))]
    considered = re.search(r"\*\*considered\*\* \| \*\*(\d+)\*\*", card(tmp_path))
    assert considered is not None
    assert sum(counts) == int(considered[1]) == made.accepted + made.rejected + made.unmeasured + made.left_out


def public(item: ReleaseItem, month: str | None = None) -> PublicItem:
    redacted = redact(item)
    assert redacted is not None
    return redacted.model_copy(update={"month": month})


def test_counts_are_split_by_source_and_month_and_add_up(tmp_path: Path) -> None:
    items = [
        public(accepted()),
        public(rejected()),
        public(faulted()),
        public(accepted("o__words-34", source="github"), "2023-05"),
        public(rejected("o__words-35", source="github"), "2023-05"),
        public(rejected("o__words-31", source="github"), "2023-04"),
        public(accepted("o__words-30", source="git"), "2023-04"),
    ]
    lock = build([], settings(), VERSIONS, tmp_path).lock
    lines = card_bytes(lock, items).decode().splitlines()
    start = lines.index("| source | month of the merge (UTC) | accepted | rejected | unmeasured |")
    assert lines[start + 2 : start + 6] == [
        "| git | 2023-04 | 1 | 0 | 0 |",
        "| github | 2023-04 | 0 | 1 | 0 |",
        "| github | 2023-05 | 1 | 1 | 0 |",
        "| pypi | - | 1 | 1 | 1 |",
    ]
    assert lines[start + 6] == ""


@pytest.mark.parametrize(
    ("gold", "project_dir", "outcome"), [(True, "", "1 passed"), (False, "", "1 failed"), (True, "wordlib", "1 passed")]
)
def test_example_runs_one_test_with_and_without_the_gold_patch(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    gold: bool,
    project_dir: str,
    outcome: str,
) -> None:
    recipe = Recipe(python="3.11", build_backend="hatchling.build", project_dir=project_dir)
    build([accepted(recipe=recipe)], settings(), VERSIONS, tmp_path / "release")
    testbed = tmp_path / "testbed"
    for name, text in {
        "wordlib/split.py": 'def words(text):\n    return text.split(" ")\n',
        "wordlib/__init__.py": "",
        "conftest.py": "",
        "tests/test_split.py": "from wordlib.split import words\n"
        'def test_spaces():\n    assert words("a b") == ["a", "b"]\n',
    }.items():
        (testbed / name).parent.mkdir(parents=True, exist_ok=True)
        (testbed / name).write_text(text)
    engine = tmp_path / "bin" / "docker"
    engine.parent.mkdir()
    engine.write_text(_ENGINE.format(testbed=testbed))
    engine.chmod(0o755)
    example = re.search(r"```python\n(.*?)```", card(tmp_path / "release"), re.DOTALL)
    assert example is not None
    code = example[1].replace("PATH_OR_HUB_ID", str(tmp_path / "release"))
    if not gold:
        code = code.replace(' + patch(task, "patch")', "")
    folders = [str(engine.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    exec(code, {})

    assert outcome in capfd.readouterr().out
