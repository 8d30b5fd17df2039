"""What all steps of one recipe's installation have in common: the ground that they run on, and the index's date."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import Field

from installers.workshop import Workshop, uv_version
from miner.core.hashing import hash_of
from miner.core.records import Record

if TYPE_CHECKING:
    from installers.ground import Ground


class StepRequest(Record):
    """What every step depends on.

    Attributes:
        python: "3.11".
        executable: the interpreter in the images of the ground.
        cutoff: the package index is taken as of then.
        exempt: packages with a later cut-off of their own; None for none at all.
        base: digest of the image that tasks stand on.
        build: digest of the image with the tool chain, where packages are built from source.
        uv: version of uv.
        runtime: the engine's runtime, where it is not the default one.
    """

    python: str
    executable: str
    cutoff: datetime
    exempt: dict[str, datetime | None] = Field(default_factory=dict)
    base: str
    build: str
    uv: str
    runtime: str | None = None

    @property
    def common(self) -> dict[str, Any]:
        """The fields that the request of another step on the same ground begins with."""
        return {name: getattr(self, name) for name in StepRequest.model_fields}


def common(
    workshop: Workshop, ground: Ground, cutoff: datetime, exempt: Mapping[str, datetime | None]
) -> dict[str, Any]:
    """Return the fields that every request begins with."""
    return {
        "python": ground.python.version,
        "executable": ground.python.executable,
        "cutoff": cutoff,
        "exempt": dict(exempt),
        "base": ground.task.digest,
        "build": ground.build.digest,
        "uv": uv_version(),
        "runtime": workshop.settings.docker.runtime,
    }


def subject_of(prefix: str, inputs: Record) -> str:
    """Return the subject of a fact that several candidates can share."""
    return f"{prefix}-{hash_of(inputs)[:16]}"
