from __future__ import annotations

import errno
import secrets
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import docker
import pytest

from miner.core.errors import DiskFull, DockerUnavailable, InfrastructureFault
from miner.core.reasons import Reason
from miner.core.settings import Docker
from miner.sandbox.base_image import BaseImage
from miner.sandbox.engine import connect, engine_faults, remove_container, translate


@contextmanager
def engine(status: int, body: bytes, *, breaks: bool = False) -> Iterator[str]:
    """An engine that answers its version and then every request in one way."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            healthy = self.path.endswith(("/version", "/_ping"))
            answer = b'{"ApiVersion": "1.41", "Version": "20"}' if healthy else body
            self.send_response(200 if healthy else status)
            self.send_header("Content-Length", str(len(answer) + (100 if breaks and not healthy else 0)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"tcp://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_nothing_at_the_address_is_a_fault_that_names_the_address() -> None:
    with pytest.raises(DockerUnavailable, match=r"tcp://127\.0\.0\.1:1"):
        connect(Docker(host="tcp://127.0.0.1:1"))


def test_missing_socket_is_a_fault() -> None:
    with pytest.raises(DockerUnavailable):
        connect(Docker(host="unix:///nonexistent/docker.sock"))


def test_address_that_is_none_is_a_fault() -> None:
    with pytest.raises(DockerUnavailable):
        connect(Docker(host="nonsense://x"))


def test_full_disk_of_the_engine_is_told_from_its_message() -> None:
    body = b'{"message": "write /var/lib/x: no space left on device"}'
    with engine(500, body) as host, pytest.raises(DiskFull), engine_faults():
        connect(Docker(host=host)).containers.get("x")


def test_engine_that_dies_in_an_answer_is_gone() -> None:
    with engine(200, b"{", breaks=True) as host, pytest.raises(DockerUnavailable), engine_faults():
        connect(Docker(host=host)).containers.get("x")


def test_refusal_of_the_engine_is_an_engine_error_with_its_words() -> None:
    with engine(409, b'{"message": "name is in use"}') as host:
        with pytest.raises(InfrastructureFault, match="name is in use") as caught, engine_faults():
            connect(Docker(host=host)).containers.get("x")
        assert caught.value.reason is Reason.DOCKER_ERROR


def test_not_found_can_be_caught_inside_as_a_value() -> None:
    with (
        engine(404, b'{"message": "No such container"}') as host,
        engine_faults(),
        pytest.raises(docker.errors.NotFound),
    ):
        connect(Docker(host=host)).containers.get("x")


def test_full_disk_of_the_host_is_told_from_the_error_number() -> None:
    with pytest.raises(DiskFull), engine_faults():
        raise OSError(errno.ENOSPC, "No space left on device")


def test_host_without_memory_is_no_property_of_a_task() -> None:
    error = docker.errors.APIError("OCI runtime create failed: fork/exec: cannot allocate memory")
    assert translate(error).reason is Reason.HOST_OUT_OF_MEMORY


def test_bug_of_ours_passes_unchanged() -> None:
    with pytest.raises(KeyError), engine_faults():
        raise KeyError("x")


def test_fault_passes_unchanged() -> None:
    fault = InfrastructureFault("x")
    assert translate(fault) is fault


@pytest.mark.docker
def test_container_that_several_remove_at_once_is_gone_for_each_of_them(
    docker_client: docker.DockerClient, base_image: BaseImage
) -> None:
    name = f"swe-miner-test-engine-{secrets.token_hex(6)}"
    docker_client.containers.run(base_image.image, ["sleep", "60"], name=name, detach=True, network_mode="none")

    def remove(_: int) -> bool:
        remove_container(docker_client, name)
        try:
            docker_client.api.inspect_container(name)
        except docker.errors.NotFound:
            return True
        return False

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(remove, range(4))) == [True] * 4
