"""The workshop of the tests that install in real containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from bench import OWNER, small
from docker.errors import ImageNotFound

from installers.image import remove_image
from installers.workshop import Room, Workshop
from miner.core.blobs import BlobStore
from miner.core.settings import Settings
from miner.crawlers.index import IndexClient, index_hosts
from miner.sandbox import janitor
from miner.sandbox.base_image import BaseImage
from miner.sandbox.network import egress


@pytest.fixture(scope="session")
def workshop(
    docker_client: docker.DockerClient,
    base_image: BaseImage,
    settings: Settings,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Workshop]:
    """A workshop with small bounds; what it makes in the engine is removed at the end."""
    folder = tmp_path_factory.mktemp("workshop")
    ours = small(settings)
    before, blobs = _tags(docker_client), BlobStore(str(folder / "blobs"))
    hosts = index_hosts(IndexClient(settings.index, folder / "downloads"), settings.index)
    with egress(docker_client, base_image.image, hosts, ours, owner=OWNER) as way:
        yield Workshop(
            settings=ours,
            base=base_image,
            blobs=blobs,
            owner=OWNER,
            scratch=_made(folder / "scratch"),
            base_cache=settings.paths.work / "base",
            room=lambda: Room(docker_client, way),
        )
    janitor.clean(docker_client, OWNER)
    for tag in _tags(docker_client) - before:
        if tag.startswith(("swe-miner/pypi__demo", "swe-miner/test-")) or _is_ours(docker_client, tag, blobs):
            remove_image(docker_client, tag)


def _is_ours(client: docker.DockerClient, tag: str, blobs: BlobStore) -> bool:
    """Whether an image of layers that candidates share has its topmost one from these tests."""
    if not tag.startswith(("swe-miner/environment:", "swe-miner/tree:")):
        return False
    try:
        layers = client.images.get(tag).attrs["RootFS"]["Layers"]
    except ImageNotFound:
        return False
    return blobs.has(layers[-1].removeprefix("sha256:"))


def _tags(client: docker.DockerClient) -> set[str]:
    return {tag for image in client.api.images() for tag in image["RepoTags"] or ()}


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
