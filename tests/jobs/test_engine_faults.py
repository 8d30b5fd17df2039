"""The engine dies, fills up or loses connections in the middle of a run: no property of a task, and resumable."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from itertools import chain

import docker
import pytest
from engine_proxy import EngineProxy
from whole_run import SMALL_OPTIONS, Place, boxes, content, left_in_the_engine

from installers.image import remove_image
from miner.core.errors import DiskFull, DockerUnavailable, Interrupted
from miner.core.records import State
from miner.core.settings import Settings
from miner.sandbox.interface import LABEL

pytestmark = [pytest.mark.docker, pytest.mark.index]

INSTALL = r"/containers/swe-miner-install-\w+/exec .*\"/opt/build/reinstall\""
TESTS = r"/containers/swe-miner-tests-\w+/exec .*swe_miner_reporter(?!.*--collect-only)"
VALIDATE = ("validate.before", "validate.after")
REJECTED = {"pypi__itsdangerous-2.1.2": State.REJECTED}


@pytest.fixture
def before_the_tests(undisturbed: Place, new_place: Callable[..., Place], settings: Settings) -> Place:
    """A place that has come as far as the undisturbed one had, just before the tests were run."""
    made = new_place("before-the-tests", *SMALL_OPTIONS)
    for name in ("blobs", "downloads", "repos"):
        shutil.copytree(undisturbed.work / name, made.work / name)
    known, ledger = undisturbed.ledger(), made.ledger()
    ledger.begin_run("copied", "run", settings, {})
    trails = (decision.trail for decision in known.decisions())
    for fact in filter(None, (known.get(name) for name in chain.from_iterable(trails))):
        if fact.key.kind not in VALIDATE:
            ledger.add(fact, "copied")
    ledger.end_run("copied", "done")
    known.close()
    ledger.close()
    return made


def states(place: Place) -> dict[str, State]:
    ledger = place.ledger()
    found = {decision.instance_id: decision.state for decision in ledger.decisions()}
    ledger.close()
    return found


def is_clean(client: docker.DockerClient, place: Place) -> bool:
    return left_in_the_engine(client, place.owner) == []


def completes(client: docker.DockerClient, place: Place, undisturbed: Place, *known: str) -> None:
    """Run again with the engine as it should be: the outcome is that of an undisturbed run, and nothing is left."""
    stored = place.facts()
    assert not [fact for fact in stored.values() if fact.outcome != "ok"]
    assert {fact.kind for fact in stored.values()} >= set(known)
    place.run("run")
    assert place.facts().items() >= stored.items()
    assert content(place.out) == content(undisturbed.out)
    assert is_clean(client, place)


def test_engine_that_dies_while_a_project_is_installed_ends_the_run_and_rejects_nothing(
    docker_client: docker.DockerClient, undisturbed: Place, new_place: Callable[..., Place]
) -> None:
    place = new_place("dies-installing", *SMALL_OPTIONS)
    with EngineProxy() as engine:
        engine.dies_after(INSTALL, wait_s=0.5)
        done = place.run("run", "-c", f"docker.host={engine.url}", code=DockerUnavailable.exit_code)
        assert engine.fired.is_set()
    assert "error: the container engine" in done.stderr
    assert f"next: {DockerUnavailable.next_step}" in done.stderr
    assert states(place) == {"pypi__idna-3.4": State.FAULTED, **REJECTED} or states(place) == REJECTED
    assert not place.out.exists()
    completes(docker_client, place, undisturbed, "install.lock", "install.env")


def test_engine_that_dies_while_tests_run_ends_the_run_and_rejects_nothing(
    docker_client: docker.DockerClient, undisturbed: Place, before_the_tests: Place
) -> None:
    with EngineProxy() as engine:
        engine.dies_after(TESTS, wait_s=0.2)
        done = before_the_tests.run("run", "-c", f"docker.host={engine.url}", code=DockerUnavailable.exit_code)
        assert engine.fired.is_set()
    assert f"next: {DockerUnavailable.next_step}" in done.stderr
    assert states(before_the_tests)["pypi__idna-3.4"] is State.FAULTED
    assert not {fact.kind for fact in before_the_tests.facts().values()} & set(VALIDATE)
    assert not before_the_tests.out.exists()
    completes(docker_client, before_the_tests, undisturbed)


def test_engine_that_is_away_when_nothing_is_needed_of_it_is_not_missed(
    docker_client: docker.DockerClient, undisturbed: Place
) -> None:
    before = content(undisturbed.out)
    undisturbed.run("run", "-c", "docker.host=tcp://127.0.0.1:1")
    assert content(undisturbed.out) == before


def test_what_a_killed_run_has_left_goes_with_the_next_one_even_if_that_measures_nothing(
    docker_client: docker.DockerClient, undisturbed: Place, settings: Settings
) -> None:
    ledger = undisturbed.ledger()
    ledger.begin_run("killed", "run", settings, {})
    part = undisturbed.work / "scratch" / ledger.id / "tmp" / "part.tar"
    ledger.close()
    part.parent.mkdir(parents=True)
    part.write_bytes(b"1")
    docker_client.volumes.create(f"swe-miner-test-left-{undisturbed.owner}", labels={LABEL: undisturbed.owner})
    before = undisturbed.facts()
    undisturbed.run("run")
    assert undisturbed.facts() == before
    assert is_clean(docker_client, undisturbed)
    assert not part.exists()


@pytest.mark.parametrize(
    ("number", "box"),
    [
        pytest.param(signal.SIGTERM, "swe-miner-tests-", id="while-tests-run"),
        pytest.param(signal.SIGINT, "swe-miner-egress-", id="while-the-proxy-starts"),
    ],
)
def test_signal_ends_the_run_within_seconds_and_leaves_nothing(
    number: signal.Signals, box: str, docker_client: docker.DockerClient, undisturbed: Place, before_the_tests: Place
) -> None:
    process = before_the_tests.start("run")
    wait_for_box(docker_client, before_the_tests.owner, box)
    sent = time.monotonic()
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == Interrupted.exit_code, output
    assert time.monotonic() - sent < 10
    assert f"error: stopped by {number.name}" in output
    assert f"next: {Interrupted.next_step}" in output
    assert is_clean(docker_client, before_the_tests)
    assert not {fact.kind for fact in before_the_tests.facts().values()} & set(VALIDATE)
    completes(docker_client, before_the_tests, undisturbed)


def wait_for_box(client: docker.DockerClient, owner: str, name: str) -> None:
    """Wait until a run has a container of this kind."""
    end = time.monotonic() + 60
    while not any(str(box.name).startswith(name) for box in boxes(client, owner)):
        assert time.monotonic() < end, f"no {name} has come"
        time.sleep(0.05)


UNPACKING = b'{"message":"Error processing tar file(exit status 1): write /testbed/x: no space left on device"}\n'
CREATING = (
    b'{"message":"mkdir /var/lib/docker/overlay2/0123456789abcdef0123456789abcdef0123456789abcdef-init: '
    b'no space left on device"}\n'
)
LOADING = (
    b'{"errorDetail":{"message":"Error processing tar file(exit status 1): write /opt/env/bin/x: '
    b'no space left on device"},"error":"Error processing tar file(exit status 1): write /opt/env/bin/x: '
    b'no space left on device"}\r\n'
)


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        pytest.param(r"PUT /\S+/containers/swe-miner-tests-\w+/archive", "500 E", UNPACKING, id="unpacking"),
        pytest.param(
            r"POST /\S+/containers/create\?name=swe-miner-tests-",
            "500 E",
            CREATING,
            id="creating",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_engine_whose_disk_is_full_ends_the_run_and_rejects_nothing(
    request_line: str,
    status: str,
    body: bytes,
    docker_client: docker.DockerClient,
    undisturbed: Place,
    before_the_tests: Place,
) -> None:
    with EngineProxy() as engine:
        engine.answers(request_line, status, body)
        done = before_the_tests.run("run", "-c", f"docker.host={engine.url}", code=DiskFull.exit_code)
        assert engine.fired.is_set()
    assert "no space left on device" in done.stderr
    assert f"next: {DiskFull.next_step}" in done.stderr
    assert is_clean(docker_client, before_the_tests)
    completes(docker_client, before_the_tests, undisturbed)


@pytest.mark.slow
def test_image_that_does_not_fit_the_engine_ends_the_run_and_rejects_nothing(
    docker_client: docker.DockerClient, undisturbed: Place, before_the_tests: Place
) -> None:
    for image in docker_client.images.list("swe-miner/pypi__idna-3.4"):
        for tag in image.tags:
            remove_image(docker_client, tag)
    with EngineProxy() as engine:
        engine.answers(r"POST /\S+/images/load", "200 OK", LOADING)
        before_the_tests.run("run", "-c", f"docker.host={engine.url}", code=DiskFull.exit_code)
        assert engine.fired.is_set()
    completes(docker_client, before_the_tests, undisturbed)


def test_connection_that_is_lost_while_tests_run_changes_no_result(
    docker_client: docker.DockerClient, undisturbed: Place, before_the_tests: Place
) -> None:
    with EngineProxy() as engine:
        engine.loses_connection_after(TESTS, wait_s=0.2)
        before_the_tests.run("run", "-c", f"docker.host={engine.url}", code=None)
        assert engine.fired.is_set()
    completes(docker_client, before_the_tests, undisturbed)
