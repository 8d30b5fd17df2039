"""Build scripts that do what they must not: every attack stays in its container, and what reaches a bound is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import (
    BACKEND,
    EDITABLE,
    NORMAL_ONLY,
    PROJECT,
    Repo,
    empty_environment,
    ground_of,
    repo_of,
    request_of,
    small,
)

from installers.image import ensure_layers, notes_of
from installers.layer import unpacked
from installers.project_install import project
from installers.workshop import Workshop
from miner.core.memo import Memo
from miner.core.records import BuildMode, Fact, Layer
from miner.sandbox.image_archive import TarEntry, read_tar

pytestmark = [pytest.mark.docker, pytest.mark.index]  # pip, which installs offline, comes from the index


@pytest.fixture(scope="module")
def environment(workshop: Workshop) -> Layer:
    return empty_environment(workshop)


@pytest.fixture
def install(workshop: Workshop, environment: Layer, tmp_path: Path):
    """Install a project whose build back end runs a piece of code first."""

    def install(code: str, *, mode: BuildMode = BuildMode.EDITABLE, **limits: float) -> Fact:
        backend = BACKEND + ("" if mode is BuildMode.NORMAL else EDITABLE) + _before_each_build(code)
        files = {**(NORMAL_ONLY if mode is BuildMode.NORMAL else PROJECT), "backend.py": backend}
        bench = replace(workshop, settings=small(workshop.settings, **limits))
        return _project(bench, environment, repo_of(files, tmp_path), mode)

    return install


def _before_each_build(code: str) -> str:
    body = "\n".join(f"    {line}" for line in code.splitlines())
    return f"\ndef attack():\n{body}\n\nif True:\n    for name in ('build_wheel', 'build_editable'):\n        if name in globals():\n            def hooked(*args, _inner=globals()[name], **more):\n                attack()\n                return _inner(*args, **more)\n            globals()[name] = hooked\n"  # noqa: E501


def _project(workshop: Workshop, environment: Layer, repo: Repo, mode: BuildMode) -> Fact:
    memo = Memo(lambda _key: [], lambda _fact: None)
    request = request_of(workshop, environment, repo.tree, mode)
    return project(workshop, memo, ground_of(workshop), "pypi__demo-1.1", request, repo.pack)[-1]


def own_layers(environment: Layer, fact: Fact) -> list[Layer]:
    return [environment, *(Layer.model_validate(layer) for layer in fact.payload["layers"])]


def image_of(workshop: Workshop, name: str, environment: Layer, fact: Fact) -> str:
    layers = own_layers(environment, fact)
    return ensure_layers(workshop, name, layers, notes_of(layers, has_build=fact.payload["rebuild_cmd"] is not None))


def layer_entries(workshop: Workshop, fact: Fact, folder: Path) -> dict[str, TarEntry]:
    layer = Layer.model_validate(fact.payload["layers"][-1])
    return {entry.path: entry for entry in read_tar(unpacked(layer, workshop.blobs, folder))}


def log_of(workshop: Workshop, fact: Fact) -> str:
    return workshop.blobs.get_text(fact.logs["log"])


def test_endless_forks_reach_the_limit_of_processes(install) -> None:
    fact = install(
        "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(1)"
    )
    assert fact.outcome == "build-limit"
    assert "limit of pids" in fact.payload["detail"]


def test_endless_sleep_reaches_the_time_limit(install) -> None:
    fact = install("import time\ntime.sleep(10**6)", timeout_s=8.0)
    assert fact.outcome == "build-timeout"


def test_endless_output_reaches_its_limit_and_the_log_is_bounded(install, workshop: Workshop) -> None:
    fact = install(
        "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n    os.write(2, b'y' * 65536)", mode=BuildMode.NORMAL
    )
    assert fact.outcome in ("build-limit", "build-timeout")
    assert len(workshop.blobs.get(fact.logs["log"])) < 3 * 1024 * 1024


def test_memory_hog_reaches_the_limit_of_memory(install) -> None:
    fact = install("block = []\nwhile True:\n    block.append(bytearray(1 << 26))", memory_mb=256)
    assert fact.outcome == "build-limit"
    assert "memory" in fact.payload["detail"]


def test_huge_files_reach_the_limit_of_the_disk(install) -> None:
    fact = install(
        "import os\nfor number in range(1000):\n    with open(f'/opt/env/{number}', 'wb') as file:\n"
        "        file.write(os.urandom(1 << 25))"
    )
    assert fact.outcome == "build-limit"
    assert "disk" in fact.payload["detail"]


def test_sparse_files_that_take_no_room_in_the_box_do_not_fill_the_host(install, workshop: Workshop) -> None:
    fact = install(
        "import os\nfor n in range(20):\n    os.truncate(os.open(f'/opt/env/{n}', os.O_CREAT | os.O_RDWR), 100 << 20)"
    )
    assert fact.outcome == "build-limit"
    assert "disk" in fact.payload["detail"]
    assert list(workshop.scratch.iterdir()) == []


def test_network_outside_the_index_is_refused_and_named(install, workshop: Workshop) -> None:
    fact = install("import urllib.request\nurllib.request.urlopen('https://example.org/', timeout=20)")
    assert fact.outcome == "project-install-failed"
    assert fact.payload["denied"] == ["example.org:443"]
    assert not fact.network, "a hook that fails would fail again, whatever the index says"


def test_network_by_address_does_not_exist(install, workshop: Workshop) -> None:
    fact = install("import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=5)")
    assert fact.outcome == "project-install-failed"
    assert "unreachable" in log_of(workshop, fact)


def test_offline_reinstall_has_no_network_at_all(install, workshop: Workshop) -> None:
    fact = install("import socket\nsocket.create_connection(('127.0.0.1', 3128), timeout=5)", mode=BuildMode.NORMAL)
    assert fact.outcome == "project-install-failed"
    assert "refused" in log_of(workshop, fact)


def test_writes_outside_fail_or_are_lost(install, workshop: Workshop, tmp_path: Path) -> None:
    fact = install(
        "import pathlib\nfor place in ('/etc', '/usr/bin', '/opt', '/root', '/home/miner', '/var/tmp'):\n"
        "    try:\n        pathlib.Path(place, 'planted').write_text('x')\n    except OSError:\n        pass\n"
        "pathlib.Path('/opt/env/kept').write_text('x')"
    )
    assert fact.ok, fact.payload
    written = layer_entries(workshop, fact, tmp_path)
    assert "opt/env/kept" in written
    assert all(path.split("/")[0] in ("opt", "testbed") for path in written)
    assert not any("planted" in path for path in written)


def test_planted_history_and_hooks_and_changed_sources_do_not_reach_the_image(
    install, workshop: Workshop, environment: Layer
) -> None:
    fact = install(
        "import os, pathlib, subprocess\n"
        "hook = pathlib.Path('/testbed/.git/hooks/post-checkout')\nhook.parent.mkdir(exist_ok=True)\n"
        "hook.write_text('#!/bin/sh\\ntouch /tmp/owned\\n')\nhook.chmod(0o755)\n"
        "pathlib.Path('/testbed/src/demo/__init__.py').write_text('answer = 0\\n')\n"
        "pathlib.Path('/testbed/made.txt').write_text('x')\n"
        "subprocess.run('git -C /testbed add -A && git -C /testbed -c user.name=x -c user.email=x commit -qm later',"
        " shell=True, check=True)"
    )
    assert fact.ok, fact.payload
    assert fact.payload["restored"] == ["src/demo/__init__.py"]
    assert fact.payload["added"] == ["made.txt"]
    image = image_of(workshop, "test-planted", environment, fact)
    with workshop.box(image, network=False) as box:
        script = "git status --short; git log --all --format=%s; ls .git/hooks 2>/dev/null; cat src/demo/__init__.py"
        assert box.run(["sh", "-c", script]).text == "Base\nanswer = 41\n"


def test_deleted_environment_is_deleted_in_the_image_and_nowhere_else(
    install, workshop: Workshop, environment: Layer
) -> None:
    fact = install("import os, shutil\nshutil.rmtree('/opt/env/bin')\nos.mkdir('/opt/env/bin')", mode=BuildMode.NORMAL)
    if fact.ok:
        image = image_of(workshop, "test-deleted", environment, fact)
        with workshop.box(image, network=False) as box:
            assert box.run(["ls", "/opt/env/bin"]).text == ""
    with workshop.box(ensure_layers(workshop, "test-env", [environment], ["environment"]), network=False) as box:
        assert "python" in box.run(["ls", "/opt/env/bin"]).text


def test_links_out_of_the_tree_stay_links(install, workshop: Workshop, tmp_path: Path) -> None:
    fact = install("import os\nos.symlink('/etc/passwd', '/testbed/link')\nos.symlink('/', '/opt/env/root')")
    assert fact.ok, fact.payload
    written = layer_entries(workshop, fact, tmp_path)
    assert (written["testbed/link"].kind, written["testbed/link"].link) == ("symlink", "/etc/passwd")
    assert (written["opt/env/root"].kind, written["opt/env/root"].link) == ("symlink", "/")


def test_names_of_whiteouts_delete_nothing(install, workshop: Workshop, tmp_path: Path) -> None:
    fact = install("open('/opt/env/.wh.bin', 'w').close()\nopen('/testbed/.wh.src', 'w').close()")
    assert fact.ok, fact.payload
    assert not any(".wh." in path for path in layer_entries(workshop, fact, tmp_path))


def test_process_that_outlives_the_build_changes_nothing_any_more(
    install, workshop: Workshop, environment: Layer, tmp_path: Path
) -> None:
    fact = install(
        "import subprocess, sys\nnothing = subprocess.DEVNULL\n"
        'code = \'import pathlib\\nn = 0\\nwhile True: n += 1; pathlib.Path("/opt/env/late").write_text("x" * n)\'\n'
        "subprocess.Popen([sys.executable, '-c', code], start_new_session=True, stdin=nothing, stdout=nothing,"
        " stderr=nothing)\nimport time\ntime.sleep(1)"
    )
    assert fact.ok, fact.payload
    written = layer_entries(workshop, fact, tmp_path)
    assert "opt/env/late" in written  # it ran on after the build, up to the moment of the export
    assert "opt/env/bin/python" not in written


def test_special_files_are_left_out(install, workshop: Workshop, tmp_path: Path) -> None:
    fact = install(
        "import os, socket\nos.mkfifo('/testbed/pipe')\nsocket.socket(socket.AF_UNIX).bind('/opt/env/socket')"
    )
    assert fact.ok, fact.payload
    assert {"testbed/pipe", "opt/env/socket"}.isdisjoint(layer_entries(workshop, fact, tmp_path))


@pytest.mark.parametrize("mode", [BuildMode.COMPILED, BuildMode.NORMAL])
def test_project_that_is_built_again_offline_and_wants_the_network_is_told_apart(install, mode: BuildMode) -> None:
    fact = install("import urllib.request\nurllib.request.urlopen('https://example.org/', timeout=5)", mode=mode)
    expected = {BuildMode.COMPILED: "rebuild-needs-network", BuildMode.NORMAL: "project-install-failed"}
    assert (fact.outcome, fact.payload["wants_network"]) == (expected[mode], True)
    assert not fact.network, "nothing of it depends on what the index says"


def test_compiled_project_builds_in_its_tree_and_plants_nothing_else(
    install, workshop: Workshop, environment: Layer, tmp_path: Path
) -> None:
    fact = install(
        "import pathlib\npathlib.Path('/testbed/src/demo/_fast.so').write_text('x')\n"
        "pathlib.Path('/testbed/src/demo/__init__.py').write_text('answer = 0\\n')\n"
        "pathlib.Path('/opt/build/planted').write_text('x')",
        mode=BuildMode.COMPILED,
    )
    assert fact.ok, fact.payload
    assert (fact.payload["added"], fact.payload["restored"]) == (["src/demo/_fast.so"], ["src/demo/__init__.py"])
    assert "opt/build/planted" not in layer_entries(workshop, fact, tmp_path)
    with workshop.box(image_of(workshop, "test-compiled", environment, fact), network=False) as box:
        assert box.run(["git", "status", "--short"]).text == ""
        assert "set -euo pipefail" in box.run(["cat", "/opt/build/reinstall"]).text


def test_endless_sleep_of_a_compiled_project_reaches_the_time_limit(install) -> None:
    assert install("import time\ntime.sleep(10**6)", mode=BuildMode.COMPILED, timeout_s=8.0).outcome == "build-timeout"


def test_back_end_that_asks_for_what_is_no_requirement_gets_nothing(install) -> None:
    code = "print('built')\n\ndef get_requires_for_build_editable(config_settings=None):\n    return ['-r /etc/passwd', 7, 'x @ file:///']"  # noqa: E501
    fact = install(code)
    assert fact.ok, fact.payload


def test_thousands_of_new_files_are_read_as_one_folder(install, workshop: Workshop, tmp_path: Path) -> None:
    fact = install(
        "for n in range(3000):\n    for place in ('/testbed', '/opt/env'):\n"
        "        open(f'{place}/made-{n}', 'w').close()"
    )
    assert fact.ok, fact.payload
    assert len(fact.payload["added"]) == 3000
    written = layer_entries(workshop, fact, tmp_path)
    assert sum(path.startswith("opt/env/made-") for path in written) == 3000
    assert "opt/env/bin/python" not in written, "what the environment's layer has is not written again"


def test_name_that_is_no_utf8_is_kept(install, workshop: Workshop, tmp_path: Path) -> None:
    fact = install("import os\nos.close(os.open(b'/testbed/\\xff', os.O_CREAT | os.O_WRONLY))")
    assert fact.ok, fact.payload
    assert "testbed/\udcff" in layer_entries(workshop, fact, tmp_path)
