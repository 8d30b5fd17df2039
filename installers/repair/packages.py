"""Header, library or program -> Debian package: what signatures call it, in the words of `installers.debian`."""

from __future__ import annotations

from collections.abc import Callable

from installers.debian import Sort, packages_with
from installers.workshop import Workshop
from miner.core.memo import Memo

_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc")


def package_lookup(workshop: Workshop, memo: Memo) -> Callable[[str], str | None]:
    """Return what finds the likeliest Debian package for the subject of a signature."""

    def package(subject: str) -> str | None:
        sort, name = sort_of(subject)
        found = packages_with(workshop, memo, sort, name)
        return found[0] if found else None

    return package


def sort_of(subject: str) -> tuple[Sort, str]:
    """Return what the index of contents calls the subject of a signature.

    `-lpq` is what a linker looks for: `libpq.so`, which packages for development hold.
    """
    if subject.startswith("-l"):
        return "library", f"lib{subject.removeprefix('-l')}.so"
    if subject.endswith(".pc"):
        return "pkg-config", subject.removesuffix(".pc")
    if subject.endswith(_HEADERS):
        return "header", subject
    if subject.startswith("lib") and ".so" in subject:
        return "library", subject
    return "tool", subject
