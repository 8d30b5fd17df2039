"""The source that the settings name, with what it works with."""

from __future__ import annotations

from typing import Any

from miner.core.blobs import BlobStore
from miner.core.settings import Settings
from miner.crawlers.index import IndexClient
from miner.crawlers.interface import Source
from miner.crawlers.pypi import PypiSource


def open_source(settings: Settings, index: IndexClient, blobs: BlobStore) -> Source[Any]:
    """Return the source of a run."""
    return PypiSource(settings.pairs, index, blobs, settings.paths.work / "repos", settings.measure.archive)
