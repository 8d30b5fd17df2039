"""What builds in boxes have in common: the environment that they are given, and what their failures say."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from installers.layer import TIME, rooted, unpacked
from installers.workshop import Workshop
from miner.core.records import Layer
from miner.sandbox.container import DockerBox
from miner.sandbox.image_archive import TarEntry, deterministic_tar
from miner.sandbox.interface import ExecResult

BUILD = "/opt/build"
PATH = f"{BUILD}/bin:/opt/env/bin:/usr/local/bin:/usr/bin:/bin"

_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|nodename nor servname|Could not resolve host"
    r"|getaddrinfo failed|\[Errno 111\] Connection refused|Network is unreachable|urlopen error|URLError"
    r"|Failed to establish a new connection|NewConnectionError|dns error|Could not find suitable distribution"
    r"|No matching distribution found|No local packages or working download links found|error sending request"
    r"|failed to download from|unable to access 'https?://",
    re.IGNORECASE,
)


def build_variables(env: Mapping[str, str], *, online: bool) -> dict[str, str]:
    """Return the variables of a build: one time for all that it writes, and the tools of `/opt/build` first.

    Args:
        env: the project's own.
        online: whether the package index is in reach; where it is not, a pip that is started does not wait for it.
    """
    offline = {} if online else {"PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    return {
        **offline,
        "PATH": PATH,
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SOURCE_DATE_EPOCH": str(TIME),
        **env,
    }


def wants_network(result: ExecResult) -> bool:
    """Whether a build without network failed because it has none, as far as what it printed says so."""
    return result.limit is None and not result.ok and _NETWORK.search(result.text) is not None


def put_layer(workshop: Workshop, box: DockerBox, layer: Layer) -> None:
    """Unpack a stored layer in a box."""
    with tempfile.TemporaryDirectory(dir=workshop.scratch) as folder:
        tar = unpacked(layer, workshop.blobs, Path(folder))
        with tar.open("rb") as stream:
            box.put_tar("/", stream)


def put_entries(workshop: Workshop, box: DockerBox, entries: Iterable[TarEntry]) -> None:
    """Unpack entries in a box, with the time that all files of layers have."""
    with tempfile.TemporaryFile(dir=workshop.scratch) as file:
        deterministic_tar(rooted(entries), file, mtime=TIME)
        file.seek(0)
        box.put_tar("/", file)
