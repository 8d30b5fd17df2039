"""The proxy's rules as pure functions, and the way out of real boxes."""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from urllib.parse import urlsplit

import docker
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from miner.core.errors import ConfigError, IndexUnreachable, InfrastructureFault
from miner.core.settings import Limits, Settings
from miner.sandbox.base_image import BaseImage
from miner.sandbox.container import DockerBox, sandbox_container
from miner.sandbox.engine import connect
from miner.sandbox.network import UV, DockerEgress, egress, pair_of
from miner.sandbox.profile import hardening, profile_of
from miner.sandbox.proxy.rules import Denied, check_hello, is_inside, parse

OWNER = "test-network"
ALLOWED = frozenset({"index.test:443", "files.index.test:443", "mirror.test:8080", "plain.test:80"})
LIMITS = Limits(memory_mb=512, cpus=1.0, pids=64, disk_mb=256, output_mb=1, timeout_s=60.0)


def head(line: str, *fields: str) -> bytes:
    return "\r\n".join([line, *fields, "", ""]).encode("latin-1")


def test_tunnel_to_a_listed_pair_is_allowed() -> None:
    target = parse(head("CONNECT index.test:443 HTTP/1.1", "Host: whatever"), ALLOWED)
    assert (target.host, target.port, target.head) == ("index.test", 443, None)


def test_plain_get_is_sent_on_with_the_host_that_was_checked() -> None:
    request = head(
        "GET http://mirror.test:8080/a?b=c HTTP/1.1", "Host: evil.test", "Accept: */*", "Connection: keep-alive"
    )
    target = parse(request, ALLOWED)
    assert target.pair == "mirror.test:8080"
    assert target.head == b"GET /a?b=c HTTP/1.1\r\nhost: mirror.test:8080\r\nconnection: close\r\naccept: */*\r\n\r\n"
    assert parse(head("HEAD http://plain.test HTTP/1.1"), ALLOWED).pair == "plain.test:80"


@pytest.mark.parametrize(
    "target",
    [
        "169.254.169.254:80",
        "127.0.0.1:443",
        "2130706433:443",
        "0x7f.1:443",
        "[::1]:443",
        "[::ffff:127.0.0.1]:443",
        "index.test:22",
        "index.test:80",
        "index.test:0443",
        "index.test:443443",
        "index.test",
        "index.test:",
        ":443",
        "index.test.evil.test:443",
        "evil-index.test:443",
        "sub.index.test:443",
        "evil.test",
        "INDEX.test:443",
        "Index.Test:443",
        "index.test.:443",
        "index.test@evil.test:443",
        "user:pass@index.test:443",
        "index.test:443@evil.test:443",
        "index.test:443#evil.test",
        "index.test:443/",
        "index.test%00.evil.test:443",
        "index.test\x00:443",
        "index.test\t:443",
        "\u0131ndex.test:443",
        "https://index.test:443",
        "*",
    ],
)
def test_tunnel_to_anything_else_is_refused(target: str) -> None:
    with pytest.raises(Denied):
        parse(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode(), ALLOWED)


@pytest.mark.parametrize(
    "line",
    [
        "GET http://evil.test/ HTTP/1.1",
        "GET http://index.test/ HTTP/1.1",
        "GET https://index.test/ HTTP/1.1",
        "GET http://plain.test@evil.test/ HTTP/1.1",
        "GET http://evil.test#plain.test/ HTTP/1.1",
        "GET http://plain.test:22/ HTTP/1.1",
        "GET http://PLAIN.test/ HTTP/1.1",
        "GET HTTP://plain.test/ HTTP/1.1",
        "GET http://plain.test./ HTTP/1.1",
        "GET http://[::1]/ HTTP/1.1",
        "GET http://plain.test\\@evil.test/ HTTP/1.1",
        "GET file:///etc/passwd HTTP/1.1",
        "GET / HTTP/1.1",
        "GET //plain.test/ HTTP/1.1",
        "POST http://plain.test/ HTTP/1.1",
        "PUT http://plain.test/ HTTP/1.1",
        "get http://plain.test/ HTTP/1.1",
        "GET http://plain.test/ HTTP/2.0",
        "GET http://plain.test/",
        "GET  http://plain.test/ HTTP/1.1",
        "GET http://plain.test/ x HTTP/1.1",
        "",
    ],
)
def test_other_requests_are_refused(line: str) -> None:
    with pytest.raises(Denied):
        parse(head(line), ALLOWED)


