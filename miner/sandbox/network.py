"""The way from a box to the package index, and nowhere else.

A box has no network. One proxy container for a run of the pipeline listens on a UNIX socket in a volume; a box that may
reach the index mounts this volume read-only and has a forwarder from 127.0.0.1 to the socket. So there is no address,
no name service and no other box in reach, whatever the firewall of the host looks like. A runtime that does not share
sockets between containers cannot do this (gVisor needs `--host-uds=open`). The volume also holds uv, put there once.

Each box has a lane of its own in the proxy, with a tag that only we can make. Where this machine's way out is a proxy,
ours goes through it; its login stays in the container of ours.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import docker
import structlog
import uv
from docker.errors import DockerException, NotFound
from docker.types import LogConfig, Mount

from miner.core.errors import ConfigError, IndexUnreachable, InfrastructureFault
from miner.core.index_access import ca_bundle
from miner.core.reasons import Reason
from miner.core.settings import Index, Limits, Settings
from miner.sandbox.engine import engine_faults, remove_container
from miner.sandbox.interface import LABEL, Box, Files, ProxyEvent
from miner.sandbox.profile import USER, hardening
from miner.sandbox.proxy.proxy import tag_of
from miner.sandbox.tars import tar_of
from miner.sandbox.upstream import routes_of

_FOLDER = "/opt/swe-miner"
_VOLUME_AT = f"{_FOLDER}/egress"
_SOCKET = f"{_VOLUME_AT}/open/socket"
UV = f"{_VOLUME_AT}/bin/uv"
"""Where a box with egress has the uv of this program."""
_CA = f"{_FOLDER}/ca.pem"
_CONFIG = f"{_FOLDER}/proxy/config.json"
_PORT = 3128
_READY_S = 60.0
_PROXY_LIMITS = Limits(memory_mb=512, cpus=1.0, pids=64, disk_mb=64, output_mb=1, timeout_s=60)
_PROGRAMS = Path(__file__).with_name("proxy")
_HTTPS_PORT = 443

_log = structlog.get_logger()


@contextmanager
def egress(
    client: docker.DockerClient, image: str, hosts: Iterable[str], settings: Settings, *, owner: str
) -> Iterator[DockerEgress]:
    """Start the proxy of a run, and remove it whatever happens. Threads may share it.

    Args:
        client: the engine.
        image: an image with python3 (3.11 or later): the base image.
        hosts: `host` or `host:port` (443 by default) of the index and of what it links to.
        settings: `index.extra_hosts` are allowed too; the CA bundle of the index is put into the boxes.
        owner: on whose behalf it exists.

    Raises:
        ConfigError: a host, the CA bundle, or the proxy that the environment names cannot be used.
    """
    allowed = sorted({pair_of(host) for host in (*hosts, *settings.index.extra_hosts)})
    certificates = _certificates(settings.index)
    name, key = f"swe-miner-egress-{secrets.token_hex(6)}", secrets.token_hex(32)
    config = {"allowed": allowed, "key": key, "routes": routes_of(allowed)}
    try:
        with engine_faults():
            client.volumes.create(name, labels={LABEL: owner})
            _start_proxy(client, image, name, config, owner, settings.docker.runtime)
        way = DockerEgress(client, name, key, certificates)
        way.await_ready()
        yield way
    finally:
        _remove(client, name)


def pair_of(host: str) -> str:
    """Return `host:port`, lower case, from a host with or without a port."""
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port or _HTTPS_PORT
    except ValueError as error:
        raise ConfigError(f"{host!r} is not a host or host:port: {error}") from error
    if not parts.hostname or parts.netloc != host or "@" in host:
        raise ConfigError(f"{host!r} is not a host or host:port")
    return f"{parts.hostname}:{port}"


def _start_proxy(
    client: docker.DockerClient, image: str, name: str, config: Mapping[str, Any], owner: str, runtime: str | None
) -> None:
    options = {
        **hardening(_PROXY_LIMITS, owner=owner, runtime=runtime),
        "user": USER,
        "entrypoint": [],
        "command": ["python3", "-m", "proxy.proxy", _SOCKET, _CONFIG],
        "network_mode": "bridge",
        "mounts": [Mount(_VOLUME_AT, name, type="volume")],
        "log_config": LogConfig(type=LogConfig.types.JSON, config={"max-size": "20m", "max-file": "2"}),
        "working_dir": _FOLDER,
    }
    client.containers.create(image, name=name, **options)
    program = {f"{_FOLDER}/proxy/{file.name}": (file.read_bytes(), 0o644) for file in _PROGRAMS.glob("*.py")}
    client.api.put_archive(name, "/", tar_of(program, uid=0))
    client.api.put_archive(name, "/", tar_of({UV: (Path(uv.find_uv_bin()).read_bytes(), 0o755)}, uid=0))
    client.api.put_archive(name, "/", tar_of({_CONFIG: (json.dumps(config).encode(), 0o400)}, uid=1000))
    client.api.put_archive(name, "/", tar_of({f"{_VOLUME_AT}/open/": (b"", 0o755)}, uid=1000))
    client.api.start(name)


def _certificates(settings: Index) -> bytes | None:
    """The certificates that this machine trusts, where that is said; else the image's own are used."""
    named = ca_bundle(settings)
    if named is None:
        return None
    try:
        return named.read_bytes()
    except OSError as error:
        raise ConfigError(f"the CA bundle {named} cannot be read: {error.strerror}") from error


