"""Versions and requirements as other people have written them (PEP 440, PEP 508).

`packaging` takes numbers of any length, and fails later, where Python refuses to read more than 4300 digits; and it
takes markers that cannot be evaluated. Here, both are no versions and no requirements.
"""

from __future__ import annotations

import re

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

_ENDLESS = re.compile(r"\d{100}")


def version_of(text: str | None) -> Version | None:
    """Return the version that a text is, None where it is none."""
    if text is None or _ENDLESS.search(text):
        return None
    try:
        return Version(text)
    except InvalidVersion:
        return None


def specifiers_of(text: str) -> SpecifierSet | None:
    """Return the specifiers that a text holds, None where it holds something else."""
    if _ENDLESS.search(text):
        return None
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None


def requirement_of(text: str) -> Requirement:
    """Return the requirement that a text is.

    Raises:
        InvalidRequirement: it is none, holds a number that no version has, or a marker that compares in vain.
    """
    if _ENDLESS.search(text):
        raise InvalidRequirement("a number of more than 99 digits")
    requirement = Requirement(text)
    if requirement.marker is not None:
        try:
            requirement.marker.evaluate({"extra": ""})
        except (ValueError, UndefinedEnvironmentName) as error:
            raise InvalidRequirement(f"its marker cannot be evaluated: {error}") from error
    return requirement
