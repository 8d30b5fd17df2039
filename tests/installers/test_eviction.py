"""The bound on the disk: what goes, what stays, and that a lost layer is no lost fact."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import docker
import pytest
from docker.errors import APIError
from hypothesis import given
from hypothesis import strategies as st

from installers.eviction import GB, Stock, Thing, evict, needed, plan, regained, take_stock
from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault
from miner.core.hashing import sha256_bytes
from miner.core.records import BuildMode, Environment, Fact, FactKey, Layer
from miner.core.settings import load_settings
from miner.sandbox.engine import connect
from miner.sandbox.image_archive import ImageConfig, LayerSource, TarEntry, deterministic_tar
from miner.sandbox.image_load import load_image
from miner.sandbox.profile import CACHE_VOLUME


def _thing(name: str, size: int, used: float) -> Thing:
    return Thing("blob", name, size, used)


def _names(things: tuple[Thing, ...]) -> list[str]:
    return [thing.name for thing in things]


def test_nothing_goes_while_the_budget_holds() -> None:
    stock = Stock((_thing("a", 50, 1.0), _thing("b", 50, 2.0)), {})
    assert plan(stock, 100) == ()


def test_what_was_not_used_for_longest_goes_first() -> None:
    stock = Stock((_thing("new", 40, 3.0), _thing("old", 40, 1.0), _thing("middle", 40, 2.0)), {})
    assert _names(plan(stock, 110)) == ["old"]
    assert _names(plan(stock, 90)) == ["old", "middle"]


def test_what_is_needed_or_in_use_stays() -> None:
    stock = Stock((_thing("needed", 40, 1.0), _thing("free", 40, 2.0), _thing("in use", 40, 9.0)), {})
    assert _names(plan(stock, 10, kept={"needed"}, since=9.0)) == ["free"]


def test_the_cache_of_uv_goes_last() -> None:
    cache = Thing("cache", "volume", 40, 0.0)
    assert _names(plan(Stock((cache, _thing("a", 40, 5.0)), {}), 60)) == ["a"]
    assert _names(plan(Stock((cache, _thing("a", 40, 5.0)), {}), 10)) == ["a", "volume"]


def test_a_layer_that_two_images_share_is_counted_once_and_freed_with_the_second() -> None:
    first = Thing("image", "first", 0, 1.0, frozenset({"shared", "one"}))
    second = Thing("image", "second", 0, 2.0, frozenset({"shared", "two"}))
    stock = Stock((first, second), {"shared": 100, "one": 5, "two": 5})
    assert stock.total == 110
    assert _names(plan(stock, 100)) == ["first", "second"]
    assert _names(plan(stock, 108)) == ["first", "second"]
    assert _names(plan(Stock((first, second), {"shared": 5, "one": 100, "two": 5}), 108)) == ["first"]


_STOCKS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 9)), max_size=12)


@given(_STOCKS, st.integers(1, 600), st.integers(0, 10))
def test_the_plan_frees_enough_or_all_that_may_go_and_never_what_is_in_use(
    items: list[tuple[int, int]], budget: int, since: int
) -> None:
    stock = Stock(tuple(_thing(str(n), size, float(used)) for n, (size, used) in enumerate(items)), {})
    going = plan(stock, budget, since=float(since))
    left = stock.total - sum(thing.size for thing in going)
    free = [thing for thing in stock.things if thing.used < since]
    assert all(thing.used < since for thing in going)
    assert stock.total <= budget or left <= budget * 0.8 or set(going) == set(free)
    assert not going or max(thing.used for thing in going) <= min((t.used for t in free if t not in going), default=10)


def _layer(blobs: BlobStore, data: bytes) -> Layer:
    blobs.put(data)
    return Layer(diff_id=f"sha256:{sha256_bytes(data)}", size=len(data))


def _fact(layer: Layer) -> Fact:
    key = FactKey(kind="install.env", subject="env-1", input_hash="1", producer="p", epoch=1)
    digest = layer.diff_id.removeprefix("sha256:")
    return Fact(key=key, observed_at=datetime.now(UTC), payload={"layer": layer.model_dump()}, blobs={"layer": digest})


class Engine:
    """An engine without images that refuses to say what takes its disk, a few times."""

    def __init__(self, *refusals: str) -> None:
        self.refusals = list(refusals)
        self.api = SimpleNamespace(images=list)

    def df(self) -> dict[str, object]:
        if self.refusals:
            raise APIError(self.refusals.pop(0))
        return {"Volumes": [{"Name": CACHE_VOLUME, "UsageData": {"Size": 7}}]}


def test_an_engine_that_answers_one_question_about_its_disk_at_a_time_is_asked_again(tmp_path: Path) -> None:
    busy = Engine("500: a disk usage operation is already running")
    assert [thing.size for thing in take_stock(busy, BlobStore(str(tmp_path)), {}).things] == [7]
    broken = Engine("500: no space left on device", "")
    with pytest.raises(InfrastructureFault):
        take_stock(broken, BlobStore(str(tmp_path)), {})
    assert len(broken.refusals) == 1, "another error is not asked for again"


def test_layers_and_wheels_are_known_from_facts_and_needed_ones_from_environments(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path))
    layer = _layer(blobs, b"a layer")
    lock = _fact(layer).model_copy(update={"payload": {}, "blobs": {"lock": "0" * 64}})
    digest = layer.diff_id.removeprefix("sha256:")
    wheel = lock.model_copy(update={"blobs": {"wheel": "1" * 64}})
    assert regained([_fact(layer), lock, wheel]) == {digest: layer, "1" * 64: None}
    environment = Environment(
        image="i", base_digest="b", layers=(layer,), lock_sha256="0" * 64, mode=BuildMode.EDITABLE
    )
    assert needed([environment]) == {digest}


@pytest.mark.docker
class TestInTheEngine:
    @pytest.fixture
    def client(self) -> Iterator[docker.DockerClient]:
        client = connect(load_settings().docker)
        yield client
        client.close()

    @pytest.fixture
    def image(self, client: docker.DockerClient, tmp_path: Path) -> Iterator[tuple[str, Layer]]:
        """An image as the installers make them, of one layer that no other image has."""
        path = tmp_path / "layer.tar"
        with path.open("wb") as file:
            entry = TarEntry("opt/this", "file", 0o644, content=os.urandom(64), size=64)
            layer = deterministic_tar([entry], file, mtime=0)
        architecture = client.version()["Arch"]
        config = ImageConfig(architecture=architecture, created=0, diff_ids=(layer.diff_id,), notes=("test",))
        tag = f"swe-miner/test-eviction:{config.image_id.removeprefix('sha256:')[:12]}"
        load_image(client, config, [LayerSource(layer, lambda: path.open("rb"))], tag, tmp_path)
        yield tag, layer
        if any(tag in (one.tags or ()) for one in client.images.list()):
            client.images.remove(tag)

    def test_images_and_layers_are_counted_and_removed_oldest_first(
        self, client: docker.DockerClient, image: tuple[str, Layer], tmp_path: Path
    ) -> None:
        tag, layer = image
        blobs = BlobStore(str(tmp_path / "blobs"))
        old, new = _layer(blobs, os.urandom(5000)), _layer(blobs, os.urandom(5000))
        layers = {one.diff_id.removeprefix("sha256:"): one for one in (old, new)}
        digest = old.diff_id.removeprefix("sha256:")
        os.utime(tmp_path / "blobs" / digest[:2] / f"{digest}.zst", (1000, 1000))
        known = {**layers, layer.diff_id.removeprefix("sha256:"): layer}

        stock = take_stock(client, blobs, known)
        found = {thing.name: thing for thing in stock.things}
        assert found[tag].parts == {layer.diff_id}
        assert found[tag].used == 0.0, "its layer is among no blobs"
        assert stock.sizes[layer.diff_id] == layer.size

        done = evict(client, blobs, known, 1 / GB, since=2000.0)  # what is newer than the old layer is in use
        assert _names(done.removed) == [tag, digest]
        assert done.over
        assert not blobs.has(digest)
        assert blobs.has(new.diff_id.removeprefix("sha256:"))
        assert tag not in {name for one in client.images.list() for name in one.tags}

    def test_an_image_was_used_when_its_layers_were(
        self, client: docker.DockerClient, image: tuple[str, Layer], tmp_path: Path
    ) -> None:
        tag, layer = image
        blobs = BlobStore(str(tmp_path / "blobs"))
        blobs.put((tmp_path / "layer.tar").read_bytes())
        known = {layer.diff_id.removeprefix("sha256:"): layer}
        found = {thing.name: thing for thing in take_stock(client, blobs, known).things}
        assert abs(found[tag].used - time.time()) < 300
        assert evict(client, blobs, known, 1 / GB, since=2000.0).removed == ()
        assert tag in {name for one in client.images.list() for name in one.tags}
