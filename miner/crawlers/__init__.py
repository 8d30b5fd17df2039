"""Stage 1: sources of pull requests, and what is made of them: repositories, statements, links, patches."""

from typing import Any

from miner.core.errors import LedgerError
from miner.core.records import Fact
from miner.crawlers.git_source import GitSource
from miner.crawlers.github.source import GithubSource
from miner.crawlers.interface import Source
from miner.crawlers.pypi import PypiSource

SOURCES: dict[str, type[Source[Any]]] = {"pypi": PypiSource, "github": GithubSource, "git": GitSource}


def source_of(looked_up: Fact) -> type[Source[Any]]:
    """Return the source that a candidate comes from, by the producer of its first fact.

    Raises:
        LedgerError: none of this program's sources.
    """
    for source in SOURCES.values():
        if source.look_up_producer.name == looked_up.key.producer:
            return source
    raise LedgerError(f"{looked_up.key.subject} comes from a source that this program does not have")