def _remove(client: docker.DockerClient, name: str) -> None:
    try:
        remove_container(client, name)
        with suppress(NotFound):
            client.api.remove_volume(name, force=True)
    except (DockerException, OSError) as error:
        _log.warning("the proxy could not be removed", name=name, error=str(error))


class DockerEgress:
    """The proxy of a run; made by `egress`."""

    def __init__(self, client: docker.DockerClient, name: str, key: str, certificates: bytes | None) -> None:
        self._client = client
        self._name = name
        self._key = key
        self._certificates = certificates

    @property
    def environment(self) -> dict[str, str]:
        """What the programs in a box need in their environment."""
        url = f"http://127.0.0.1:{_PORT}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        variables = {form: url for name in names for form in (name, name.lower())}
        if self._certificates is not None:
            variables |= dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"), _CA)
        return variables

    @property
    def files(self) -> Files:
        """What is put into a box before it starts; never part of an image."""
        files = {f"{_FOLDER}/forward.py": ((_PROGRAMS / "forward.py").read_bytes(), 0o644)}
        if self._certificates is not None:
            files[_CA] = (self._certificates, 0o644)
        return files

    def applied_to(self, options: Mapping[str, Any], *, lane: str) -> dict[str, Any]:
        """Return the options of a box with the socket, the environment, and the forwarder as its keeper."""
        return {
            **options,
            "command": ["python3", f"{_FOLDER}/forward.py", _SOCKET, f"{lane} {tag_of(self._key, lane)}", str(_PORT)],
            "environment": {**options["environment"], **self.environment},
            "mounts": [*options["mounts"], Mount(_VOLUME_AT, self._name, type="volume", read_only=True)],
        }

    def await_forwarder(self, box: Box) -> None:
        """Wait until a started box can reach the proxy."""
        result = box.run(["python3", f"{_FOLDER}/forward.py", str(_PORT)], workdir="/", timeout_s=_READY_S)
        if not result.ok:
            raise InfrastructureFault(f"no forwarder in {box.name}: {result.text}", reason=Reason.DOCKER_ERROR)

    def await_ready(self) -> None:
        """Wait until the proxy listens."""
        end = time.monotonic() + _READY_S
        while not any(entry.get("event") == "ready" for entry in self._entries()):
            self._raise_if_gone()
            if time.monotonic() > end:
                raise InfrastructureFault("the proxy does not start to listen", reason=Reason.DOCKER_ERROR)
            time.sleep(0.05)

    def denied(self, lane: str | None = None) -> list[ProxyEvent]:
        """Return the requests that were refused: evidence of a need for the network; of one box, or of all."""
        return self._events("denied", lane)

    def failed(self, lane: str | None = None) -> list[ProxyEvent]:
        """Return the allowed requests for which the index could not be reached."""
        return self._events("failed", lane)

    def raise_for_faults(self, lane: str) -> None:
        """Ask after a command in a box failed: was it the network?

        Raises:
            IndexUnreachable: an allowed host could not be reached for this box.
            InfrastructureFault: the proxy itself is gone.
        """
        self._raise_if_gone()
        if failed := self.failed(lane):
            raise IndexUnreachable(f"{failed[-1].target} could not be reached: {failed[-1].why}")

    def _raise_if_gone(self) -> None:
        with engine_faults():
            state = self._client.api.inspect_container(self._name)["State"]
            if not state["Running"]:
                log = self._client.api.logs(self._name, tail=20).decode("utf-8", "replace")
                raise InfrastructureFault(
                    f"the proxy ended, exit code {state['ExitCode']}: {log}", reason=Reason.DOCKER_ERROR
                )

    def _events(self, event: Literal["denied", "failed"], lane: str | None) -> list[ProxyEvent]:
        return [
            ProxyEvent(event, entry["lane"], entry["target"], entry["why"])
            for entry in self._entries()
            if entry.get("event") == event and lane in (None, entry["lane"])
        ]

    def _entries(self) -> list[dict[str, str]]:
        with engine_faults():
            lines = self._client.api.logs(self._name, stderr=False).splitlines()
        return [json.loads(line) for line in lines if line.startswith(b"{")]
