"""The test runner: its pure command, and real runs of a small project of our own."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath

import docker
import pytest

from miner.core.blobs import BlobStore
from miner.core.records import Observation, RunOutcome, TestStatus
from miner.core.settings import Limits, Settings
from miner.sandbox.base_image import BaseImage
from miner.sandbox.container import sandbox_container
from miner.sandbox.interface import ProbeRequest, TestRequest
from miner.sandbox.outcomes import parse_events, read_run
from miner.sandbox.profile import Profile, profile_of
from miner.sandbox.runner import probe, pytest_command, run_tests, suite_command
from miner.sandbox.tars import tar_of

OWNER = "test-runner"
LIMITS = Limits(memory_mb=512, cpus=1.0, pids=64, disk_mb=256, output_mb=1, timeout_s=40.0)

MODULE = "def double(x):\n    return x + x + 1\n"
TESTS = """\
import time
import pytest
from shop import double

@pytest.mark.parametrize("now", [str(time.time())])
def test_clock(now):
    assert now

def test_same():
    print("printed by a test")
"""
CONFIG = "[tool:pytest]\naddopts = --no-such-option\n"

GOLD = b"""\
diff --git a/src/shop.py b/src/shop.py
--- a/src/shop.py
+++ b/src/shop.py
@@ -1,2 +1,2 @@
 def double(x):
-    return x + x + 1
+    return x + x
"""
TEST_PATCH = b"""\
diff --git a/tests/test_shop.py b/tests/test_shop.py
--- a/tests/test_shop.py
+++ b/tests/test_shop.py
@@ -9,2 +9,5 @@ def test_clock(now):
 def test_same():
     print("printed by a test")
