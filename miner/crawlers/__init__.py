"""Stage 1: sources of pull requests, and what is made of them: repositories, statements, links, patches."""

from miner.crawlers.pypi import PypiSource

SOURCES = {"pypi": PypiSource}
