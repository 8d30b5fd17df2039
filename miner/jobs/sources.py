"""The source that the settings name, with what it works with."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from installers.models.billing import prices_of
from installers.models.desk import model_names, off_because
from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError
from miner.core.ledger import Ledger
from miner.core.settings import Settings
from miner.crawlers.git_source import GitSource
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.source import GithubSource
from miner.crawlers.github.tokens import tokens_from
from miner.crawlers.index import IndexClient
from miner.crawlers.interface import Source
from miner.crawlers.pypi import PypiSource
from miner.crawlers.snapshot import SnapshotSource
from miner.crawlers.snapshot_manifest import read_manifest


@dataclass(frozen=True)
class Means:
    """What a source may work with.

    Attributes:
        forge: asks the forge; it needs no token before it is asked something.
        mirrors: folder of git mirrors, shared by all sources.
        ledger: of the run, which holds it when the source is asked for something.
    """

    settings: Settings
    index: IndexClient
    forge: ForgeClient
    blobs: BlobStore
    mirrors: Path
    stopped: threading.Event
    ledger: Ledger


def settled(settings: Settings) -> Settings:
    """Return the settings as a run takes them: a replay mines what was mined for its snapshot, if they say no other.

    Raises:
        ConfigError: they name no snapshot, or another month than it has.
        SnapshotError: it is damaged, or newer than this program.
    """
    mine = settings.mine
    if settings.source != "snapshot":
        return settings
    if mine.snapshot is None:
        raise ConfigError("mine: the source `snapshot` needs `snapshot`", next_step="-c mine.snapshot=FOLDER")
    said = read_manifest(mine.snapshot)
    if mine.month not in (None, said.month):
        raise ConfigError(f"mine.month: the snapshot is of {said.month}", next_step=f"--month {said.month}")
    taken = {name: value for name, value in said.mine if name not in mine.model_fields_set}
    return settings.model_copy(update={"mine": mine.model_copy(update={**taken, "month": said.month})})


def with_models(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Return the settings with the models that the environment names, where any is asked: a run notes which ones.

    Raises:
        ConfigError: a model has no price.
    """
    if off_because(settings, environ):
        return settings
    names = model_names(settings, environ)
    if settings.endpoint.replay is None:
        prices_of(names, settings.prices)
    return _with_order(settings, names)


def with_noted_models(settings: Settings, ledger: Ledger) -> Settings:
    """Return the settings with the models that the newest run over the same month asked, where they name none.

    What these replied is known: the month can be repeated without an endpoint, and is the same.
    """
    if settings.measure.model.order:
        return settings
    for run in reversed(ledger.runs()):
        said = json.loads(run.settings)
        order = said["measure"].get("model", {}).get("order")
        if order and said["mine"].get("month") == settings.mine.month:
            return _with_order(settings, order)
    return settings


def _with_order(settings: Settings, names: Iterable[str]) -> Settings:
    model = settings.measure.model.model_copy(update={"order": tuple(names)})
    return settings.model_copy(update={"measure": settings.measure.model_copy(update={"model": model})})


def means_of(
    settings: Settings, index: IndexClient, blobs: BlobStore, stopped: threading.Event, ledger: Ledger
) -> Means:
    """Return what the source of a run works with; tokens are read from the environment here and nowhere else."""
    tokens = tokens_from(settings.github, os.environ)
    forge = ForgeClient(settings.github, tokens=tokens, cap_points=settings.run.max_points, stopped=stopped)
    return Means(settings, index, forge, blobs, settings.paths.work / "mirrors", stopped, ledger)


def open_source(means: Means) -> Source[Any]:
    """Return the source of a run.

    Raises:
        ConfigError: the settings lack something that it needs.
    """
    return _OPENERS[means.settings.source](means)


def _pypi(means: Means) -> Source[Any]:
    settings = means.settings
    repos = settings.paths.work / "repos"
    return PypiSource(settings.pairs, means.index, means.blobs, repos, settings.measure.archive)


def _github(means: Means) -> Source[Any]:
    return GithubSource(means.settings, means.forge, means.blobs, means.mirrors, stopped=means.stopped)


def _git(means: Means) -> Source[Any]:
    mine = means.settings.mine
    if mine.git_pulls is None or mine.git_mirrors is None:
        raise ConfigError("mine: the source `git` needs `git_pulls` and `git_mirrors`")
    return GitSource(
        mine.git_pulls,
        mine.git_mirrors,
        means.blobs,
        means.mirrors,
        may_lack_files=mine.git_incomplete,
        month=mine.month,
        timeout_s=means.settings.github.git_timeout_s,
        stopped=means.stopped,
    )


def _snapshot(means: Means) -> Source[Any]:
    settings, folder = means.settings, means.settings.mine.snapshot
    if folder is None:
        raise ConfigError("mine: the source `snapshot` needs `snapshot`", next_step="-c mine.snapshot=FOLDER")
    return SnapshotSource(settings, folder, means.ledger, means.blobs, means.mirrors, stopped=means.stopped)


_OPENERS: dict[str, Callable[[Means], Source[Any]]] = {
    "pypi": _pypi,
    "github": _github,
    "git": _git,
    "snapshot": _snapshot,
}
