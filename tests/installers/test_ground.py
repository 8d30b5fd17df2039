"""The ground of environments: interpreter, tool chain and packages as layers on the base image, in a real engine."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from bench import OWN_PYTHON, Known, recipe_of

from installers import ground as ground_module
from installers import pythons
from installers.ground import ground
from installers.ground_image import REPOSITORY, hold, stand_on
from installers.image import remove_image
from installers.interpreters import interpreter, interpreter_layer
from installers.layer import store
from installers.pythons import Python
from installers.workshop import Room, Workshop
from miner.core.errors import ConfigError, InfrastructureFault
from miner.core.reasons import Reason
from miner.core.records import Fact, FactKey, Layer
from miner.core.settings import configs_dir
from miner.sandbox.base_image import layer_path
from miner.sandbox.image_archive import TarEntry

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
COPIED = Python(
    version=VERSION,
    executable=f"/opt/python/{VERSION}/bin/python{VERSION}",
    released=date(2020, 1, 1),
    end_of_life=date(2040, 1, 1),
)


@pytest.fixture
def bench(workshop: Workshop) -> Iterator[Workshop]:
    """A workshop; the images of grounds that a test makes are removed."""
    before = _grounds(workshop)
    yield workshop
    for tag in sorted(_grounds(workshop) - before):
        remove_image(workshop.client, tag)


def _grounds(workshop: Workshop) -> set[str]:
    return {tag for image in workshop.client.images.list() for tag in image.tags if tag.startswith(f"{REPOSITORY}:")}


def layer_with(workshop: Workshop, path: str, text: str) -> Layer:
    return store([TarEntry(path, "file", content=text.encode())], workshop.blobs, workshop.scratch)


def without_engine(workshop: Workshop) -> Workshop:
    def no_engine() -> Room:
        raise AssertionError("the engine was asked")

    return replace(workshop, room=no_engine)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder of interpreters that holds a copy of the running one, as far as it can be copied."""
    root = tmp_path / "pythons" / VERSION
    home, base = Path(sys.executable).resolve(), Path(sys.base_prefix)
    (root / "bin").mkdir(parents=True)
    shutil.copy(home, root / "bin" / f"python{VERSION}")
    out = shutil.ignore_patterns("site-packages", "dist-packages", "test", "__pycache__", "*.a")
    shutil.copytree(sysconfig.get_path("stdlib"), root / "lib" / f"python{VERSION}", ignore=out, symlinks=True)
    for library in base.glob(f"lib/libpython{VERSION}*.so*"):
        shutil.copy(library, root / "lib" / library.name)
    include = root / "include" / f"python{VERSION}"
    include.mkdir(parents=True)
    release = ".".join(map(str, sys.version_info[:3]))
    (include / "patchlevel.h").write_text(f'#define PY_VERSION "{release}"\n')
    return root.parent


@pytest.mark.docker
class TestImage:
    def test_comes_back_when_it_was_removed(self, bench: Workshop) -> None:
        low, high = layer_with(bench, "opt/low", "1"), layer_with(bench, "opt/high", "2")
        image = stand_on(bench.base, [(low, "low"), (high, "high")])
        tag = hold(bench, image)
        remove_image(bench.client, tag)
        assert hold(bench, image) == tag
        with bench.box(tag, network=False) as box:
            assert box.run(["cat", "/opt/low", "/opt/high"], workdir="/").text == "12"

    def test_comes_back_when_all_that_it_stands_on_was_removed(self, bench: Workshop) -> None:
        low, high = layer_with(bench, "opt/low", "3"), layer_with(bench, "opt/high", "4")
        tag = hold(bench, stand_on(bench.base, [(low, "low"), (high, "high")]))
        for gone in (tag, stand_on(bench.base, [(low, "low")]).image):
            remove_image(bench.client, gone)
        assert hold(bench, stand_on(bench.base, [(low, "low"), (high, "high")])) == tag
        assert bench.client.images.get(tag).attrs["RootFS"]["Layers"][-2:] == [low.diff_id, high.diff_id]

    def test_is_named_without_an_engine_and_lists_the_packages_of_all_layers(self, workshop: Workshop) -> None:
        layer = Layer(diff_id=f"sha256:{'0' * 64}", size=1)
        image = stand_on(workshop.base, [(layer, "x")], "git 99 amd64\nnew 1 all\n")
        assert image.layers == (*workshop.base.layers, layer)
        lines = image.packages.splitlines()
        assert {"git 99 amd64", "new 1 all"} <= set(lines)
        assert len([line for line in lines if line.startswith("git ")]) == 1


