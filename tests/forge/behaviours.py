"""What the forge does and how that is known: `behaviours.toml`, read."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FILE = Path(__file__).with_name("behaviours.toml")


@dataclass(frozen=True)
class Behaviour:
    """A row; `page` is where it is documented or was recorded, `check` what looks at an assumption."""

    name: str
    says: str
    kind: Literal["documented", "recorded", "network", "assumed"]
    page: str = ""
    check: str = ""


def behaviours() -> list[Behaviour]:
    """Return all rows."""
    return [Behaviour(**row) for row in tomllib.loads(FILE.read_text(encoding="utf-8"))["behaviour"]]