@pytest.mark.parametrize(
    "field",
    [
        "Transfer-Encoding: chunked",
        "Content-Length: 5",
        "no colon",
        " folded: x",
        "a b: c",
        "x: y\nHost: evil.test",
        "x: \x00",
        "x : y",
    ],
)
def test_bodies_and_malformed_fields_are_refused(field: str) -> None:
    with pytest.raises(Denied):
        parse(head("GET http://plain.test/ HTTP/1.1", field), ALLOWED)


@given(st.binary(max_size=80))
@example(b"CONNECT index.test:443 HTTP/1.1\r\n\r\n")
def test_whatever_comes_leads_to_a_listed_pair_or_to_a_refusal(data: bytes) -> None:
    try:
        target = parse(data, ALLOWED)
    except Denied:
        return
    assert target.pair in ALLOWED


@given(
    st.sampled_from(sorted(ALLOWED)), st.text(st.characters(codec="ascii"), min_size=1, max_size=5), st.integers(0, 16)
)
def test_a_listed_pair_with_anything_in_it_is_another_pair(pair: str, extra: str, at: int) -> None:
    changed = pair[:at] + extra + pair[at:]
    if changed not in ALLOWED:
        with pytest.raises(Denied):
            parse(f"CONNECT {changed} HTTP/1.1\r\n\r\n".encode(), ALLOWED)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.9.9.9", "0.0.0.0", "169.254.169.254", "224.0.0.1", "::1", "fe80::1%eth0", "::ffff:127.0.0.1"],
)
def test_address_that_is_not_outside(address: str) -> None:
    assert is_inside(address)


def test_private_address_is_outside_since_company_indexes_have_one() -> None:
    assert not is_inside("10.1.2.3")
    assert not is_inside("203.0.113.80")


def client_hello(name: str | None) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = False
    out = ssl.MemoryBIO()
    connection = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return out.read()


def test_tunnel_is_for_the_name_that_was_connected_to() -> None:
    check_hello(client_hello("index.test"), "index.test")
    check_hello(client_hello(None), "192.0.2.7")
    for name in ("evil.test", None):
        with pytest.raises(Denied):
            check_hello(client_hello(name), "index.test")


@given(st.data())
def test_damaged_hello_is_refused_or_names_the_host(data: st.DataObject) -> None:
    hello = bytearray(_HELLO)
    cut = data.draw(st.integers(0, len(hello)))
    for at in data.draw(st.lists(st.integers(0, len(hello) - 1), max_size=5)):
        hello[at] = data.draw(st.integers(0, 255))
    try:
        check_hello(bytes(hello[:cut]), "index.test")
    except Denied:
        return
    assert b"index.test" in hello


_HELLO = client_hello("index.test")


def test_hosts_are_read_with_or_without_a_port() -> None:
    assert pair_of("Index.test") == "index.test:443"
    assert pair_of("index.test:8080") == "index.test:8080"
    for wrong in ("", "https://index.test/", "user@index.test", "index.test:x", "index.test/path"):
        with pytest.raises(ConfigError):
            pair_of(wrong)


def test_ca_bundle_that_cannot_be_read_is_an_error_of_configuration(settings: Settings, tmp_path: Path) -> None:
    index = settings.index.model_copy(update={"ca_bundle": tmp_path / "none.pem"})
    changed = settings.model_copy(update={"index": index})
    with pytest.raises(ConfigError, match=r"none\.pem"), _egress_without_engine(changed):
        pass


def _egress_without_engine(settings: Settings) -> AbstractContextManager[DockerEgress]:
    return egress(None, "image", [], settings, owner=OWNER)  # type: ignore[arg-type] # it is not come to


@pytest.fixture(scope="module")
def mirror(docker_client: docker.DockerClient, base_image: BaseImage) -> Iterator[str]:
    """A plain HTTP server in a container of its own; gives its address."""
    container = docker_client.containers.run(
        base_image.image,
        ["python3", "-m", "http.server", "8000", "--directory", "/usr/share/common-licenses"],
        detach=True,
        **hardening(LIMITS, owner=OWNER, runtime=None),
    )
    try:
        container.reload()
        yield container.attrs["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]
    finally:
        container.remove(force=True)


@pytest.fixture(scope="module")
def way(
    docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings, mirror: str
) -> Iterator[DockerEgress]:
    hosts = [_index_host(settings), f"{mirror}:8000", f"{mirror}:8001", "localhost", "no-such-host.invalid"]
    with egress(docker_client, base_image.image, hosts, settings, owner=OWNER) as way:
        yield way


@pytest.fixture
def box(
    docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings, way: DockerEgress
) -> Iterator[DockerBox]:
    profile = profile_of(settings, LIMITS, owner=OWNER)
    with sandbox_container(docker_client, base_image.image, profile, "network", way) as box:
        yield box


def _index_host(settings: Settings) -> str:
    return urlsplit(settings.index.url or PYPI_SIMPLE_ENDPOINT).netloc


_FETCH = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=40).read().decode()[:200])"