@pytest.mark.docker
class TestInterpreter:
    def test_of_a_local_folder_works_in_a_box_and_is_the_same_each_time(self, bench: Workshop, copied: Path) -> None:
        ours, other = (_with_pythons(bench, copied, copied.parent / name) for name in ("one", "other"))
        try:
            facts = [interpreter(shop, Known().memo(), COPIED) for shop in (ours, other)]
        except InfrastructureFault as fault:
            pytest.skip(f"this machine's own Python does not run on the base image: {fault}")
        assert facts[0].payload == facts[1].payload
        assert facts[0].payload["source"] == "folder"
        layer = interpreter_layer(facts[0])
        assert layer is not None
        tag = hold(ours, stand_on(bench.base, [(layer, "python")]))
        code = "import sys, json; print(sys.prefix, json.__cached__)"
        with ours.box(tag, network=False) as box:
            said = box.run([COPIED.executable, "-c", code], workdir="/").text.split()
            assert said[0] == f"/opt/python/{VERSION}"
            assert box.run(["test", "-f", said[1]], workdir="/").ok
            assert not box.run(["sh", "-c", f"echo x > /opt/python/{VERSION}/bin/planted"], workdir="/").ok

    def test_of_the_base_image_is_no_layer(self, workshop: Workshop) -> None:
        fact = interpreter(workshop, Known().memo(), OWN_PYTHON)
        assert (fact.payload["source"], interpreter_layer(fact)) == ("base", None)
        assert fact.payload["release"].startswith("3.11.")

    def test_that_is_nowhere_is_a_fault_and_no_fact(self, workshop: Workshop, tmp_path: Path) -> None:
        known = Known()
        ours = _with_pythons(workshop, tmp_path, tmp_path / "cache")
        with pytest.raises(InfrastructureFault, match=r"`paths\.pythons` holds none") as caught:
            interpreter(ours, known.memo(), COPIED)
        assert caught.value.reason is Reason.INTERPRETER_UNAVAILABLE
        assert known.facts == []

    def test_that_does_not_run_on_the_base_image_is_a_fault(self, workshop: Workshop, copied: Path) -> None:
        program = copied / VERSION / "bin" / f"python{VERSION}"
        program.write_text("#!/bin/sh\necho no; exit 1\n")
        ours = _with_pythons(workshop, copied, copied.parent / "cache")
        with pytest.raises(InfrastructureFault, match="does not work on the base image: no") as caught:
            interpreter(ours, Known().memo(), COPIED)
        assert caught.value.reason is Reason.INTERPRETER_UNAVAILABLE


def _with_pythons(workshop: Workshop, folder: Path, cache: Path) -> Workshop:
    """Return a workshop with a folder of interpreters, where nobody has made a layer of one yet."""
    cache.mkdir()
    for layer in workshop.base.layers:
        kept = layer_path(workshop.base_cache, layer.diff_id)
        if kept.exists():
            layer_path(cache, layer.diff_id).symlink_to(kept.absolute())
    paths = workshop.settings.paths.model_copy(update={"pythons": folder})
    return replace(workshop, settings=workshop.settings.model_copy(update={"paths": paths}), base_cache=cache)


@pytest.fixture(scope="module")
def known() -> Known:
    """Facts of this module: the tool chain is made once."""
    return Known()


