"""A task in the hands of somebody who has its row and its image, and nothing of ours."""

from __future__ import annotations

import hashlib
import io
import re
import secrets
import shlex
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
import pyarrow.parquet as pq
import pytest
from demo_run import Demo
from docker.models.containers import Container
from whole_run import Place, pairs_option

from exporters.schema import TASKS

pytestmark = [pytest.mark.docker, pytest.mark.index]

Row = dict[str, Any]
_NEW_BLOB = re.compile(r"^index [0-9a-f]+\.\.([0-9a-f]{40})", re.MULTILINE)
_MISSING = "0" * 40


@dataclass(frozen=True)
class Machine:
    """A container of a task's image, started as `docker run` would, and a user in it; None for the image's own."""

    container: Container
    row: Row
    user: str | None

    def run(self, command: str, workdir: str | None = None) -> tuple[int, str]:
        code, output = self.container.exec_run(
            ["bash", "-c", command], workdir=workdir or self.row["workdir"], user=self.user or ""
        )
        return code, output.decode()

    def says(self, command: str, workdir: str | None = None) -> str:
        code, output = self.run(command, workdir)
        assert code == 0, f"{command}: exit code {code}\n{output}"
        return output

    def apply(self, patch: str) -> None:
        """Put a patch into the container and apply it, and install again where the row says so."""
        data, tar = patch.encode(), io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as archive:
            info = tarfile.TarInfo("x.patch")
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, io.BytesIO(data))
        assert self.container.put_archive("/opt", tar.getvalue())
        self.says("git apply /opt/x.patch")
        self.install_again()

    def undo_last_patch(self) -> None:
        self.says("git apply -R /opt/x.patch")
        self.install_again()

    def install_again(self) -> None:
        if self.row["rebuild_cmd"] is not None:
            self.says(self.row["rebuild_cmd"])

    def passed(self, *names: str) -> set[str]:
        """Run tests, by their ids or files, and return the ids of those that pytest says have passed."""
        code, output = self.run(f"{self.row['test_cmd']} {shlex.join(names)}", self.row["test_workdir"])
        assert code in (0, 1, 4), output[-2000:]  # 4: an id is not there before the patch
        return {line.removeprefix("PASSED ") for line in output.splitlines() if line.startswith("PASSED ")}


@contextmanager
def machine(client: docker.DockerClient, row: Row, user: str | None = None) -> Iterator[Machine]:
    name = f"swe-miner-test-consumer-{secrets.token_hex(4)}"
    container = client.containers.run(
        row["image"],
        ["tail", "-f", "/dev/null"],
        name=name,
        detach=True,
        network_mode=row["network"],
        environment=row["test_env"],
    )
    try:
        yield Machine(container, row, user)
    finally:
        container.remove(force=True, v=True)


@pytest.fixture(scope="module")
def rows(demo: Demo) -> list[Row]:
    found: list[Row] = pq.read_table(demo.place.out / TASKS.path).to_pylist()
    return sorted(found, key=lambda row: (len(row["FAIL_TO_PASS"]), row["instance_id"]))


@pytest.fixture(scope="module", params=["editable", "normal"])
def row(rows: list[Row], request: pytest.FixtureRequest) -> Row:
    """The smallest task of each way in which a project gets into its environment."""
    return next(row for row in rows if row["install_mode"] == request.param)


@pytest.fixture(scope="module")
def fresh(row: Row, docker_client: docker.DockerClient) -> Iterator[Machine]:
    """A container in which nothing is changed."""
    with machine(docker_client, row) as made:
        yield made


def test_repository_is_clean_and_at_its_base_commit(fresh: Machine) -> None:
    assert fresh.says("git status --porcelain") == ""
    assert fresh.says("git rev-parse HEAD").strip() == fresh.row["base_commit"]
    assert fresh.row["base_commit"] == fresh.row["environment_setup_commit"]
    assert fresh.says("git fsck --full --strict 2>&1") == ""


