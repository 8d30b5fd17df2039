"""The locked-down container: its pure parts, and real boxes."""

from __future__ import annotations

import contextlib
import io
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason
from miner.core.settings import Limits, Settings
from miner.sandbox.base_image import BaseImage
from miner.sandbox.container import DockerBox, sandbox_container
from miner.sandbox.counters import parse_counters
from miner.sandbox.janitor import clean, owner_of
from miner.sandbox.profile import Profile, container_options, profile_of
from miner.sandbox.stream import Capture, Frames
from miner.sandbox.tars import first_regular_file, tar_of

OWNER = "test-container"
LIMITS = Limits(memory_mb=256, cpus=1.0, pids=64, disk_mb=128, output_mb=1, timeout_s=30.0)


def frame(payload: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


@given(st.lists(st.binary(max_size=40)), st.integers(1, 50))
def test_frames_give_the_payload_however_the_stream_is_cut(payloads: list[bytes], size: int) -> None:
    stream = b"".join(frame(payload) for payload in payloads)
    frames = Frames()
    pieces = [piece for at in range(0, len(stream), size) for piece in frames.feed(stream[at : at + size])]
    assert b"".join(pieces) == b"".join(payloads)


@given(st.lists(st.binary(max_size=30)), st.integers(1, 20))
def test_capture_keeps_everything_that_fits_and_head_and_tail_of_the_rest(chunks: list[bytes], half: int) -> None:
    capture = Capture(2 * half)
    for chunk in chunks:
        capture.add(chunk)
    whole = b"".join(chunks)
    kept = capture.output()
    assert capture.truncated == (len(whole) > 2 * half)
    if capture.truncated:
        marker = b"\n[... %d bytes left out ...]\n" % (len(whole) - 2 * half)
        assert kept == whole[:half] + marker + whole[-half:]
    else:
        assert kept == whole


def test_counters_of_control_groups_version_1() -> None:
    counters = parse_counters(
        "memory/memory.oom_control oom_kill_disable 0\nmemory/memory.oom_control under_oom 0\n"
        "memory/memory.oom_control oom_kill 2\nmemory/memory.max_usage_in_bytes 268435456\n"
        "memory/memory.limit_in_bytes 268435456\npids/pids.events max 7\n      Avail IFree\n90000000000 1600000\n"
    )
    assert (counters.oom_kills, counters.at_memory_limit, counters.pids_refused) == (2, True, 7)
    assert (counters.memory_peak, counters.disk_available) == (268435456, 90000000000)
    assert counters.files_available == 1600000


def test_counters_of_control_groups_version_2_tell_the_host_from_the_box() -> None:
    text = (
        "memory.events low 0\nmemory.events oom {}\nmemory.events oom_kill 1\nmemory.peak 1000\nmemory.max 268435456\n"
    )
    assert parse_counters(text.format(1)).at_memory_limit
    by_the_host = parse_counters(text.format(0))
    assert by_the_host.oom_kills == 1
    assert not by_the_host.at_memory_limit


@given(st.text())
def test_counters_of_nonsense_are_none(text: str) -> None:
    assert parse_counters(text).pids_refused == 0


def test_tar_holds_files_and_folders_of_one_owner() -> None:
    with tarfile.open(fileobj=io.BytesIO(tar_of({"/report/": (b"", 0o755), "/opt/x": (b"1", 0o644)}, uid=1000))) as tar:
        entries = [(entry.name, entry.isdir(), entry.mode, entry.uid) for entry in tar]
    assert entries == [("report", True, 0o755, 1000), ("opt/x", False, 0o644, 1000)]


def test_link_is_no_regular_file() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        link = tarfile.TarInfo("events.jsonl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    assert first_regular_file(iter([out.getvalue()]), 100) is None
    assert first_regular_file(iter([tar_of({"/a": (b"12345", 0o644)}, 0)]), 3) == b"123"


def test_profile_takes_everything_away(settings: Settings) -> None:
    options = container_options(profile_of(settings, LIMITS, owner=OWNER))
    assert options["cap_drop"] == ["ALL"]
    assert options["security_opt"] == ["no-new-privileges"]
    assert options["network_mode"] == "none"
    assert options["mem_limit"] == options["memswap_limit"] == 256 * 1024 * 1024
    assert options["pids_limit"] == 64
    assert options["mounts"] == []
    assert options["user"].split(":")[0] not in ("0", "root", "1000")
    assert "privileged" not in options


def test_shared_cache_is_mounted_only_when_asked_for(settings: Settings) -> None:
    options = container_options(profile_of(settings, LIMITS, cache="shared", owner=OWNER))
    assert [mount["Target"] for mount in options["mounts"]] == ["/cache"]


@pytest.fixture
def profile(settings: Settings) -> Profile:
    return profile_of(settings, LIMITS, owner=OWNER)


@pytest.mark.docker
def test_command_runs_as_user_1000_with_output_in_order_and_its_exit_code(
    docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile
) -> None:
    with sandbox_container(docker_client, base_image.image, profile, "Order of Output!") as box:
        assert box.name.startswith("swe-miner-order-of-output-")
        script = "for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done; id -u; echo $X $PWD; exit 3"
        result = box.run(["bash", "-c", script], env={"X": "given"}, workdir="/tmp")
    lines = result.text.splitlines()
    assert lines[:10] == [f"{stream}{i}" for i in range(1, 6) for stream in ("out", "err")]
    assert lines[10:] == ["1000", "given /tmp"]
    assert (result.exit_code, result.limit, result.ok) == (3, None, False)
    assert result.memory_peak is not None


@pytest.mark.docker
def test_files_go_in_and_come_out_even_after_a_kill(
    docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile
) -> None:
    with sandbox_container(docker_client, base_image.image, profile, "files") as box:
        box.put({"/opt/swe-miner/a b": (b"\x00\xff", 0o640), "/report/": (b"", 0o755)})
        seen = box.run(["bash", "-c", "stat -c '%u %a' '/opt/swe-miner/a b'; cp '/opt/swe-miner/a b' /report/x"])
        assert seen.text == "1000 640\n"
        stopped = box.run(["bash", "-c", "ln -s /etc/passwd /report/link; sleep 60"], timeout_s=0.5)
        assert (stopped.exit_code, stopped.timed_out) == (137, True)
        assert box.read_file("/report/x", 100) == b"\x00\xff"
        assert box.read_file("/report/x", 1) == b"\x00"
        with tarfile.open(fileobj=io.BytesIO(b"".join(box.fetch("/report")))) as tar:
            assert {"report", "report/x", "report/link"} <= set(tar.getnames())
        for path in ("/report/nothing", "/report/link", "/report"):
            with pytest.raises(FileNotFoundError):
                box.read_file(path, 100)


@pytest.mark.docker
def test_killed_box_runs_nothing_and_names_its_limit_again(
    docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile
) -> None:
    with sandbox_container(docker_client, base_image.image, profile, "again") as box:
        started = time.monotonic()
        assert box.run(["sleep", "60"], timeout_s=0.3).limit == "time"
        assert box.run(["true"]).limit == "time"
        assert time.monotonic() - started < 10


@pytest.mark.docker
def test_command_that_closes_its_output_is_waited_for(
    docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile
) -> None:
    with sandbox_container(docker_client, base_image.image, profile, "closed") as box:
        assert box.run(["bash", "-c", "exec >&- 2>&-; sleep 1; exit 7"]).exit_code == 7
        assert box.run(["bash", "-c", "exec >&- 2>&-; sleep 60"], timeout_s=1).timed_out


@pytest.mark.docker
def test_missing_program_is_a_failed_command_and_no_fault(
    docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile
) -> None:
    with sandbox_container(docker_client, base_image.image, profile, "missing") as box:
        assert box.run(["no-such-program"]).exit_code == 127


@pytest.mark.docker
def test_exit_status_by_which_the_engine_tells_of_lost_output_is_no_commands_own(
    docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile
) -> None:
    with sandbox_container(docker_client, base_image.image, profile, "status") as box:
        assert [box.run(["bash", "-c", f"exit {status}"]).exit_code for status in (125, 126, 127)] == [125, 125, 127]


@pytest.mark.docker
def test_container_removed_from_outside_is_a_fault_and_never_a_failed_command(
    docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile
) -> None:
    with sandbox_container(docker_client, base_image.image, profile, "removed") as box:
        threading.Timer(0.5, lambda: docker_client.api.remove_container(box.name, force=True)).start()
        with pytest.raises(InfrastructureFault) as caught:
            box.run(["sleep", "20"])
    assert caught.value.reason is Reason.DOCKER_ERROR


@pytest.mark.docker
def test_container_killed_from_outside_is_a_fault_and_never_a_failed_command(
    docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile
) -> None:
    with sandbox_container(docker_client, base_image.image, profile, "killed") as box:
        threading.Timer(0.5, lambda: docker_client.api.kill(box.name)).start()
        with pytest.raises(InfrastructureFault, match="without our doing"):
            box.run(["sleep", "20"])


def names_of(client: docker.DockerClient, owner: str) -> list[str]:
    found = client.api.containers(all=True, filters={"label": f"swe-miner={owner}"})
    return [name for container in found for name in container["Names"]]


@pytest.mark.docker
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_box_is_removed_whatever_ends_the_block(
    docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings, error: type[BaseException]
) -> None:
    profile = profile_of(settings, LIMITS, owner=f"{OWNER}-end")

    def use() -> None:
        with sandbox_container(docker_client, base_image.image, profile, "end"):
            assert names_of(docker_client, f"{OWNER}-end")
            raise error

    with pytest.raises(error):
        use()
    assert not names_of(docker_client, f"{OWNER}-end")


@pytest.mark.docker
def test_image_that_does_not_exist_is_a_fault_and_leaves_nothing(
    docker_client: docker.DockerClient, settings: Settings
) -> None:
    profile = profile_of(settings, LIMITS, owner=f"{OWNER}-noimage")
    with pytest.raises(InfrastructureFault), sandbox_container(docker_client, "swe-miner/none:none", profile, "x"):
        pass
    assert not names_of(docker_client, f"{OWNER}-noimage")


def test_copy_of_a_ledger_in_another_folder_has_another_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, copy = tmp_path / "var", tmp_path / "copy"
    assert owner_of("ledger", one) != owner_of("ledger", copy)
    assert owner_of("ledger", one) != owner_of("other", one)
    monkeypatch.chdir(tmp_path)
    assert owner_of("ledger", Path("var")) == owner_of("ledger", one)
    assert str(tmp_path) not in owner_of("ledger", one)


@pytest.mark.docker
def test_janitor_removes_what_a_killed_run_left_and_nothing_of_others(
    docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings, profile: Profile
) -> None:
    abandoned = DockerBox(
        docker_client, profile_of(settings, LIMITS, owner=f"{OWNER}-dead"), "swe-miner-test-abandoned"
    )
    abandoned.start(base_image.image, None)
    docker_client.volumes.create("swe-miner-test-abandoned", labels={"swe-miner": f"{OWNER}-dead"})
    with sandbox_container(docker_client, base_image.image, profile, "alive") as alive:
        assert clean(docker_client, f"{OWNER}-dead") == 2
        assert clean(docker_client, f"{OWNER}-dead") == 0
        assert alive.run(["true"]).ok
    assert not names_of(docker_client, f"{OWNER}-dead")
    assert not docker_client.volumes.list(filters={"name": "swe-miner-test-abandoned"})


_KILLED = """
import sys, time, docker
from miner.core.settings import load_settings
from miner.sandbox.container import sandbox_container
from miner.sandbox.network import egress
from miner.sandbox.profile import profile_of
image, owner = sys.argv[1:]
client, settings = docker.from_env(), load_settings()
profile = profile_of(settings, settings.measure.test, owner=owner)
with egress(client, image, [], settings, owner=owner) as way:
    with sandbox_container(client, image, profile, "killed", way) as box:
        print("ready", flush=True)
        box.run(["sleep", "600"])
"""


@pytest.mark.docker
def test_janitor_removes_box_proxy_and_volume_of_a_program_that_was_killed(
    docker_client: docker.DockerClient, base_image: BaseImage
) -> None:
    owner = f"{OWNER}-kill9"
    command = [sys.executable, "-c", _KILLED, base_image.image, owner]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        program.kill()
    assert clean(docker_client, owner) == 3
    assert not names_of(docker_client, owner)


class Relay:
    """Stands between a client and the engine's socket, and can cut or freeze what goes through it."""

    def __init__(self, path: Path, engine: str) -> None:
        self._engine = engine
        self._open: list[socket.socket] = []
        self.frozen = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(32)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._engine)
                self._open += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=pair, daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                while self.frozen:
                    time.sleep(0.1)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """End as an engine does that dies: no connection lives on, no new one is taken."""
        for end in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def freeze(self) -> None:
        """End as an engine does whose machine hangs: connections stay, nothing arrives."""
        self.frozen = True


@pytest.fixture
def relay(docker_client: docker.DockerClient, tmp_path: Path) -> Iterator[Relay]:
    engine = docker_client.api.adapters["http+docker://"].socket_path  # type: ignore[attr-defined] # of a UNIX socket
    relay = Relay(tmp_path / "socket", engine)
    yield relay
    relay.cut()
    clean(docker_client, f"{OWNER}-relay")


@pytest.mark.docker
@pytest.mark.parametrize("way", ["cut", "freeze"])
def test_engine_that_dies_during_a_command_is_a_fault_and_never_a_failed_command(
    base_image: BaseImage, settings: Settings, relay: Relay, tmp_path: Path, way: str
) -> None:
    profile = profile_of(settings, LIMITS, owner=f"{OWNER}-relay")
    client = docker.DockerClient(base_url=f"unix://{tmp_path}/socket", timeout=3)

    def use() -> None:
        with sandbox_container(client, base_image.image, profile, "dying") as box:
            threading.Timer(0.7, getattr(relay, way)).start()
            box.run(["sleep", "30"], timeout_s=5)

    started = time.monotonic()
    with pytest.raises(InfrastructureFault) as caught:
        use()
    assert caught.value.reason in (Reason.DOCKER_UNAVAILABLE, Reason.DOCKER_ERROR)
    assert time.monotonic() - started < 25
