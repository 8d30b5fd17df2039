"""Canaries: questions whose answers say whether a service is well, whatever a candidate met there (law 2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from enum import StrEnum

import docker

from installers.models.desk import off_because
from installers.models.listing import names_listed
from miner.core.errors import ForgeUnreachable, IndexUnreachable, InfrastructureFault
from miner.core.reasons import Reason
from miner.core.records import Fact
from miner.core.settings import Settings
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.tokens import tokens_from
from miner.crawlers.index import IndexClient
from miner.sandbox.engine import connect

_ANSWER_WITHIN_S = 10.0

Canary = Callable[[], None]
"""Returns where the service is well, and raises the fault of the infrastructure that it has where it is not."""


class Service(StrEnum):
    """What a run depends on beside this machine and its engine, which end a run at once when they are gone."""

    INDEX = "index"
    FORGE = "forge"
    REGISTRY = "registry"
    MODEL = "model"


_OF_FAULT = {
    Reason.INDEX_UNREACHABLE: Service.INDEX,
    Reason.INDEX_ERROR: Service.INDEX,
    Reason.FORGE_UNREACHABLE: Service.FORGE,
    Reason.FORGE_ERROR: Service.FORGE,
    Reason.MIRROR_FAILED: Service.FORGE,
    Reason.BASE_IMAGE_UNAVAILABLE: Service.REGISTRY,
    Reason.MODEL_UNREACHABLE: Service.MODEL,
    Reason.MODEL_ERROR: Service.MODEL,
    Reason.MODEL_LIMITED: Service.MODEL,
}
_OF_PRODUCER = {
    "installers.models": Service.MODEL,
    "installers.agent": Service.MODEL,
    "installers": Service.INDEX,
    "pypi": Service.INDEX,
}


def service_of_fault(error: InfrastructureFault) -> Service | None:
    """Return the service whose fault an error is, None where it is none of these."""
    return _OF_FAULT.get(error.reason)


def service_of_fact(fact: Fact) -> Service:
    """Return the service that a fact depended on: what is no installation and no release pair comes from a forge."""
    producer = fact.key.producer
    return _OF_PRODUCER.get(producer) or _OF_PRODUCER.get(producer.partition(".")[0], Service.FORGE)


def canaries(settings: Settings) -> Mapping[Service, Canary]:
    """Return the canaries of the services that a run over these settings depends on."""
    found = {Service.INDEX: _index(settings)}
    if settings.source == "github":
        found[Service.FORGE] = _forge(settings)
    if settings.docker.base_image is not None:
        found[Service.REGISTRY] = _registry(settings, settings.docker.base_image)
    if settings.endpoint.replay is None and not off_because(settings, os.environ):
        found[Service.MODEL] = _model(settings)
    return found


def _index(settings: Settings) -> Canary:
    """Ask for the page of a project that surely exists."""
    name, within = settings.index.canary, min(settings.index.timeout_s, _ANSWER_WITHIN_S)
    once = settings.index.model_copy(update={"tries": 1, "timeout_s": within})
    client = IndexClient(once, settings.paths.work / "downloads")

    def ask() -> None:
        if not client.release_files(name).known:
            message = f"the package index says that it knows no project {name!r}"
            raise IndexUnreachable(message, reason=Reason.INDEX_ERROR)

    return ask


def _forge(settings: Settings) -> Canary:
    """Ask for the rate limit, which costs nothing (https://docs.github.com/en/rest/rate-limit/rate-limit)."""
    within = min(settings.github.timeout_s, _ANSWER_WITHIN_S)
    once = settings.github.model_copy(update={"tries": 1, "timeout_s": within, "max_wait_s": 0.0})

    def ask() -> None:
        status = ForgeClient(once, tokens=tokens_from(once, os.environ)).get("/rate_limit").status
        if status != 200:
            raise ForgeUnreachable(f"the forge answers its own rate limit with status {status}")

    return ask


def _model(settings: Settings) -> Canary:
    """Ask the endpoint for its list of models, which costs nothing; which names are in it says nothing (aliases)."""
    within = min(settings.endpoint.timeout_s, _ANSWER_WITHIN_S)

    def ask() -> None:
        names_listed(settings.endpoint, os.environ, within)

    return ask


def _registry(settings: Settings, image: str) -> Canary:
    """Have the engine ask the registry for the manifest of the base image."""

    def ask() -> None:
        try:
            with closing(connect(settings.docker)) as client:
                client.images.get_registry_data(image)
        except docker.errors.DockerException as error:
            message = f"the registry does not give {image}: {error}"
            raise InfrastructureFault(message, reason=Reason.BASE_IMAGE_UNAVAILABLE) from error

    return ask
