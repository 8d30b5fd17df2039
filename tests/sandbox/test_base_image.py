from __future__ import annotations

import contextlib
import io
import os
import py_compile
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import docker
import pytest

from miner.core.errors import ConfigError, DiskFull, InfrastructureFault, MachineError
from miner.core.reasons import Reason
from miner.core.settings import Docker, Settings, base_packages
from miner.sandbox.base_image import BaseImage, ensure_base_image
from miner.sandbox.base_tree import base_entries, keep, package_versions
from miner.sandbox.debootstrap import debootstrap
from miner.sandbox.image_archive import ImageConfig, LayerSource, TarEntry, deterministic_tar
from miner.sandbox.image_load import holds_image, load_image

STATUS = b"""Package: git
Version: 1:2
Architecture: amd64
Description: x
 y: z

Package: bash
Version: 5
Architecture: all
"""
FRESH = (
    TarEntry("etc", "dir", 0o755),
    TarEntry("etc/passwd", "file", content=b"root:x:0:0::/root:/bin/bash\n"),
    TarEntry("var/lib/dpkg/status", "file", content=STATUS),
)


def by_path(*entries: TarEntry) -> dict[str, TarEntry]:
    return {entry.path: entry for entry in base_entries(entry for entry in entries if keep(entry.path))}


@pytest.mark.parametrize(
    "path",
    [
        "etc/hostname",
        "etc/resolv.conf",
        "dev/null",
        "var/lib/apt/lists/lock",
        "var/log/dpkg.log",
        "var/cache/ldconfig/aux-cache",
        "usr/share/doc/git/README",
        "usr/share/locale/de/LC_MESSAGES/git.mo",
    ],
)
def test_what_differs_between_machines_or_serves_no_task_is_left_out(path: str) -> None:
    assert path not in by_path(*FRESH, TarEntry(path, "file"))


@pytest.mark.parametrize("path", ["usr/share/doc/git", "usr/share/doc/git/copyright", "dev", "usr/share/zoneinfo/UTC"])
def test_licences_empty_folders_and_data_stay(path: str) -> None:
    assert path in by_path(*FRESH, TarEntry(path, "file"))


def test_user_miner_is_added_to_the_accounts_that_are_there() -> None:
    passwd = by_path(*FRESH)["etc/passwd"].open().read()
    assert passwd == b"root:x:0:0::/root:/bin/bash\nminer:x:1000:1000::/home/miner:/bin/bash\n"


def test_file_that_runs_as_its_owner_loses_that_right() -> None:
    assert by_path(*FRESH, TarEntry("usr/bin/su", "file", 0o4755))["usr/bin/su"].mode == 0o755


def test_sticky_folder_for_all_stays_one() -> None:
    assert by_path(*FRESH, TarEntry("tmp", "dir", 0o1777))["tmp"].mode == 0o1777


