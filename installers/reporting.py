"""The oldest pytest that our reporter runs on, for trees that are older than it."""

from __future__ import annotations

from datetime import date

from packaging.version import Version

FLOOR = "pytest>=4.6,<5"
"""The first pytest with all hooks that the reporter needs; the last ones that run on Pythons of its time."""
FLOOR_OF_3_10 = "pytest>=6.2.5,<7"
"""The same for Python 3.10 and later, on whose syntax trees earlier ones break."""
FLOOR_RELEASED = date(2019, 6, 1)
NEEDS = (
    "pytest",
    "pluggy",
    "py",
    "attrs",
    "more-itertools",
    "importlib-metadata",
    "zipp",
    "packaging",
    "pyparsing",
    "wcwidth",
    "typing-extensions",
)
"""What it asks for, itself included: taken without the cut-off, where this lies before its release."""


def floor_for(python: str) -> str:
    """Return the requirement of the oldest pytest that can report on a Python ("3.8")."""
    return FLOOR_OF_3_10 if Version(python) >= Version("3.10") else FLOOR


def is_too_old(day: date) -> bool:
    """Whether no pytest of a day can carry the reporter."""
    return day < FLOOR_RELEASED
