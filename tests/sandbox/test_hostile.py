"""Hostile code in a box: each attack is contained, and named where it reaches a bound."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator

import docker
import pytest

from miner.core.settings import Limits, Settings
from miner.sandbox.base_image import BaseImage
from miner.sandbox.container import DockerBox, sandbox_container
from miner.sandbox.interface import ExecResult
from miner.sandbox.profile import Profile, profile_of

pytestmark = pytest.mark.docker

OWNER = "test-hostile"
LIMITS = Limits(memory_mb=128, cpus=1.0, pids=48, disk_mb=64, output_mb=1, timeout_s=20.0)


@pytest.fixture
def profile(settings: Settings) -> Profile:
    return profile_of(settings, LIMITS, owner=OWNER)


@pytest.fixture
def run(docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile):
    def run(script: str, timeout_s: float | None = None, program: str = "bash") -> ExecResult:
        with sandbox_container(docker_client, base_image.image, profile, "hostile") as box:
            return box.run([program, "-c", script], timeout_s=timeout_s)

    return run


@pytest.fixture(scope="module")
def lasting(docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings) -> Iterator[DockerBox]:
    """One box for all attacks that reach no bound."""
    profile = profile_of(settings, LIMITS, owner=OWNER)
    with sandbox_container(docker_client, base_image.image, profile, "lasting") as box:
        yield box


def test_process_bomb_is_stopped_and_named(run) -> None:
    assert run(":(){ :|:& };: ; sleep 1").limit == "pids"
    result = run("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", program="python3")
    assert result.limit == "pids"
    assert result.duration_s < 18


def test_memory_hog_is_killed_and_named_even_where_its_parent_ends_well(run) -> None:
    result = run("python3 -c 'x = bytearray(10**9)'; echo went on")
    assert (result.limit, result.exit_code) == ("memory", 0)
    assert result.out_of_memory


def test_memory_cannot_be_had_by_way_of_tmp_or_shm(run) -> None:
    result = run("head -c 1G /dev/zero > /tmp/a; head -c 1G /dev/zero > /dev/shm/b; echo done")
    assert result.limit == "memory" or "No space left" in result.text


def test_exit_code_137_of_its_own_making_is_no_limit(run) -> None:
    result = run("kill -9 $$")
    assert (result.exit_code, result.limit) == (137, None)


def test_many_files_below_the_file_size_limit_fill_no_disk(run) -> None:
    script = "cd /testbed; i=0; while true; do head -c 2M /dev/urandom > f$i; i=$((i+1)); sleep 0.02; done"
    assert run(script).limit == "disk"


def test_one_file_beyond_the_file_size_limit_is_named(run) -> None:
    result = run("head -c 300M /dev/zero > /testbed/large; echo $?")
    assert result.limit == "disk"
    assert "153" in result.text or "File size limit exceeded" in result.text


def test_endless_output_is_stopped_without_growing_our_memory(run) -> None:
    tracemalloc.start()
    result = run("yes 'a line of output'")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (result.limit, result.truncated) == ("output", True)
    assert len(result.output) < 1_200_000
    assert b"bytes left out" in result.output
    assert peak < 20_000_000


def test_sleeper_is_killed_on_time_though_it_ignores_signals(run) -> None:
    result = run("trap '' TERM INT HUP QUIT; while true; do sleep 1; done", timeout_s=1.5)
    assert result.timed_out
    assert 1.4 < result.duration_s < 6


def test_daemon_does_not_hold_the_command_nor_outlive_the_box(
    docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile
) -> None:
    with sandbox_container(docker_client, base_image.image, profile, "daemon") as box:
        started = time.monotonic()
        result = box.run(
            ["bash", "-c", "(setsid bash -c 'while true; do date >> /report/d; sleep 0.2; done' &); exit 4"]
        )
        assert (result.exit_code, result.limit) == (4, None)
        assert time.monotonic() - started < 15
        box.kill()
        first = box.read_file("/report/d", 100_000)
        time.sleep(0.5)
        assert box.read_file("/report/d", 100_000) == first
        name = box.name
    assert not docker_client.api.containers(all=True, filters={"name": name})


def test_keeper_cannot_be_killed(run) -> None:
    result = run(
        "kill -9 1; kill -TERM 1; for p in /proc/[0-9]*; do kill -9 ${p#/proc/} 2>/dev/null; done; kill -9 -1; echo"
    )
    assert result.limit is None


@pytest.mark.parametrize(
    "script",
    [
        "echo x > /etc/passwd",
        "echo x > /usr/bin/git",
        "echo x > /opt/swe-miner/x",
        "echo x > /x",
        "rm -rf /usr/lib/git-core/git && test ! -e /usr/lib/git-core/git",
        "cat /etc/shadow",
        "ls /root",
        "mount -t tmpfs none /testbed",
        "mount -o remount,rw /proc/sys",
        "unshare -r true",
        "unshare -Urm true",
        "chroot / true",
        "mknod /testbed/sda b 8 0",
        "echo 1 > /proc/sys/kernel/core_pattern",
        "echo c > /proc/sysrq-trigger",
        "head -c 10 /proc/kcore",
        "dmesg",
        "cat /proc/1/environ",
        "ls /proc/1/root/",
        "nice -n -5 true 2>&1 | grep -v 'Permission denied' && true",
        "test -e /var/run/docker.sock",
        "test -e /dev/sda || test -e /dev/vda",
        "ls /sys/fs/cgroup/memory/../../../../host",
        "echo 99999 > /sys/fs/cgroup/pids/pids.max",
        "mkdir /sys/fs/cgroup/memory/x",
        "cp /usr/bin/id /testbed/id; chmod 4755 /testbed/id; setpriv --reuid 0 true",
        "su -c true",
    ],
)
def test_no_way_to_other_files_or_rights(lasting: DockerBox, script: str) -> None:
    result = lasting.run(["bash", "-c", script])
    assert result.exit_code != 0, result.text
    assert result.limit is None


def test_set_user_id_gives_no_rights(run) -> None:
    result = run(
        "grep -E 'NoNewPrivs|CapEff|CapBnd|CapPrm|Seccomp:' /proc/self/status; find / -xdev -perm -4000 | head"
    )
    assert "NoNewPrivs:\t1" in result.text
    assert result.text.count("0000000000000000") == 3
    assert "Seccomp:\t2" in result.text


_PTRACE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
keepers = [int(p) for p in os.listdir("/proc") if p.isdigit() and os.stat("/proc/" + p).st_uid == 65534]
assert keepers
attached = [pid for pid in keepers if libc.ptrace(16, pid, 0, 0) == 0]
signalled = []
for pid in keepers:
    try:
        os.kill(pid, 0); signalled.append(pid)
    except PermissionError:
        pass
print(attached, signalled)
"""