@pytest.mark.docker
def test_listed_plain_server_is_reached(box: DockerBox, way: DockerEgress, mirror: str) -> None:
    result = box.run(["python3", "-c", _FETCH, f"http://{mirror}:8000/GPL-3"])
    assert "GNU GENERAL PUBLIC LICENSE" in result.text
    assert not way.denied(box.name)
    way.raise_for_faults(box.name)


@pytest.mark.docker
def test_forbidden_host_is_refused_and_recorded_for_this_box_only(
    box: DockerBox, way: DockerEgress, docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings
) -> None:
    for url in ("https://example.org/", "http://example.org/x", "http://169.254.169.254/latest/"):
        assert "403" in box.run(["python3", "-c", _FETCH, url]).text
    targets = [event.target for event in way.denied(box.name)]
    assert targets == ["example.org:443", "example.org:80", "169.254.169.254:80"]
    way.raise_for_faults(box.name)
    profile = profile_of(settings, LIMITS, owner=OWNER)
    with sandbox_container(docker_client, base_image.image, profile, "other", way) as other:
        assert way.denied(other.name) == []


@pytest.mark.docker
def test_name_that_leads_inside_is_refused(box: DockerBox, way: DockerEgress) -> None:
    box.run(["python3", "-c", _FETCH, "https://localhost/"], env={"NO_PROXY": "", "no_proxy": ""})
    assert [event.target for event in way.denied(box.name)] == ["localhost:443"]


@pytest.mark.docker
@pytest.mark.parametrize("host", ["no-such-host.invalid:443", "{mirror}:8001"])
def test_unreachable_index_is_a_fault_and_no_refusal(box: DockerBox, way: DockerEgress, mirror: str, host: str) -> None:
    host = host.format(mirror=mirror)
    scheme = "https" if host.endswith(":443") else "http"
    result = box.run(["python3", "-c", _FETCH, f"{scheme}://{host}/"])
    assert not result.ok
    assert [event.target for event in way.failed(box.name)] == [host]
    assert way.denied(box.name) == []
    with pytest.raises(IndexUnreachable, match=host.replace(".", r"\.")):
        way.raise_for_faults(box.name)


_AROUND = """
import os, socket
socket_path = "/opt/swe-miner/egress/open/socket"
out = []
for attempt in (
    lambda: os.unlink(socket_path),
    lambda: open("/opt/swe-miner/egress/bin/uv", "ab"),
    lambda: open("/opt/swe-miner/egress/x", "w"),
    lambda: socket.create_connection(("1.1.1.1", 443), timeout=2),
    lambda: socket.getaddrinfo("example.org", 443),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("8.8.8.8", 53)),
):
    try:
        attempt(); out.append("done")
    except OSError:
        out.append("no")
s = socket.socket(socket.AF_UNIX); s.connect(socket_path)
s.sendall(b"LANE some-other-box " + b"0" * 32 + b"\\nCONNECT example.org:443 HTTP/1.1\\r\\n\\r\\n")
print(out, s.recv(100))
"""


@pytest.mark.docker
def test_there_is_no_way_around_the_proxy(box: DockerBox) -> None:
    result = box.run(["python3", "-c", _AROUND])
    assert result.text == f"{['no'] * 6} b''\n"
    assert box.run(["ls", "/sys/class/net"]).text == "lo\n"


@pytest.mark.docker
def test_forwarder_cannot_be_stopped_by_the_code_in_the_box(box: DockerBox, mirror: str) -> None:
    box.run(["bash", "-c", "pkill -9 -f forward.py; kill -9 -1"])
    assert "GNU" in box.run(["python3", "-c", _FETCH, f"http://{mirror}:8000/GPL-3"]).text


@pytest.mark.docker
def test_many_connections_at_once_neither_break_nor_block_the_proxy(
    box: DockerBox, way: DockerEgress, mirror: str
) -> None:
    script = (
        "import re, socket\nopen_ones = []\n"
        "lane = re.search(rb'socket\\0([^\\0]+)', open('/proc/1/cmdline', 'rb').read())[1]\nfor _ in range(600):\n"
        "  s = socket.socket(socket.AF_UNIX); s.settimeout(1)\n"
        "  try: s.connect('/opt/swe-miner/egress/open/socket'); s.sendall(b'LANE ' + lane + b'\\nCONNECT ')\n"
        "  except OSError: break\n  open_ones.append(s)\nprint(len(open_ones) > 200)"
    )
    assert box.run(["python3", "-c", script]).text == "True\n"
    assert "GNU" in box.run(["python3", "-c", _FETCH, f"http://{mirror}:8000/GPL-3"]).text
    assert any("connections at once" in event.why for event in way.denied(box.name))