def test_byte_code_is_taken_although_the_time_of_its_source_is_another(tmp_path: Path) -> None:
    source = tmp_path / "taken.py"
    source.write_text("print('from byte code')")
    compiled = Path(py_compile.compile(str(source)))
    entry = TarEntry("usr/lib/python3/__pycache__/x.pyc", "file", content=compiled.read_bytes())
    compiled.write_bytes(by_path(*FRESH, entry)[entry.path].open().read())
    source.write_text("print('compiled again, at every start')")
    os.utime(source, (1, 1))
    run = subprocess.run(
        [sys.executable, "-c", "import taken"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert run.stdout == "from byte code\n"


def test_package_versions_are_read_from_the_status_of_dpkg() -> None:
    assert package_versions(FRESH) == "bash 5 all\ngit 1:2 amd64\n"


def test_package_list_is_sorted_and_without_comments() -> None:
    packages = base_packages()
    assert list(packages) == sorted(packages)
    assert {"git", "patch", "procps", "python3", "ca-certificates"} <= set(packages)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def fake_mmdebstrap(tools: Path, script: str) -> None:
    tool = tools / "mmdebstrap"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


def test_machine_without_mmdebstrap_is_told_what_to_do(tools: Path, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="mmdebstrap") as caught:
        debootstrap(tmp_path / "out.tar", suite="bookworm", packages=["git"], epoch=0)
    assert "make docker" in caught.value.next_step


def test_unreachable_archive_is_a_fault_that_quotes_the_tool(tools: Path, tmp_path: Path) -> None:
    fake_mmdebstrap(tools, "echo 'E: Could not resolve' >&2; exit 100")
    with pytest.raises(InfrastructureFault, match=r"(?s)exit status 100.*Could not resolve") as caught:
        debootstrap(tmp_path / "out.tar", suite="bookworm", packages=["git"], epoch=0)
    assert caught.value.reason is Reason.BASE_IMAGE_UNAVAILABLE


def test_full_disk_while_building_is_told_as_such(tools: Path, tmp_path: Path) -> None:
    fake_mmdebstrap(tools, "echo 'tar: write: No space left on device' >&2; exit 1")
    with pytest.raises(DiskFull):
        debootstrap(tmp_path / "out.tar", suite="bookworm", packages=["git"], epoch=0)


def test_build_gets_the_suite_the_packages_and_the_fixed_time(tools: Path, tmp_path: Path) -> None:
    fake_mmdebstrap(tools, 'echo "$SOURCE_DATE_EPOCH $*"')
    debootstrap(tmp_path / "out.tar", suite="trixie", packages=["git", "patch"], epoch=7)
    said = (tmp_path / "out.tar").read_text()
    assert said.startswith("7 ")
    assert "--include=git,patch" in said
    assert said.endswith("trixie -\n")


def in_container(client: docker.DockerClient, image: str, script: str) -> str:
    container = client.containers.create(
        image, ["bash", "-c", script], network_mode="none", cap_drop=["ALL"], read_only=True
    )
    try:
        container.start()
        status = container.wait()["StatusCode"]
        output = container.logs().decode()
    finally:
        container.remove(force=True)
    assert status == 0, output
    return output


@pytest.mark.docker
def test_base_image_is_what_environments_count_on(docker_client: docker.DockerClient, base_image: BaseImage) -> None:
    script = """
        id -un; pwd; stat -c %U /opt/env /opt/build /testbed /cache /report /home/miner | sort -u
        git config --system --get safe.directory; which git patch ps python3 bash tail kill
        python3 -c 'import ssl, sqlite3, lzma, ctypes, zoneinfo, ensurepip; zoneinfo.ZoneInfo("Europe/Paris")'
        echo "$PATH $LANG"; locale | grep -v C.UTF-8 | grep -v '=$'
        find / -xdev -perm /6000 -type f 2>/dev/null || true
    """
    lines = in_container(docker_client, base_image.image, script).splitlines()
    assert lines[:4] == ["miner", "/testbed", "miner", "*"]
    assert [Path(line).name for line in lines[4:11]] == ["git", "patch", "ps", "python3", "bash", "tail", "kill"]
    assert lines[11:] == ["/opt/env/bin:/usr/local/bin:/usr/bin:/bin C.UTF-8"]
    attrs = docker_client.images.get(base_image.image).attrs
    assert not attrs["Config"].get("Entrypoint")  # new engines leave out what is empty
    assert attrs["Config"]["StopSignal"] == "SIGKILL"


@pytest.mark.docker
def test_nothing_of_the_building_machine_is_in_the_base_image(
    docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings
) -> None:
    names = "find /usr/local/share/ca-certificates /var/lib/apt/lists /var/log -type f; cat /etc/machine-id"
    assert in_container(docker_client, base_image.image, names) == ""
    for source in base_image.sources(settings.paths.work / "base"):
        assert source.open is not None
        with source.open() as stream, tarfile.open(fileobj=stream) as tar:
            assert not {"etc/hostname", "etc/resolv.conf"} & set(tar.getnames())


@pytest.mark.docker
def test_digest_names_the_image_and_packages_are_recorded(base_image: BaseImage) -> None:
    assert base_image.image == f"swe-miner/base:{base_image.digest.removeprefix('sha256:')[:12]}"
    assert base_image.digest == base_image.config.image_id
    assert any(line.startswith("git 1:") for line in base_image.packages.splitlines())


@pytest.mark.docker
def test_second_call_builds_nothing(
    docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings, tools: Path
) -> None:
    assert ensure_base_image(docker_client, settings.docker, settings.paths.work / "base") == base_image


@pytest.mark.docker
def test_two_at_once_build_once_and_what_a_kill_left_is_removed(
    docker_client: docker.DockerClient, tmp_path: Path, tools: Path
) -> None:
    with (tmp_path / "fresh.tar").open("wb") as out:
        deterministic_tar(FRESH, out)
    fake_mmdebstrap(tools, f"echo built >> {tmp_path}/count; sleep 0.5; cat {tmp_path}/fresh.tar")
    cache = tmp_path / "base"
    (cache / "build-killed").mkdir(parents=True)
    with ThreadPoolExecutor() as pool:
        one, two = pool.map(lambda _: ensure_base_image(docker_client, Docker(), cache), range(2))
    try:
        assert one == two
        assert (tmp_path / "count").read_text() == "built\n"
        assert not list(cache.glob("build-*"))
    finally:
        docker_client.images.remove(one.image)


@pytest.mark.docker
@pytest.mark.slow
def test_two_builds_have_one_digest(
    docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings, tmp_path: Path
) -> None:
    assert ensure_base_image(docker_client, settings.docker, tmp_path) == base_image


@pytest.mark.docker
def test_named_image_serves_as_base_with_its_packages(
    docker_client: docker.DockerClient, base_image: BaseImage
) -> None:
    named = ensure_base_image(docker_client, Docker(base_image=base_image.image), Path("unused"))
    assert [layer.diff_id for layer in named.layers] == [layer.diff_id for layer in base_image.layers]
    assert (named.digest, named.packages) == (base_image.digest, base_image.packages)
    assert not Path("unused").exists()


@pytest.mark.docker
def test_tag_that_the_engine_does_not_have_is_a_configuration_error(docker_client: docker.DockerClient) -> None:
    with pytest.raises(ConfigError, match="a tag may change"):
        ensure_base_image(docker_client, Docker(base_image="swe-miner/none:latest"), Path("unused"))


@pytest.mark.docker
def test_registry_that_does_not_answer_is_a_fault(docker_client: docker.DockerClient) -> None:
    reference = f"127.0.0.1:1/base@sha256:{'0' * 64}"
    with pytest.raises(InfrastructureFault, match="refused"):
        ensure_base_image(docker_client, Docker(base_image=reference), Path("unused"))


class Images:
    """Makes small images and removes them."""

    def __init__(self, client: docker.DockerClient, scratch: Path) -> None:
        self.client, self.scratch = client, scratch
        self.tags: list[str] = []

    def layer(self, text: str) -> LayerSource:
        out = io.BytesIO()
        made = deterministic_tar([TarEntry("file", "file", content=text.encode())], out)
        return LayerSource(made, lambda: io.BytesIO(out.getvalue()))

    def config(self, *layers: LayerSource, user: str = "1000:1000") -> ImageConfig:
        return ImageConfig(
            architecture=self.client.version()["Arch"],
            created=0,
            diff_ids=tuple(source.layer.diff_id for source in layers),
            notes=tuple("test" for _ in layers),
            user=user,
        )

    def tag(self) -> str:
        self.tags.append(f"swe-miner/test:{uuid.uuid4().hex}")
        return self.tags[-1]


@pytest.fixture
def images(docker_client: docker.DockerClient, tmp_path: Path) -> Iterator[Images]:
    made = Images(docker_client, tmp_path)
    yield made
    for tag in made.tags:
        with contextlib.suppress(docker.errors.ImageNotFound):
            docker_client.images.remove(tag)


@pytest.mark.docker
def test_loaded_image_has_the_computed_id(images: Images) -> None:
    layer, tag = images.layer(uuid.uuid4().hex), images.tag()
    config = images.config(layer)
    load_image(images.client, config, [layer], tag, images.scratch)
    assert holds_image(images.client, config, tag)
    assert not list(images.scratch.iterdir())


@pytest.mark.docker
def test_layer_that_the_engine_holds_is_not_sent_again(images: Images) -> None:
    lower, upper = images.layer(uuid.uuid4().hex), images.layer(uuid.uuid4().hex)
    load_image(images.client, images.config(lower), [lower], images.tag(), images.scratch)
    config, tag = images.config(lower, upper), images.tag()
    load_image(images.client, config, [LayerSource(lower.layer, None), upper], tag, images.scratch)
    assert holds_image(images.client, config, tag)


@pytest.mark.docker
def test_layer_that_was_thought_held_is_sent_after_all(images: Images) -> None:
    layer, tag = images.layer(uuid.uuid4().hex), images.tag()
    config = images.config(layer)
    load_image(images.client, config, [layer], tag, images.scratch, held={layer.layer.diff_id})
    assert holds_image(images.client, config, tag)


@pytest.mark.docker
def test_layer_that_nobody_has_is_a_fault(images: Images) -> None:
    layer, tag = images.layer(uuid.uuid4().hex), images.tag()
    with pytest.raises(InfrastructureFault):
        load_image(images.client, images.config(layer), [LayerSource(layer.layer, None)], tag, images.scratch)


@pytest.mark.docker
def test_image_that_runs_as_root_is_no_base(images: Images) -> None:
    layer, tag = images.layer(uuid.uuid4().hex), images.tag()
    load_image(images.client, images.config(layer, user="0:0"), [layer], tag, images.scratch)
    with pytest.raises(ConfigError, match="its user is '0:0'"):
        ensure_base_image(images.client, Docker(base_image=tag), Path("unused"))