def test_keeper_can_be_neither_traced_nor_signalled(run) -> None:
    assert run(_PTRACE, program="python3").text == "[] []\n"


def test_nothing_of_the_host_is_visible(run) -> None:
    result = run("cat /etc/resolv.conf /etc/hosts; hostname; env; cat /proc/mounts | grep -c ' / '; ls /sys/class/net")
    assert "testbed" in result.text
    assert "nameserver 127.0.0.1" in result.text
    assert result.text.rstrip().endswith("lo")


_NETWORK = """
import socket
outcomes = []
for family, address in [
    (socket.AF_INET, ("1.1.1.1", 443)), (socket.AF_INET, ("172.17.0.1", 22)), (socket.AF_INET, ("169.254.169.254", 80)),
    (socket.AF_INET6, ("2606:4700::1111", 443)),
]:
    with socket.socket(family) as s:
        s.settimeout(2)
        try:
            s.connect(address); outcomes.append("connected")
        except OSError as error:
            outcomes.append("no")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    try:
        s.sendto(b"x", ("1.1.1.1", 53)); outcomes.append("sent")
    except OSError:
        outcomes.append("no")
for kind in (socket.SOCK_RAW,):
    try:
        socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP); outcomes.append("raw")
    except OSError:
        outcomes.append("no")
try:
    socket.getaddrinfo("example.org", 80); outcomes.append("resolved")
except OSError:
    outcomes.append("no")
print(outcomes)
"""


def test_no_network_of_any_kind(run) -> None:
    result = run(_NETWORK, program="python3")
    assert result.text == f"{['no'] * 7}\n"
    assert result.duration_s < 10


def test_private_cache_is_not_the_shared_one(
    docker_client: docker.DockerClient, base_image: BaseImage, profile: Profile
) -> None:
    with sandbox_container(docker_client, base_image.image, profile, "poison") as box:
        assert box.run(["bash", "-c", "echo poison > /cache/swe-miner-test-poison"]).ok
    shared = profile.model_copy(update={"cache": "shared"})
    with sandbox_container(docker_client, base_image.image, shared, "clean") as box:
        assert not box.run(["test", "-e", "/cache/swe-miner-test-poison"]).ok
        assert box.run(["bash", "-c", "test -w /cache"]).ok
