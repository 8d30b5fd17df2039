"""A missing module leads to the distribution that really holds it as of the date, and to no namesake."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urljoin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repair_index import RepairIndex, settings_of, workshop_of

from installers.repair.aliases import candidates
from installers.repair.modules import Index, defines, provides
from installers.repair.platforms import fits
from installers.repair.remote_zip import Unreadable, Wheel
from miner.core.errors import InfrastructureFault
from miner.core.memo import Memo
from miner.core.records import Fact
from miner.core.settings import load_settings

CODE = {"yaml/__init__.py": "", "pyyaml-1.0.dist-info/RECORD": ""}


@pytest.fixture
def index() -> Iterator[RepairIndex]:
    with RepairIndex() as server:
        yield server


class Asked:
    """An index as of a date, and the facts that its answers are."""

    def __init__(self, server: RepairIndex, folder: Path, *, day: str = "2021-01-01", python: str = "3.9") -> None:
        self.facts: list[Fact] = []
        memo = Memo(lambda key: [one for one in self.facts if one.key == key], self.facts.append)
        workshop = workshop_of(settings_of(server, folder), folder)
        self.index = Index(workshop, memo, datetime.fromisoformat(day).replace(tzinfo=UTC), python)


def test_a_module_is_found_under_another_name(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("pyyaml", "1.0", CODE)
    asked = Asked(index, tmp_path)
    assert asked.index.provider("yaml") == "pyyaml"
    assert (asked.facts[0].key.kind, asked.facts[0].outcome) == ("install.provider", "ok")
    assert asked.facts[0].payload == {"distribution": "pyyaml", "version": "1.0", "looked": ["pyyaml 1.0: has it"]}


def test_a_namesake_without_the_module_is_not_taken(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.0", {"something_else.py": "", "demo-1.0.dist-info/RECORD": "demo.py"})
    index.wheel("python_demo", "1.0", {"demo/__init__.py": ""})
    assert Asked(index, tmp_path).index.provider("demo") == "python-demo"


def test_of_two_that_have_it_the_one_with_more_releases_is_taken(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("demo", "0.0.1", {"demo.py": ""})
    for version in ("1.0", "1.1", "2.0"):
        index.wheel("pytest_demo", version, {"demo/plugin.py": ""})
    assert Asked(index, tmp_path).index.provider("demo") == "pytest-demo"


def test_a_namesake_of_what_is_known_is_not_even_looked_at(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("pyyaml", "1.0", CODE)
    for version in ("1.0", "2.0"):
        index.wheel("yaml", version, CODE)
    assert Asked(index, tmp_path).index.provider("yaml") == "pyyaml"
    assert "/simple/yaml/" not in index.asked


def test_a_namesake_that_is_a_few_days_old_is_not_taken(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.0", {"demo.py": ""}, uploaded="2020-12-20")
    asked = Asked(index, tmp_path)
    assert asked.index.provider("demo") is None
    assert asked.facts[0].outcome == "module-unknown"
    assert "younger than 30 days" in asked.facts[0].payload["detail"]


def test_what_was_uploaded_after_the_date_or_yanked_is_not_there(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.0", {"other.py": ""})
    index.wheel("demo", "2.0", {"demo.py": ""}, uploaded="2022-01-01")
    index.wheel("demo", "1.5", {"demo.py": ""}, yanked=True)
    assert Asked(index, tmp_path).index.provider("demo") is None
    assert Asked(index, tmp_path, day="2023-01-01").index.provider("demo") == "demo"


def test_what_this_python_cannot_use_is_not_looked_into(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.0", {"demo.py": ""}, **{"requires-python": ">=3.10"})
    assert Asked(index, tmp_path).index.provider("demo") is None
    assert Asked(index, tmp_path, python="3.11").index.provider("demo") == "demo"


def test_a_source_distribution_is_looked_into_where_there_is_no_wheel(index: RepairIndex, tmp_path: Path) -> None:
    index.sdist("demo", "1.0", {"setup.py": "", "src/demo/__init__.py": ""})
    assert Asked(index, tmp_path).index.provider("demo") == "demo"


def test_a_part_of_a_namespace_is_asked_for_as_a_whole(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("google", "1.0", {"google/__init__.py": ""})
    index.wheel("google_cloud_demo", "1.0", {"google/cloud/demo/client.py": ""})
    assert Asked(index, tmp_path).index.provider("google.cloud.demo") == "google-cloud-demo"


@pytest.mark.parametrize("ranges", [True, False])
def test_a_large_wheel_is_not_downloaded_where_the_server_sends_ranges(
    index: RepairIndex, tmp_path: Path, ranges: bool
) -> None:
    index.ranges = ranges
    data = random.Random(0).randbytes(1 << 20)
    index.wheel("demo", "1.0", {"data.txt": data, "demo/__init__.py": ""})
    size = len(index.files["demo-1.0-py3-none-any.whl"])
    assert Asked(index, tmp_path).index.provider("demo") == "demo"
    assert (index.sent < size / 4) is ranges


def test_a_damaged_wheel_is_nothing_to_look_into(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.0", {"demo.py": ""})
    index.files["demo-1.0-py3-none-any.whl"] = b"x" * len(index.files["demo-1.0-py3-none-any.whl"])
    asked = Asked(index, tmp_path)
    assert asked.index.provider("demo") is None
    assert "nothing to look into" in asked.facts[0].payload["detail"]


def test_an_index_that_fails_is_a_fault_and_no_answer(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.0", {"demo.py": ""})
    index.broken = True
    asked = Asked(index, tmp_path)
    with pytest.raises(InfrastructureFault):
        asked.index.provider("demo")
    assert asked.facts == []


def test_an_answer_is_asked_for_once(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.0", {"demo.py": ""})
    asked = Asked(index, tmp_path)
    asked.index.provider("demo")
    before = len(index.asked)
    assert asked.index.provider("demo") == "demo"
    assert len(index.asked) == before


def test_the_last_version_that_has_a_name_is_found(index: RepairIndex, tmp_path: Path) -> None:
    for version, text in (("1.0", "def gone(): ..."), ("1.1", "def gone(): ..."), ("2.0", "def here(): ...")):
        index.wheel("demo", version, {"demo/tools.py": text})
    asked = Asked(index, tmp_path).index
    assert asked.last_with("demo", "demo.tools", "gone") == "1.1"
    assert asked.last_with("demo", "demo.tools", "here") is None
    assert asked.last_with("demo", "demo.tools", "never") is None


@given(st.integers(2, 40), st.integers(0, 39))
@settings(max_examples=15)
def test_of_many_series_the_last_that_has_a_name_is_found_in_few_looks(count: int, last: int) -> None:
    with RepairIndex() as index, TemporaryDirectory() as folder:
        for minor in range(count):
            index.wheel("demo", f"1.{minor}", {"demo.py": "def gone(): ..." if minor <= last else ""})
        asked = Asked(index, Path(folder))
        assert asked.index.last_with("demo", "demo", "gone") == (f"1.{last}" if last < count - 1 else None)
        assert len(asked.facts[0].payload["looked"]) <= 2 * count.bit_length() + 1


def test_the_last_version_that_has_a_module_is_found(index: RepairIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.9", {"demo/__init__.py": "", "demo/old.py": ""})
    index.wheel("demo", "2.0", {"demo/__init__.py": ""})
    assert Asked(index, tmp_path).index.last_with("demo", "demo.old", "") == "1.9"


def test_releases_say_whether_there_is_a_wheel(index: RepairIndex, tmp_path: Path) -> None:
    index.sdist("demo", "1.0", {"setup.py": ""})
    index.wheel("demo", "1.1", {}, tag="cp311-cp311-win32")
    index.wheel("demo", "1.2", {})
    index.wheel("demo", "1.3", {}, uploaded="2022-01-01")
    found = Asked(index, tmp_path).index.releases("demo")
    assert [(one.version, one.wheel) for one in found] == [("1.0", False), ("1.1", False), ("1.2", True)]
    assert Asked(index, tmp_path).index.releases("nobody") == ()


@pytest.mark.parametrize(
    ("filename", "python", "expected"),
    [
        ("demo-1-py3-none-any.whl", "3.6", True),
        ("demo-1-py2-none-any.whl", "3.9", False),
        ("demo-1-cp39-cp39-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "3.9", True),
        ("demo-1-cp39-cp39-manylinux_2_17_x86_64.whl", "3.10", False),
        ("demo-1-cp37-cp37m-manylinux1_x86_64.whl", "3.7", True),
        ("demo-1-cp36-abi3-manylinux2010_x86_64.whl", "3.12", True),
        ("demo-1-cp39-cp39-manylinux_2_99_x86_64.whl", "3.9", False),
        ("demo-1-cp39-cp39-musllinux_1_1_x86_64.whl", "3.9", False),
        ("demo-1-cp39-cp39-macosx_11_0_arm64.whl", "3.9", False),
        ("no wheel at all", "3.9", False),
    ],
)
def test_a_wheel_fits_a_python(filename: str, python: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert fits(filename, python) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def gone(): ...", True),
        ("if old:\n    class gone: ...", True),
        ("gone = 1", True),
        ("gone: int = 1", True),
        ("from .parts import here, gone", True),
        ("from .parts import (\n    here,\n    gone,  # for a while\n)", True),
        ('__all__ = ["gone"]', True),
        ("def __getattr__(name):\n    if name == 'gone': ...", True),
        ('"""What was gone is here."""', False),
        ("# gone = 1", False),
        ("x = gone == 1", False),
        ("begone = 1", False),
    ],
)
def test_a_source_defines_a_name(source: str, expected: bool) -> None:
    assert defines(source, "gone") is expected


@pytest.mark.parametrize(
    ("names", "module", "expected"),
    [
        (["yaml/__init__.py"], "yaml", True),
        (["yaml.py"], "yaml", True),
        (["yaml.cpython-39-x86_64-linux-gnu.so"], "yaml", True),
        (["yaml.abi3.so"], "yaml", True),
        (["a/b/c.py"], "a.b", True),
        (["yaml/data.txt", "yaml-1.dist-info/RECORD", "x/yaml.py", "yamlx.py"], "yaml", False),
        (["yaml.pyi"], "yaml", False),
        ([], "yaml", False),
    ],
)
def test_files_hold_a_module(names: list[str], module: str, expected: bool) -> None:
    assert provides(names, module) is expected


@pytest.mark.parametrize(
    ("module", "first"),
    [("yaml", "pyyaml"), ("google.cloud.demo", "google-cloud-demo"), ("demo_x", "demo-x"), ("_private", "private")],
)
def test_candidates_begin_with_the_most_likely(module: str, first: str) -> None:
    assert candidates(module)[0] == first


@pytest.mark.parametrize("module", ["", ".", "..", "_", "a..b", "é"])
def test_odd_modules_have_few_candidates(module: str) -> None:
    assert len(candidates(module)) < 12


@pytest.mark.parametrize("module", ["...", "_", "."])
def test_what_is_no_name_is_looked_for_nowhere(module: str) -> None:
    assert "" not in candidates(module)


def test_a_wheel_whose_content_is_damaged_cannot_be_read(index: RepairIndex) -> None:
    source = random.Random(0).randbytes(4000).hex()
    index.wheel("demo", "1.0", {"demo.py": source})
    ((path, data),) = index.files.items()
    index.files[path] = data[:60] + b"\xff" * 200 + data[260:]
    url = urljoin(f"{index.url}demo/", index.projects["demo"][0]["url"])
    wheel = Wheel(load_settings(overrides=[f"index.url={index.url}", "index.tries=1"]).index, url, len(data))
    with pytest.raises(Unreadable):
        wheel.text("demo.py")