def test_repository_has_one_commit_and_nothing_of_the_future(fresh: Machine) -> None:
    assert fresh.says("git rev-list --all --count").strip() == "1"
    assert fresh.says("git remote; git stash list; git reflog") == ""
    tags = dict(line.split() for line in fresh.says("git tag --format='%(refname:short) %(objectname)'").splitlines())
    assert set(tags.values()) <= {fresh.row["base_commit"]}
    assert fresh.row["version"] not in {tag.removeprefix("v") for tag in tags}
    assert fresh.says("find .git -path '*logs*' -type f; ls .git | grep -i -E '^(orig|fetch)_head$' || true") == ""
    kinds = fresh.says("git cat-file --batch-all-objects --batch-check='%(objecttype)'").split()
    assert kinds.count("commit") == 1
    assert fresh.says("git fsck --unreachable --dangling --no-reflogs 2>&1") == ""


def test_no_file_of_the_solution_is_in_the_repository(fresh: Machine) -> None:
    row = fresh.row
    blobs = {blob for patch in ("patch", "test_patch") for blob in _NEW_BLOB.findall(row[patch])} - {_MISSING}
    assert blobs
    for blob in sorted(blobs):
        assert fresh.run(f"git cat-file -e {blob}")[0] != 0, blob


def test_image_is_run_by_an_ordinary_user_with_the_tools_that_graders_need(fresh: Machine) -> None:
    assert fresh.says("id -u; id -g").split() == fresh.row["user"].split(":") == ["1000", "1000"]
    assert fresh.says("touch new && rm new; test ! -w /etc; test ! -w /usr/bin; echo ok").strip() == "ok"
    fresh.says("command -v git patch ps bash tail kill")
    assert fresh.says("command -v python").strip() == "/opt/env/bin/python"
    assert fresh.says("python --version").split()[1].startswith(fresh.row["python"])
    assert fresh.says("ls /sys/class/net").split() == ["lo"]


def test_configuration_of_the_image_is_what_graders_expect(fresh: Machine, docker_client: docker.DockerClient) -> None:
    config = docker_client.images.get(fresh.row["image"]).attrs["Config"]
    assert not config["Entrypoint"]
    assert config["StopSignal"] == "SIGKILL"
    assert config["WorkingDir"] == fresh.row["workdir"] == "/testbed"
    assert config["User"] == fresh.row["user"]
    names = {item.partition("=")[0] for item in config["Env"]}
    assert names.isdisjoint({"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "SSL_CERT_FILE", "PIP_CERT"})
    assert "PATH=/opt/env/bin:/usr/local/bin:/usr/bin:/bin" in config["Env"]


def test_layers_of_the_image_have_the_digests_that_the_manifest_names(fresh: Machine, docker_client) -> None:
    saved = io.BytesIO(b"".join(docker_client.images.get(fresh.row["image"]).save()))
    layers = docker_client.images.get(fresh.row["image"]).attrs["RootFS"]["Layers"]
    found: dict[str, int] = {}
    with tarfile.open(fileobj=saved) as archive:
        for member in archive.getmembers():
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                found[f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"] = member.size
    assert set(layers) <= set(found)
    assert sum(found[layer] for layer in layers) == fresh.row["image_size"]


@pytest.mark.parametrize("user", [None, "0:0"], ids=["own-user", "root"])
def test_tests_fail_before_the_patch_and_pass_after_it(
    user: str | None, row: Row, docker_client: docker.DockerClient
) -> None:
    flipping, steady = set(row["FAIL_TO_PASS"]), set(row["PASS_TO_PASS"])
    with machine(docker_client, row, user) as box:
        box.apply(row["test_patch"])
        assert box.passed(*row["test_files"]) & (flipping | steady) == steady
        box.apply(row["patch"])
        assert box.passed(*row["test_files"]) >= flipping | steady
        assert box.passed(*flipping) == flipping
        box.undo_last_patch()
        assert box.passed(*row["test_files"]) & (flipping | steady) == steady


def test_another_machine_makes_the_same_task_and_the_same_image(
    rows: list[Row], demo: Demo, new_place: Callable[..., Place]
) -> None:
    """Another ledger, nothing known, and this pair alone: the row is the same, digest and all."""
    known = next(row for row in rows if row["instance_id"] == "pypi__pluggy-1.5.0")
    only = pairs_option([{"name": "pluggy", "old": "1.4.0", "new": "1.5.0"}])
    made = new_place("independent", *demo.place.options[:2], *only)
    made.run("run")
    assert pq.read_table(made.out / TASKS.path).to_pylist() == [known]