_LOOK = "tr '\\0' '\\n' < /proc/1/environ; cat /proc/*/cmdline; grep -rsa --exclude=uv . /opt/swe-miner /home"


@pytest.mark.docker
def test_proxies_of_the_operator_and_their_logins_are_in_no_box(
    docker_client: docker.DockerClient,
    base_image: BaseImage,
    settings: Settings,
    mirror: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    login = f"http://me:s3cret@{mirror}:8000"
    proxies = {"httpProxy": login, "httpsProxy": login, "noProxy": "planted.test"}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": {"default": proxies}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", login)
    monkeypatch.setenv("no_proxy", "")
    client = connect(settings.docker)
    assert client.api._proxy_configs.http == login  # the SDK has read what was planted
    profile = profile_of(settings, LIMITS, owner=OWNER)
    with closing(client), egress(client, base_image.image, ["index.test"], settings, owner=OWNER) as way:
        for network in (None, way):
            with sandbox_container(client, base_image.image, profile, "proxies", network) as box:
                seen = box.run(["sh", "-c", f"env; {_LOOK}"]).text
                assert "PYTHONHASHSEED" in seen
                assert "planted.test" not in seen
                assert "s3cret" not in seen
                assert base64.b64encode(b"me:s3cret").decode() not in seen
                if network is None:
                    assert "HTTP_PROXY" not in seen
                    continue
                box.run(["python3", "-c", _FETCH, "https://index.test/"])  # the mirror is no proxy, and says so
                assert "501" in way.failed(box.name)[0].why


@pytest.mark.docker
def test_proxy_that_died_is_a_fault(
    docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings
) -> None:
    with egress(docker_client, base_image.image, [], settings, owner=f"{OWNER}-dead") as way:
        for container in docker_client.containers.list(filters={"label": f"swe-miner={OWNER}-dead"}):
            container.kill()
        with pytest.raises(InfrastructureFault, match="the proxy ended"):
            way.raise_for_faults("any")
    left = {"filters": {"label": f"swe-miner={OWNER}-dead"}}
    assert docker_client.containers.list(all=True, **left) == []
    assert docker_client.volumes.list(**left) == []


@pytest.mark.docker
@pytest.mark.index
def test_uv_installs_from_the_index_with_the_machines_certificates(
    docker_client: docker.DockerClient, base_image: BaseImage, settings: Settings, box: DockerBox
) -> None:
    index = settings.index.url or PYPI_SIMPLE_ENDPOINT
    page = box.run(["python3", "-c", _FETCH.replace("[:200]", ""), f"{index.rstrip('/')}/iniconfig/"]).text
    hosts = {_index_host(settings), *re.findall(r'href="https://([^/"]+)/', page)}
    profile = profile_of(settings, LIMITS, owner=OWNER)
    with (
        egress(docker_client, base_image.image, hosts, settings, owner=OWNER) as way,
        sandbox_container(docker_client, base_image.image, profile, "uv", way) as box,
    ):
        made = box.run([UV, "venv", "/opt/env", "--allow-existing", "--python", "/usr/bin/python3"])
        assert made.ok, made.text
        script = [UV, "pip", "install", "--python", "/opt/env/bin/python", "--index-url", index, "iniconfig==2.0.0"]
        result = box.run(script, env={"UV_CACHE_DIR": "/cache"})
        assert result.ok, result.text
        assert box.run(["/opt/env/bin/python", "-c", "import iniconfig"]).ok


_OTHER_NAME = """
import os, socket, ssl, sys
host, _, port = sys.argv[1].partition(":")
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(f"CONNECT {host}:{port or 443} HTTP/1.1\\r\\n\\r\\n".encode())
print(s.recv(1000).split(b"\\r\\n")[0])
context = ssl._create_unverified_context()
try:
    context.wrap_socket(s, server_hostname=sys.argv[2]); print("connected")
except OSError as error:
    print("no")
"""


@pytest.mark.docker
@pytest.mark.index
def test_tunnel_to_the_index_cannot_be_used_for_another_name(
    box: DockerBox, way: DockerEgress, settings: Settings
) -> None:
    host = _index_host(settings)
    assert "connected" in box.run(["python3", "-c", _OTHER_NAME, host, host.partition(":")[0]]).text
    assert box.run(["python3", "-c", _OTHER_NAME, host, "example.org"]).text.endswith("no\n")
    assert any("example.org" in event.why for event in way.denied(box.name))
