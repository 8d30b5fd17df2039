"""Layers that only the engine has: as old and new engines save them."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import tarfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import pytest

from miner.core.errors import InfrastructureFault
from miner.core.records import Layer
from miner.sandbox.base_image import BaseImage
from miner.sandbox.image_archive import ImageConfig, LayerSource, TarEntry, deterministic_tar
from miner.sandbox.image_load import load_image, needs_all_layers
from miner.sandbox.image_save import save_layers


def plain_layer(text: str) -> tuple[str, bytes]:
    out = io.BytesIO()
    made = deterministic_tar([TarEntry("file", "file", content=text.encode())], out)
    return made.diff_id, out.getvalue()


def engine_that_saves(files: Mapping[str, bytes]) -> Any:
    """Stand in for an engine of another version: what it says is fixed, and read as from a real one."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    image = SimpleNamespace(save=lambda chunk_size: iter([out.getvalue()]))
    return SimpleNamespace(images=SimpleNamespace(get=lambda _: image))


def config_of(*diff_ids: str) -> bytes:
    return json.dumps({"rootfs": {"type": "layers", "diff_ids": diff_ids}}).encode()


def blob(data: bytes) -> str:
    return f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"


def test_compressed_layers_of_a_new_engine_become_plain_and_other_platforms_are_passed_over(tmp_path: Path) -> None:
    (one, first), (two, second) = plain_layer("one"), plain_layer("two")
    packed, config, other = gzip.compress(first), config_of(one, two), config_of(two)
    manifest = [
        {"Config": blob(other), "Layers": [blob(second)]},
        {"Config": blob(config), "Layers": [blob(packed), blob(second)]},
    ]
    files = {blob(data): data for data in (packed, second, config, other)}
    engine = engine_that_saves({**files, "manifest.json": json.dumps(manifest).encode()})
    save_layers(engine, "x", [one, two], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        f"{one.removeprefix('sha256:')}.tar": first,
        f"{two.removeprefix('sha256:')}.tar": second,
    }
    save_layers(engine_that_saves({}), "x", [one, two], tmp_path)  # known: nothing is asked of the engine


@pytest.mark.parametrize("wrong", ["bytes", "image", "member", "manifest"])
def test_archive_that_is_not_the_image_is_a_fault_and_leaves_nothing(tmp_path: Path, wrong: str) -> None:
    one, first = plain_layer("one")
    config = config_of(one if wrong != "image" else "sha256:0")
    files = {
        "c.json": config,
        "l/layer.tar": first if wrong != "bytes" else b"other",
        "manifest.json": json.dumps([{"Config": "c.json", "Layers": ["l/layer.tar"]}]).encode(),
    }
    gone = {"member": "l/layer.tar", "manifest": "manifest.json"}.get(wrong, "")
    engine = engine_that_saves({name: data for name, data in files.items() if name != gone})
    with pytest.raises(InfrastructureFault, match="the engine saved"):
        save_layers(engine, "x", [one], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_storage_that_names_images_by_their_manifest_wants_all_layers() -> None:
    assert needs_all_layers({"Id": "sha256:1", "Descriptor": {"digest": "sha256:1"}})
    assert not needs_all_layers({"Id": "sha256:1"})


@pytest.fixture
def tag(docker_client: docker.DockerClient) -> Iterator[str]:
    name = f"swe-miner/test-save:{uuid.uuid4().hex}"
    yield name
    for tag in (name, f"{name}-on-top"):
        with contextlib.suppress(docker.errors.ImageNotFound):
            docker_client.images.remove(tag)


@pytest.mark.docker
def test_layers_of_an_image_come_back_from_the_engine_and_serve_for_images_on_top(
    docker_client: docker.DockerClient, tag: str, tmp_path: Path
) -> None:
    diff_id, data = plain_layer(uuid.uuid4().hex)
    config = ImageConfig(architecture=docker_client.version()["Arch"], created=0, diff_ids=(diff_id,), notes=("test",))
    source = LayerSource(Layer(diff_id=diff_id, size=len(data)), lambda: io.BytesIO(data))
    load_image(docker_client, config, [source], tag, tmp_path)
    save_layers(docker_client, tag, [diff_id], tmp_path)
    base = BaseImage(
        image=tag, digest=config.image_id, config=config, layers=(Layer(diff_id=diff_id, size=0),), packages=""
    )
    [found] = base.sources(tmp_path)
    assert found.open is not None
    with found.open() as stream:
        assert stream.read() == data
    top_id, top = plain_layer(uuid.uuid4().hex)
    on_top = LayerSource(Layer(diff_id=top_id, size=len(top)), lambda: io.BytesIO(top))
    load_image(docker_client, config.with_layer(top_id, "top"), [found, on_top], f"{tag}-on-top", tmp_path)