@pytest.mark.docker
@pytest.mark.index
@pytest.mark.slow
class TestGround:
    def test_tool_chain_builds_an_extension_module_and_the_task_has_none(self, bench: Workshop, known: Known) -> None:
        found = ground(bench, known.memo(), recipe_of())
        assert [fact.key.kind for fact in found.facts] == ["install.interpreter", "install.ground"]
        assert found.task == bench.base
        source = "#include <Python.h>\nint main(void) { return PY_MAJOR_VERSION != 3; }\n"
        command = f"echo '{source}' > /tmp/x.c && gcc /tmp/x.c -o /tmp/x $(python3-config --includes) && /tmp/x"
        with bench.box(hold(bench, found.build), network=False) as box:
            result = box.run(["sh", "-c", command], workdir="/")
            assert result.ok, result.text

    def test_compiled_project_has_the_tool_chain_in_its_image(self, bench: Workshop, known: Known) -> None:
        found = ground(bench, known.memo(), recipe_of(compiled=True))
        assert found.task == found.build
        assert "gcc " in found.task.packages

    def test_known_ground_asks_no_engine(self, bench: Workshop, known: Known) -> None:
        first = ground(bench, known.memo(), recipe_of())
        assert ground(without_engine(bench), known.memo(), recipe_of()) == first

    def test_new_row_changes_no_existing_ground(
        self, bench: Workshop, known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = ground(bench, known.memo(), recipe_of())
        later = tmp_path / "configs"
        shutil.copytree(configs_dir(), later)
        with (later / "pythons.toml").open("a") as file:
            file.write('\n[[python]]\nversion = "3.15"\nexecutable = "/opt/python/3.15/bin/python3.15"\n')
            file.write("released = 2026-10-01\nend_of_life = 2031-10-31\n")
        monkeypatch.setattr(pythons, "configs_dir", lambda: later)
        assert pythons.load_pythons()[-1].version == "3.15"
        assert ground(without_engine(bench), known.memo(), recipe_of()) == first

    def test_packages_of_a_recipe_are_in_both_images(self, bench: Workshop, known: Known) -> None:
        found = ground(bench, known.memo(), recipe_of(system_packages=("libmagic1", "python3-pip")))
        assert found.facts[-1].payload["packages"] == ["libmagic1"]
        code = "import ctypes; ctypes.CDLL('libmagic.so.1')"
        for image in (found.task, found.build):
            assert "libmagic1 " in image.packages
            with bench.box(hold(bench, image), network=False) as box:
                assert box.run(["python3", "-c", code], workdir="/").ok

    def test_unknown_package_is_a_negative_fact_and_the_base_image(self, bench: Workshop, known: Known) -> None:
        found = ground(bench, known.memo(), recipe_of(system_packages=("no-such-package-here",)))
        assert found.facts[-1].outcome == Reason.SYSTEM_PACKAGE_UNKNOWN
        assert (found.task, found.build) == (bench.base, bench.base)


def test_python_that_is_not_listed_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Python 3\.99"):
        ground_module.ground(None, Known().memo(), recipe_of(python="3.99"))  # type: ignore[arg-type]


def test_tool_chain_that_cannot_be_installed_is_no_property_of_a_project(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Fact(
        key=FactKey(kind="install.ground", subject="debian-x", input_hash="x", producer="p", epoch=1),
        observed_at=datetime(2024, 1, 1, tzinfo=UTC),
        outcome=Reason.SYSTEM_PACKAGE_UNKNOWN.value,
        payload={"packages": ["gcc"], "unknown": ["gcc"], "detail": "Debian bookworm has no gcc"},
    )
    monkeypatch.setattr(ground_module, "interpreter", lambda *_: refused)
    monkeypatch.setattr(ground_module, "system_packages", lambda *_: refused)
    with pytest.raises(InfrastructureFault, match="has no gcc"):
        ground_module.ground(None, Known().memo(), recipe_of())  # type: ignore[arg-type]
