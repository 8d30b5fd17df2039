"""Fixtures for tests of sources: an index on loopback, a client that does not wait, limits that are quickly reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from index_server import IndexServer

from miner.core.settings import ArchiveLimits, Index
from miner.crawlers.index import IndexClient


@pytest.fixture
def server() -> Iterator[IndexServer]:
    with IndexServer() as server:
        yield server


@pytest.fixture
def index_settings(server: IndexServer) -> Index:
    return Index(url=server.url, timeout_s=0.5, tries=3)


@pytest.fixture
def index(index_settings: Index, tmp_path: Path) -> IndexClient:
    return IndexClient(index_settings, tmp_path / "cache", wait_s=0.01)


@pytest.fixture
def limits() -> ArchiveLimits:
    return ArchiveLimits(max_bytes=1 << 20, max_files=200, max_file_bytes=1 << 18, max_ratio=200)
