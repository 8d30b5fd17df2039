"""Whole runs in real containers, made once and looked at by many tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import certifi
import docker
import pytest
from demo_run import CONFIG, Demo, created_containers
from whole_run import CHECKOUT, SMALL_OPTIONS, Place, place

from installers.image import remove_image
from miner.core.settings import Settings
from miner.sandbox.base_image import BaseImage

PLANTED_IN_THE_BUNDLE = b"# planted by a test: a line of this machine's bundle\n"


@pytest.fixture(scope="session")
def new_place(
    docker_client: docker.DockerClient,
    base_image: BaseImage,
    settings: Settings,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Place]]:
    """Makes places; each is a machine of its own, but for the engine and the base image.

    At the end the images go that the runs have brought into the engine, but none that was there before.
    """
    made: list[Place] = []
    before = {tag for image in docker_client.images.list() for tag in image.tags}

    def make(name: str, *options: str) -> Place:
        made.append(place(tmp_path_factory.mktemp(name), settings.paths.work / "base", *options))
        return made[-1]

    yield make
    layers = {layer for one in made for layer in one.layers()}
    for image in docker_client.images.list():
        if layers.intersection(image.attrs["RootFS"].get("Layers") or ()):
            for tag in set(image.tags) - before:
                remove_image(docker_client, tag)


@pytest.fixture(scope="session")
def undisturbed(new_place: Callable[..., Place]) -> Place:
    """A run over the small pairs with nothing in its way."""
    made = new_place("undisturbed", *SMALL_OPTIONS)
    made.run("run")
    return made


@pytest.fixture(scope="session")
def demo(
    new_place: Callable[..., Place],
    docker_client: docker.DockerClient,
    settings: Settings,
    tmp_path_factory: pytest.TempPathFactory,
) -> Demo:
    """The demo, run once as `make mine` runs it, with marks planted where this machine's secrets would be."""
    trusted = settings.index.ca_bundle or os.environ.get("SSL_CERT_FILE") or certifi.where()
    bundle = tmp_path_factory.mktemp("machine") / "planted-bundle.pem"
    bundle.write_bytes(Path(trusted).read_bytes() + PLANTED_IN_THE_BUNDLE)
    host = "planted-mirror.invalid"
    machine = ("-c", f"index.ca_bundle={bundle}", "-c", f'index.extra_hosts=["{host}"]')
    made = new_place("demo", "--config", str(CONFIG), *machine)
    ledger = made.ledger()
    ledger.close()
    with created_containers(docker_client, made.owner) as created:
        text = made.run("run", timeout=1200).stdout
    marks = {
        "the CA bundle": PLANTED_IN_THE_BUNDLE.strip(),
        "a host of the index": host.encode(),
        "the folder of the run": str(made.folder).encode(),
        "the path of the bundle": str(bundle).encode(),
        "the program's environment": sys.prefix.encode(),
        "the checkout": str(CHECKOUT / "miner").encode(),
        "the id of the ledger": ledger.id.encode(),
        "the owner of its boxes": made.owner.encode(),
    }
    return Demo(made, made.owner, tuple(created), text, marks)