+
+def test_double():
+    assert double(2) == 4
"""


def test_pytest_command_replaces_addopts_and_names_files_from_the_projects_folder() -> None:
    command = pytest_command("lib", ("-k", "not slow"), ("lib/tests/test_a.py", "top/test_b.py"), ["-x"], "/tmp/c")
    assert command[-3:] == ["-x", "tests/test_a.py", "../top/test_b.py"]
    assert "addopts=-k 'not slow'" in command
    assert command[:5] == suite_command(("-k", "not slow"))[:5]


def packages() -> dict[str, tuple[bytes, int]]:
    """Pytest of this environment; pure Python, so that it runs in the image as well."""
    files: dict[str, tuple[bytes, int]] = {}
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        for path in distribution(name).files or ():
            if ".." not in path.parts and path.suffix != ".pyc":
                files[f"/opt/env/lib/python3.11/site-packages/{path}"] = (path.read_binary(), 0o644)
    return files


def environment() -> bytes:
    """A tar with a virtual environment and the project."""
    files = packages() | {
        "/opt/env/pyvenv.cfg": (b"home = /usr/bin\n", 0o644),
        "/opt/env/lib/python3.11/site-packages/project.pth": (b"/testbed/src\n", 0o644),
        "/testbed/src/shop.py": (MODULE.encode(), 0o644),
        "/testbed/tests/test_shop.py": (TESTS.encode(), 0o644),
        "/testbed/setup.cfg": (CONFIG.encode(), 0o644),
    }
    folders = {f"{parent}/" for path in files for parent in PurePosixPath(path).parents if len(parent.parts) > 2}
    out = io.BytesIO(tar_of(dict.fromkeys(sorted(folders), (b"", 493)) | files, uid=1000))
    with tarfile.open(fileobj=out, mode="a") as tar:
        link = tarfile.TarInfo("opt/env/bin/python")
        link.type, link.linkname = tarfile.SYMTYPE, "/usr/bin/python3"
        tar.addfile(link)
    return out.getvalue()


@pytest.fixture(scope="module")
def image(docker_client: docker.DockerClient, base_image: BaseImage) -> Iterator[str]:
    """The base image with pytest and a small project at /testbed."""
    container = docker_client.containers.create(base_image.image, ["bash", "-c", _GIT], labels={"swe-miner": OWNER})
    container.put_archive("/", environment())
    container.start()
    assert container.wait()["StatusCode"] == 0
    made = container.commit("swe-miner/test-runner", "1")
    container.remove(force=True)
    yield "swe-miner/test-runner:1"
    docker_client.images.remove(made.id, force=True)


_GIT = "cd /testbed && git init -q && git add -A && git -c user.name=t -c user.email=t@t.test commit -qm base"


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


@pytest.fixture
def profile(settings: Settings) -> Profile:
    return profile_of(settings, LIMITS, owner=OWNER)


def outcome_of(seen: Observation, blobs: BlobStore) -> RunOutcome:
    reports = {name: blobs.get(digest) for name, digest in seen.logs.items() if name.endswith(".jsonl")}
    return read_run(reports["events.jsonl"], reports.get("collect-0.jsonl"), reports.get("collect-1.jsonl"))


def steps_of(seen: Observation) -> dict[str, int]:
    return {step["name"]: step["exit_code"] for step in seen.payload["steps"]}


@pytest.mark.docker
def test_before_and_after_the_gold_patch(
    docker_client: docker.DockerClient, image: str, profile: Profile, blobs: BlobStore
) -> None:
    request = TestRequest(test_files=("tests/test_shop.py", "tests/test_gone.py"), test_patch=TEST_PATCH)
    before = run_tests(docker_client, image, request, profile, blobs)
    assert steps_of(before) == {"apply-test": 0, "collect-0": 0, "collect-1": 0, "events": 1}
    assert before.payload["missing"] == ["tests/test_gone.py"]
    assert before.payload["ended"] is None
    statuses = {result.nodeid: result.status for result in outcome_of(before, blobs).results}
    assert statuses["tests/test_shop.py::test_double"] is TestStatus.FAILED
    assert statuses["tests/test_shop.py::test_same"] is TestStatus.PASSED

    request = TestRequest(test_files=("tests/test_shop.py",), test_patch=TEST_PATCH, gold_patch=GOLD)
    after = run_tests(docker_client, image, request, profile, blobs)
    assert steps_of(after) == {"apply-test": 0, "apply-gold": 0, "collect-0": 0, "collect-1": 0, "events": 0}
    outcome = outcome_of(after, blobs)
    assert outcome.finished
    assert {r.status for r in outcome.results} == {TestStatus.PASSED}
    unstable = outcome.collected[0] ^ outcome.collected[1]
    assert len(unstable) == 2
    assert all("test_clock" in nodeid for nodeid in unstable)
    assert b"3 passed" in blobs.get(after.logs["events"])
    assert after.measures["events_s"] > 0
    assert after.measures["memory_peak"] > 1_000_000


@pytest.mark.docker
def test_patch_that_does_not_apply_is_recorded_by_name_and_ends_the_run(
    docker_client: docker.DockerClient, image: str, profile: Profile, blobs: BlobStore
) -> None:
    wrong = GOLD.replace(b"x + x + 1", b"x * 2")
    request = TestRequest(test_files=("tests/test_shop.py",), test_patch=TEST_PATCH, gold_patch=wrong)
    seen = run_tests(docker_client, image, request, profile, blobs)
    assert seen.outcome == "ok"
    assert steps_of(seen) == {"apply-test": 0, "apply-gold": 1}
    assert seen.payload["ended"] == "apply-gold"
    assert b"src/shop.py" in blobs.get(seen.logs["apply-gold"])
    assert not [name for name in seen.logs if name.endswith(".jsonl")]


@pytest.mark.docker
def test_rebuild_runs_after_the_patches_and_its_failure_ends_the_run(
    docker_client: docker.DockerClient, image: str, profile: Profile, blobs: BlobStore
) -> None:
    request = TestRequest(
        test_files=("tests/test_shop.py",),
        test_patch=TEST_PATCH,
        rebuild_cmd="grep -c test_double tests/test_shop.py; exit 5",
    )
    seen = run_tests(docker_client, image, request, profile, blobs)
    assert steps_of(seen) == {"apply-test": 0, "rebuild": 5}
    assert (seen.payload["ended"], blobs.get(seen.logs["rebuild"])) == ("rebuild", b"1\n")


def binary_patch(folder: Path, content: bytes) -> bytes:
    """A patch of git's own that adds a file."""
    (folder / "data.bin").write_bytes(content)
    command = ["git", "diff", "--binary", "--no-index", "/dev/null", "data.bin"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout


@pytest.mark.docker
def test_patches_may_be_binary_and_need_no_newline_at_their_end(
    docker_client: docker.DockerClient, image: str, profile: Profile, blobs: BlobStore, tmp_path: Path
) -> None:
    request = TestRequest(
        test_files=(),
        test_patch=binary_patch(tmp_path, bytes(range(256)) * 3),
        gold_patch=GOLD + b"diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"
        b"\\ No newline at end of file",
        rebuild_cmd="sha256sum < data.bin; wc -c < n",
    )
    seen = run_tests(docker_client, image, request, profile, blobs)
    expected = hashlib.sha256(bytes(range(256)) * 3).hexdigest()
    assert blobs.get(seen.logs["rebuild"]) == f"{expected}  -\n1\n".encode()


@pytest.mark.docker
def test_run_without_any_of_its_files_starts_no_pytest(
    docker_client: docker.DockerClient, image: str, profile: Profile, blobs: BlobStore
) -> None:
    seen = run_tests(docker_client, image, TestRequest(test_files=("tests/test_none.py",)), profile, blobs)
    assert (seen.payload["steps"], seen.payload["missing"]) == ([], ["tests/test_none.py"])


def added(name: str, lines: list[str]) -> bytes:
    head = (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n"
    )
    return (head + "".join(f"+{line}\n" for line in lines)).encode()


@pytest.mark.docker
def test_a_python_path_of_the_environment_stands_beside_our_plug_in(
    docker_client: docker.DockerClient, image: str, profile: Profile, blobs: BlobStore
) -> None:
    patch = added("lib/helper.py", ["one = 1"]) + added("tests/test_lib.py", ["import helper", "def test_a(): pass"])
    plain = TestRequest(test_files=("tests/test_lib.py",), test_patch=patch, collections=0)
    request = replace(plain, env={"PYTHONPATH": "/testbed/lib"})
    without, seen = (
        outcome_of(run_tests(docker_client, image, one, profile, blobs), blobs) for one in (plain, request)
    )
    assert "No module named 'helper'" in without.collect_errors["tests/test_lib.py"]
    assert [result.status for result in seen.results] == [TestStatus.PASSED]


@pytest.mark.docker
def test_ids_that_come_from_sets_differ_between_the_collections(
    docker_client: docker.DockerClient, image: str, profile: Profile, blobs: BlobStore
) -> None:
    lines = ["import pytest", "WORDS = set('one two three four five six'.split())"]
    lines += [
        "@pytest.mark.parametrize('words', [WORDS], ids=str)",
        "def test_words(words): pass",
        "def test_a(): pass",
    ]
    request = TestRequest(test_files=("tests/test_set.py",), test_patch=added("tests/test_set.py", lines))
    outcome = outcome_of(run_tests(docker_client, image, request, profile, blobs), blobs)
    own, first, second = outcome.collected
    assert own == first
    assert own & second == {"tests/test_set.py::test_a"}
    assert len(own) == len(second) == 2


@pytest.mark.docker
def test_command_for_others_runs_what_our_runs_do_past_a_file_that_cannot_be_collected(
    docker_client: docker.DockerClient, image: str, profile: Profile, blobs: BlobStore
) -> None:
    patch = TEST_PATCH + added("tests/test_lost.py", ["import no_such_module", "def test_a(): pass"])
    files = ("tests/test_shop.py", "tests/test_lost.py")
    ours = outcome_of(
        run_tests(docker_client, image, TestRequest(files, test_patch=patch, gold_patch=GOLD), profile, blobs), blobs
    )
    passed = {result.nodeid for result in ours.results if result.status is TestStatus.PASSED}
    assert set(ours.collect_errors) == {"tests/test_lost.py"}
    with sandbox_container(docker_client, image, profile, "consumer") as box:
        box.put({"/opt/all.patch": (patch + GOLD, 0o644)}, uid=0)
        assert box.run(["git", "apply", "/opt/all.patch"]).ok
        said = box.run([*suite_command((), ("-rA",)), *files]).text
    assert {line.removeprefix("PASSED ") for line in said.splitlines() if line.startswith("PASSED ")} >= {
        nodeid for nodeid in passed if "test_clock" not in nodeid
    }
    assert "1 error" in said


@pytest.mark.docker
def test_endless_test_is_killed_and_what_ran_before_it_is_known(
    docker_client: docker.DockerClient, image: str, settings: Settings, blobs: BlobStore
) -> None:
    lines = ["import time", "def test_a(): pass", "def test_b():", "    time.sleep(600)"]
    short = profile_of(settings, LIMITS.model_copy(update={"timeout_s": 8.0}), owner=OWNER)
    request = TestRequest(
        test_files=("tests/test_long.py",), test_patch=added("tests/test_long.py", lines), collections=0
    )
    seen = run_tests(docker_client, image, request, short, blobs)
    assert seen.payload["steps"][-1] | {"truncated": False} == {
        "name": "events",
        "exit_code": 137,
        "limit": "time",
        "truncated": False,
    }
    outcome = outcome_of(seen, blobs)
    assert not outcome.finished
    assert outcome.running == "tests/test_long.py::test_b"
    assert ("tests/test_long.py::test_a", TestStatus.PASSED) in [(r.nodeid, r.status) for r in outcome.results]


@pytest.mark.docker
def test_test_that_eats_all_memory_is_named(
    docker_client: docker.DockerClient, image: str, profile: Profile, blobs: BlobStore
) -> None:
    lines = ["def test_a():", "    assert len(bytearray(2 * 10**9))"]
    request = TestRequest(
        test_files=("tests/test_big.py",), test_patch=added("tests/test_big.py", lines), collections=0
    )
    seen = run_tests(docker_client, image, request, profile, blobs)
    assert seen.payload["steps"][-1]["limit"] == "memory"
    assert outcome_of(seen, blobs).running == "tests/test_big.py::test_a"


@pytest.mark.docker
@pytest.mark.parametrize(
    ("spoil", "value"),
    [
        pytest.param(None, "'seen'", id="edit in a linked tree is seen"),
        pytest.param(
            "cp -r src /opt/env/copy && echo /opt/env/copy > /opt/env/lib/python3.11/site-packages/project.pth",
            "'seen'",
            id="copy made after the edit is seen",
        ),
        pytest.param(
            "mkdir /opt/env/copy && git show HEAD:src/shop.py > /opt/env/copy/shop.py && "
            "echo /opt/env/copy > /opt/env/lib/python3.11/site-packages/project.pth",
            None,
            id="copy of the old tree hides the edit",
        ),
    ],
)
def test_probe_tells_whether_an_edit_is_seen(
    docker_client: docker.DockerClient,
    image: str,
    profile: Profile,
    blobs: BlobStore,
    spoil: str | None,
    value: str | None,
) -> None:
    request = ProbeRequest(
        modules=("shop", "nothing"), root="src", test_files=("tests/test_shop.py",), rebuild_cmd=spoil
    )
    seen = probe(docker_client, image, request, profile, blobs)
    assert seen.payload["files"] == {"shop": "src/shop.py", "nothing": None}
    events = parse_events(blobs.get(seen.logs["events.jsonl"])).items
    probes = {event["module"]: event for event in events if event["event"] == "probe"}
    assert probes["shop"].get("value") == value
    assert "ModuleNotFoundError" in probes["nothing"]["error"]


@pytest.mark.docker
def test_image_is_left_as_it_was(
    docker_client: docker.DockerClient, image: str, profile: Profile, blobs: BlobStore
) -> None:
    run_tests(docker_client, image, TestRequest(("tests/test_shop.py",), test_patch=TEST_PATCH), profile, blobs)
    with sandbox_container(docker_client, image, profile, "clean") as box:
        assert box.run(["git", "status", "--porcelain"]).output == b""
        assert not box.run(["test", "-e", "/opt/swe-miner"]).ok
