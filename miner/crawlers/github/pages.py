"""Raw answers, decoded: those that were read last are kept, since many pull requests are read from one page."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason

Node = Mapping[str, Any]
_KEPT = 16


class Decoded:
    """JSON values by the digest of their text, the last few; shared by all threads. Nobody changes what it returns."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._values: OrderedDict[str, Any] = OrderedDict()

    def read(self, digest: str, blobs: BlobStore) -> Any:
        """Return the value of a blob.

        Raises:
            InfrastructureFault: the blob is missing or damaged.
        """
        with self._lock:
            if digest in self._values:
                self._values.move_to_end(digest)
                return self._values[digest]
        value = decode(blobs.get(digest))
        with self._lock:
            self._values[digest] = value
            while len(self._values) > self._kept:
                self._values.popitem(last=False)
        return value


DECODED = Decoded()


def decode(raw: bytes) -> Any:
    """Return the value of a JSON text; a lone surrogate, which msgspec refuses, stands as it is."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return json.loads(raw)


def nodes(connection: Node | None) -> Iterator[Node]:
    """Yield what a list holds; what is null in it (nothing that this token may see) is left out."""
    for node in (connection or {}).get("nodes") or ():
        if node is not None:
            yield node


def listed(answer: Node) -> Node:
    """Return the list of pull requests that a page of the walk or of the search holds.

    Raises:
        InfrastructureFault: it holds none.
    """
    data = answer.get("data") or {}
    found = data.get("search") or (data.get("repository") or {}).get("pullRequests")
    if not isinstance(found, Mapping):
        raise nonsense("a page of pull requests holds no list")
    return found


def lists_of(node: Node, names: Iterable[str]) -> Iterator[tuple[str, Node]]:
    """Yield (name, list) for those lists that a node was asked for."""
    for name in names:
        if isinstance(found := node.get(name), Mapping):
            yield name, found


def nonsense(what: str) -> InfrastructureFault:
    """Return the fault of an answer that does not say what its document asks for."""
    return InfrastructureFault(f"the forge's answer makes no sense: {what}", reason=Reason.FORGE_ERROR)
