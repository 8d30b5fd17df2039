"""How many examples property tests try, and fixtures for tests in real containers (those marked `docker`)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import docker
import hypothesis
import pytest

from miner.core.settings import Settings, load_settings
from miner.sandbox.base_image import BaseImage, ensure_base_image
from miner.sandbox.engine import connect, remove_container
from miner.sandbox.interface import LABEL

# `make test-all` tries more; no deadline: machines are noisy.
hypothesis.settings.register_profile("quick", max_examples=40, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=400, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def settings() -> Settings:
    """The shipped settings, with what the environment says about this machine's engine and index."""
    return load_settings()


@pytest.fixture(scope="session")
def docker_client(settings: Settings) -> Iterator[docker.DockerClient]:
    """A client of the engine. No engine is a failure, not a skip: `make docker` brings one."""
    client = connect(settings.docker)
    _remove_dead_boxes(client)
    yield client
    client.close()


def _remove_dead_boxes(client: docker.DockerClient) -> None:
    """Remove boxes of tests that were killed together with their engine: they hold images that tests remove."""
    for box in client.api.containers(all=True, filters={"label": LABEL, "status": "exited"}):
        if box["Labels"][LABEL].startswith("test-"):
            remove_container(client, box["Id"])


@pytest.fixture(scope="session")
def base_image(docker_client: docker.DockerClient, settings: Settings) -> BaseImage:
    """The base image, built at most once and shared with `make mine`."""
    return ensure_base_image(docker_client, settings.docker, settings.paths.work / "base")
