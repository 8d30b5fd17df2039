"""An index that fails or refuses is a fault of the infrastructure, never a property of a package; and the reverse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from bench import LIMITS, OWNER, ground_of, lock_request

from installers.index_trouble import index_trouble, is_refusal
from installers.lock import resolve
from installers.workshop import WORK, Room, Workshop
from miner.core.errors import ConfigError, IndexUnreachable, InfrastructureFault
from miner.core.reasons import Reason
from miner.core.settings import Index
from miner.crawlers.index import IndexClient, index_hosts
from miner.sandbox.network import egress
from miner.sandbox.profile import hardening

INDEX = "i.test:3141"


@pytest.mark.parametrize(
    "said",
    [
        "error: Request failed after 3 retries in 7.2s",
        "error: Failed to fetch: `https://i/simple/a/`\n  cause: HTTP status server error (503 Service Unavailable)",
        "error: Failed to download `a==1`\n  cause: error decoding response body",
        "error: x\n  cause: HTTP status client error (429 Too Many Requests) for url (https://index/simple/a/)",
        "error: Failed to download `a @ https://i.test/a.zip`\n  cause: HTTP status server error (502 Bad Gateway)",
    ],
)
def test_trouble_of_the_index_is_known_by_uvs_words(said: str) -> None:
    assert index_trouble(said, INDEX)
    assert not is_refusal(index_trouble(said, INDEX))


@pytest.mark.parametrize(
    "said",
    [
        "error: x\n  cause: HTTP status client error (403 Forbidden) for url (http://i.test:3141/files/a-1.whl)",
        "error: x\n  cause: HTTP status client error (407 Proxy Authentication Required) for url (http://i.test:3141/a/)",
        "error: No solution\n  cause: Because a was not found\n\nhint: An index (http://i.test:3141/simple/) returned a"
        " 403 Forbidden error. Check that the index URL is correct and the credentials are valid.",
        "error: No solution\n\nhint: An index URL (http://i.test:3141/simple/) could not be queried due to a lack of"
        " valid authentication credentials (401 Unauthorized)",
    ],
)
def test_index_that_refuses_us_is_known_by_uvs_words(said: str) -> None:
    assert is_refusal(index_trouble(said, INDEX))


def test_file_of_the_index_on_a_host_that_is_not_allowed_is_no_property_of_its_package() -> None:
    said = "error: Failed to download `a==1`\n  cause: Failed to fetch: https://cdn.test/a-1-py3-none-any.whl"
    text = f"{said}\n  cause: error sending request for url (https://cdn.test/a-1-py3-none-any.whl)"
    assert index_trouble(text, INDEX, ["cdn.test:443"])


@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("error: No solution found\n  cause: Because a was not found in the package registry", ()),
        ("error: Failed to build `a`\n         [stderr]\n         requests.exceptions: error sending request", ()),
        ("error: Failed to build `a`\n         x\r  cause: error sending request\r", ()),
        ("error: x\n  cause: HTTP status client error (404 Not Found) for url (http://i.test:3141/a.whl)", ()),
        ("error: x\n\nhint: An index (https://other.test/whl) returned a 403 Forbidden error.", ("other.test:443",)),
        (
            "error: Failed to fetch: https://other.test/simple/a/\n"
            "  cause: error sending request for url (https://other.test/simple/a/)",
            ("other.test:443",),
        ),
        (
            "error: Failed to download `a @ https://code.test/a-1-py3-none-any.whl`\n"
            "  cause: error sending request for url (https://code.test/a-1-py3-none-any.whl)",
            ("code.test:443",),
        ),
        (
            "error: Failed to download `a @ http://code.test/a-1-py3-none-any.whl`\n"
            "  cause: HTTP status client error (403 Forbidden) for url (http://code.test/a-1-py3-none-any.whl)",
            (),
        ),
        ("", ()),
    ],
)
def test_failures_of_packages_are_no_trouble_of_the_index(said: str, denied: tuple[str, ...]) -> None:
    assert index_trouble(said, INDEX, denied) == ""


# Answers with the status that the project's name ends in, or with a page whose only file lies on another host.
_SERVER = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/").split("/")[-1]
        status = int(name[-3:]) if name[-3:].isdigit() else 200 if name == "offsite" else 404
        file = {"filename": "offsite-1.0-py3-none-any.whl", "hashes": {}, "upload-time": "2020-01-01T00:00:00Z"}
        file["url"] = "http://files.invalid:8080/" + file["filename"]
        body = json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": [file]}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_HEAD = do_GET
http.server.ThreadingHTTPServer(("0.0.0.0", 3141), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def index(docker_client: docker.DockerClient, workshop: Workshop) -> Iterator[str]:
    """An index on a port of its own, in a container; gives its `host:port`."""
    options = hardening(LIMITS, owner=OWNER, runtime=None)
    container = docker_client.containers.run(workshop.base.image, ["python3", "-c", _SERVER], detach=True, **options)
    try:
        container.reload()
        yield f"{container.attrs['NetworkSettings']['Networks']['bridge']['IPAddress']}:3141"
    finally:
        container.remove(force=True)


@pytest.fixture(scope="module")
def bench(docker_client: docker.DockerClient, workshop: Workshop, index: str, tmp_path_factory) -> Iterator[Workshop]:
    """A workshop whose boxes use that index."""
    settings = workshop.settings.model_copy(update={"index": Index(url=f"http://{index}/simple/", tries=6)})
    hosts = index_hosts(IndexClient(settings.index, tmp_path_factory.mktemp("downloads")), settings.index)
    assert hosts == (index,)
    with egress(docker_client, workshop.base.image, hosts, settings, owner=OWNER) as way:
        yield replace(workshop, settings=settings, room=lambda: Room(docker_client, way))


@pytest.mark.docker
@pytest.mark.parametrize("project", ["refused-401", "refused-403", "refused-407", "offsite"])
def test_index_that_refuses_a_box_is_a_fault(bench: Workshop, project: str) -> None:
    with pytest.raises(InfrastructureFault, match="refuses") as caught:
        resolve(bench, ground_of(bench), lock_request(bench, project))
    assert caught.value.reason is Reason.INDEX_ERROR
    assert "index.extra_hosts" in caught.value.next_step


@pytest.mark.docker
def test_index_on_a_port_of_its_own_is_reached_and_an_unknown_project_is_a_property(bench: Workshop) -> None:
    seen = resolve(bench, ground_of(bench), lock_request(bench, "unknown"))
    assert seen.outcome == "lock-failed"
    assert "not found in the package registry" in seen.payload["detail"]
    assert "denied" not in seen.payload


@pytest.mark.docker
def test_index_that_boxes_are_not_let_to_is_a_fault(bench: Workshop) -> None:
    elsewhere = bench.settings.model_copy(update={"index": Index(url="http://devpi.invalid:3141/simple/")})
    with pytest.raises(InfrastructureFault, match=r"devpi\.invalid:3141") as caught:
        resolve(replace(bench, settings=elsewhere), ground_of(bench), lock_request(bench, "anything"))
    assert caught.value.reason is Reason.INDEX_ERROR
    assert not isinstance(caught.value, IndexUnreachable)


@pytest.mark.docker
def test_login_of_the_index_is_in_no_box(bench: Workshop) -> None:
    url = str(bench.settings.index.url).replace("//", "//me:s3cret@")
    named = replace(bench, settings=bench.settings.model_copy(update={"index": Index(url=url)}))
    with named.box(named.base.image, network=True) as box:
        box.put({f"{WORK}/": (b"", 0o755)})
        result = named.run_uv(box, ["-v", "pip", "install", "--dry-run", "--target", "/tmp/x", "unknown"])
        assert "/simple/unknown/" in result.text
        assert "s3cret" not in result.text
    with pytest.raises(ConfigError):
        index_hosts(IndexClient(named.settings.index, Path("unused")), named.settings.index)
