"""What environments stand on: the base image, an interpreter, Debian packages; each a layer that others share.

The tool chain lies below the interpreter: it is the largest layer and the same for all, so the engine keeps it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from installers.debian_names import settled_names
from installers.ground_image import stand_on
from installers.interpreters import interpreter, interpreter_layer, note_of
from installers.pythons import Python, load_pythons
from installers.system_packages import package_layer, package_note, packages_of, system_packages
from installers.workshop import Workshop
from miner.core.errors import ConfigError, InfrastructureFault
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Recipe
from miner.core.settings import tool_chain_packages
from miner.sandbox.base_image import BaseImage


@dataclass(frozen=True)
class Ground:
    """The images that one recipe is installed on; `installers.ground_image.hold` brings one into the engine.

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


def ground(workshop: Workshop, memo: Memo, recipe: Recipe) -> Ground:
    """Return the ground of a recipe. Where all its facts are known, no engine is asked.

    Raises:
        InfrastructureFault: the interpreter, the archive of Debian packages or the engine is not to be had.
    """
    python = _python(recipe.python)
    found = interpreter(workshop, memo, python)
    tools = system_packages(workshop, memo, tool_chain_packages())
    if not tools.ok:  # it is ours: no recipe asks for it
        raise InfrastructureFault(
            f"the tool chain cannot be installed: {tools.payload['detail']}", reason=Reason.SYSTEM_ARCHIVE_UNREACHABLE
        )
    facts = [found, tools]
    if names := settled_names(recipe.system_packages):
        facts.append(system_packages(workshop, memo, names))
    if not facts[-1].ok:
        return Ground(workshop.base, workshop.base, python, tuple(facts))
    own = facts[2:]
    build = _image(workshop.base, python, found, [tools], own)
    task = build if recipe.compiled else _image(workshop.base, python, found, [], own)
    return Ground(task, build, python, tuple(facts))


def _python(version: str) -> Python:
    python = next((python for python in load_pythons() if python.version == version), None)
    if python is None:
        raise ConfigError(f"a recipe names Python {version}, which configs/pythons.toml does not list")
    return python


def _image(base: BaseImage, python: Python, found: Fact, below: Sequence[Fact], above: Sequence[Fact]) -> BaseImage:
    layers = [
        *((package_layer(fact), package_note(fact)) for fact in below),
        (interpreter_layer(found), note_of(python, found.payload["release"])),
        *((package_layer(fact), package_note(fact)) for fact in above),
    ]
    there = [(layer, note) for layer, note in layers if layer is not None]
    return stand_on(base, there, "".join(map(packages_of, (*below, *above))))
