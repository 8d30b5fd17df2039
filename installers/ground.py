"""What environments stand on: the base image, an interpreter, Debian packages; each a layer that others share."""

from __future__ import annotations

from dataclasses import dataclass

from installers.pythons import Python
from miner.core.records import Fact
from miner.sandbox.base_image import BaseImage


@dataclass(frozen=True)
class Ground:
    """The images that one recipe is installed on.

    Attributes:
        task: what the environment's image stands on: base, interpreter, the recipe's Debian packages, and the tool
            chain where the project is compiled.
        build: the same with the tool chain always: where packages are built from source.
        python: the interpreter in both.
        facts: about the interpreter and the Debian packages, in the order in which they were used; where the last one
            is negative, there is no ground and the images are the base image.
    """

    task: BaseImage
    build: BaseImage
    python: Python
    facts: tuple[Fact, ...]
