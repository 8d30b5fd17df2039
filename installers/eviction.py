"""A bound on the disk: what can be had again goes, what was not used for longest first; facts, locks and logs stay.

Counted are the layers and wheels among the blobs, our images in the engine, and the volume with uv's cache. A layer is
built again from its lock, an image is made again from its layers, what uv has cached is downloaded again. What a
running candidate uses stays, and so does what the caller names: the layers of what was accepted, for a release.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import docker
import tenacity
from docker.errors import APIError, NotFound

from installers.image import REPOSITORY, remove_image
from miner.core.blobs import BlobStore
from miner.core.records import Environment, Fact, Layer
from miner.sandbox.engine import engine_faults
from miner.sandbox.profile import CACHE_VOLUME

GB = 1_000_000_000
_DOWN_TO = 0.8  # of the budget: so that it is not looked through again at once
_BUSY = "disk usage operation is already running"
_ASK, _ASK_EVERY_S = 60, 0.5
AGAIN = frozenset({"layer", "wheel"})
"""Names of blobs in facts that can be had again from other facts."""


@dataclass(frozen=True)
class Thing:
    """Something on the disk that can be had again.

    Attributes:
        name: a blob's digest, an image's tag, a volume.
        size: its bytes; those of an image are of its `parts`.
        used: when it was last used, seconds since 1970.
        parts: the layers of an image, by diff id.
    """

    kind: Literal["image", "blob", "cache"]
    name: str
    size: int
    used: float
    parts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Stock:
    """Everything of that kind.

    Attributes:
        sizes: diff id of a layer -> its bytes; images that share a layer hold it once.
    """

    things: tuple[Thing, ...]
    sizes: Mapping[str, int]

    @property
    def total(self) -> int:
        """All bytes."""
        parts = {part for thing in self.things for part in thing.parts}
        return sum(thing.size for thing in self.things) + sum(self.sizes.get(part, 0) for part in parts)


@dataclass(frozen=True)
class Evicted:
    """What was removed.

    Attributes:
        left: bytes that are still there.
        over: whether that is more than the budget: all else is in use or needed.
    """

    removed: tuple[Thing, ...]
    left: int
    over: bool


def regained(facts: Iterable[Fact]) -> dict[str, Layer | None]:
    """Return the blobs of facts that can be had again, by digest: layers, and wheels, which are none."""
    found: dict[str, Layer | None] = {}
    for fact in facts:
        layers = [
            Layer.model_validate(layer)
            for layer in (fact.payload.get("layer"), *fact.payload.get("layers", ()))
            if layer
        ]
        for name in sorted(AGAIN & fact.blobs.keys()):
            digest = fact.blobs[name]
            found[digest] = next((layer for layer in layers if _digest(layer.diff_id) == digest), None)
    return found


def needed(environments: Iterable[Environment]) -> frozenset[str]:
    """Return the digests of the layers of environments."""
    return frozenset(_digest(layer.diff_id) for environment in environments for layer in environment.layers)


def take_stock(client: docker.DockerClient, blobs: BlobStore, known: Mapping[str, Layer | None]) -> Stock:
    """Return what is there.

    Args:
        client: the engine.
        blobs: where they are kept; what is not on this machine's disk does not count.
        known: blobs that can be had again (`regained`).
    """
    kept = {digest: found for digest in known if (found := blobs.on_disk(digest)) is not None}
    things = [Thing("blob", digest, size, used) for digest, (size, used) in kept.items()]
    layers = {digest: layer for digest, layer in known.items() if layer is not None}
    with engine_faults():
        used = {layer.diff_id: kept[digest][1] if digest in kept else 0.0 for digest, layer in layers.items()}
        things += _images(client, used)
        things += _cache(client)
    return Stock(tuple(things), {layer.diff_id: layer.size for layer in layers.values()})


def plan(stock: Stock, budget: int, *, kept: Collection[str] = (), since: float = float("inf")) -> tuple[Thing, ...]:
    """Return what is to go so that a stock fits into its budget: nothing where it does.

    Args:
        stock: what is there.
        budget: bytes.
        kept: digests of layers that stay.
        since: what was used then or later stays.
    """
    left = stock.total
    if left <= budget:
        return ()
    holders = Counter(part for thing in stock.things for part in thing.parts)
    going: list[Thing] = []
    for thing in sorted(stock.things, key=lambda one: (one.kind == "cache", one.used, one.name)):
        if left <= budget * _DOWN_TO:
            break
        if thing.name in kept or thing.used >= since:
            continue
        going.append(thing)
        holders.subtract(thing.parts)
        left -= thing.size + sum(stock.sizes.get(part, 0) for part in thing.parts if not holders[part])
    return tuple(going)


def evict(
    client: docker.DockerClient,
    blobs: BlobStore,
    known: Mapping[str, Layer | None],
    budget_gb: float,
    *,
    kept: Collection[str] = (),
    since: float = float("inf"),
) -> Evicted:
    """Bring the stock below its budget.

    Args:
        client: the engine.
        blobs: where layers and wheels are kept.
        known: those of them that can be had again (`regained`).
        budget_gb: what there may be.
        kept: digests of layers that stay.
        since: what was used then or later stays: when the first of the running candidates began.

    Raises:
        InfrastructureFault: the engine is gone.
    """
    stock = take_stock(client, blobs, known)
    going = plan(stock, int(budget_gb * GB), kept=kept, since=since)
    removed = tuple(thing for thing in going if _remove(client, blobs, thing, since))
    gone = frozenset(thing.name for thing in removed)
    left = Stock(tuple(thing for thing in stock.things if thing.name not in gone), stock.sizes).total
    return Evicted(removed, left, left > budget_gb * GB)


def _images(client: docker.DockerClient, used: Mapping[str, float]) -> Sequence[Thing]:
    """Return the images that hold one of our layers, used when the last of these was: the engine notes no such time.

    Args:
        client: the engine.
        used: diff id of each known layer -> when it was last used, 0 where its blob is lost.
    """
    found = []
    for summary in client.api.images():
        tags = [tag for tag in summary.get("RepoTags") or () if tag.startswith(f"{REPOSITORY}/")]
        if not tags:
            continue
        with suppress(NotFound):  # somebody else has removed it
            parts = frozenset(client.images.get(summary["Id"]).attrs["RootFS"].get("Layers") or ())
            times = [used[part] for part in parts if part in used]
            found += [Thing("image", tag, 0, max(times), parts) for tag in tags if times]
    return found


def _cache(client: docker.DockerClient) -> Sequence[Thing]:
    """Return the volume with uv's cache, which is used all the time: it goes last, and only while nothing runs."""
    volumes = _usage(client)["Volumes"] or ()
    sizes = [one["UsageData"]["Size"] for one in volumes if one["Name"] == CACHE_VOLUME]
    return [Thing("cache", CACHE_VOLUME, size, time.time()) for size in sizes if size > 0]


def _usage(client: docker.DockerClient) -> dict[str, Any]:
    """Ask the engine what takes its disk; it answers one such question at a time, and refuses another one."""
    asking = tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda error: isinstance(error, APIError) and _BUSY in str(error)),
        wait=tenacity.wait_fixed(_ASK_EVERY_S),
        stop=tenacity.stop_after_attempt(_ASK),
        reraise=True,
    )
    found: dict[str, Any] = asking(client.df)
    return found


def _remove(client: docker.DockerClient, blobs: BlobStore, thing: Thing, since: float) -> bool:
    """Remove one thing and return whether it is gone: what is in use after all stays."""
    if thing.kind == "blob":
        found = blobs.on_disk(thing.name)
        if found is not None and found[1] >= since:
            return False
        blobs.remove(thing.name)
        return True
    if thing.kind == "image":
        remove_image(client, thing.name)
        return True
    with engine_faults():
        try:
            client.api.remove_volume(thing.name)
        except NotFound:
            return True
        except APIError as error:
            if error.response is None or error.response.status_code != 409:  # 409: a container still uses it
                raise
            return False
        return True


def _digest(diff_id: str) -> str:
    return diff_id.removeprefix("sha256:")
