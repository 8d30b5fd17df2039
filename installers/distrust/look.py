"""What is looked at of an environment, and whose matter a file of it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from installers.distrust.site_packages import Distribution, Site
from installers.layer import read
from miner.sandbox.image_archive import TarEntry

MAX_TEXT = 1 << 20


@dataclass(frozen=True)
class Look:
    """An environment.

    Attributes:
        site: what lies in it.
        packages: name -> version of what the lock holds.
        admitted: names of what the project itself asks for, and of what these ask for.
        executable: path of the interpreter that it was made with; "" where that is not known.
        own: normalised name of the project, where it is installed; "" where it is not.
        is_tracked: whether the repository has a file of this name and content.
        linked: top-level files of the project's installation, by path in `site-packages`.
    """

    site: Site
    packages: dict[str, str]
    admitted: frozenset[str] = frozenset()
    executable: str = ""
    own: str = ""
    is_tracked: Callable[[str, bytes], bool] = lambda _name, _content: False
    linked: frozenset[str] = frozenset()

    def is_admitted(self, path: str) -> bool:
        """Whether a file is, as it lies there, of what the project itself asks for, or of its own tree."""
        owners = self.site.owners.get(path, ())
        if owners and all(one.name in self.admitted and self.site.is_as_recorded(path, one) for one in owners):
            return True
        return self.is_own(path) and self._is_tracked(path)

    def is_own(self, path: str) -> bool:
        """Whether the installation of the project has brought a file, and nobody else names it."""
        return path in self.linked and all(one.name == self.own for one in self.site.owners.get(path, ()))

    def _is_tracked(self, path: str) -> bool:
        entry = self.site.files[path]
        small = entry.kind == "file" and entry.length <= MAX_TEXT
        return small and self.is_tracked(path.rpartition("/")[2], read(entry))

    def knows(self, one: Distribution) -> bool:
        """Whether a distribution is one that the project itself asks for, or the project."""
        return one.name in self.admitted or (bool(self.own) and one.name == self.own)

    @property
    def locked(self) -> frozenset[str]:
        """Normalised names of what the lock holds."""
        return frozenset(canonicalize_name(name) for name in self.packages)


@dataclass(frozen=True)
class Alteration:
    """One row of the table: as `installers.distrust.mechanism.Mechanism`, of a built environment.

    Attributes:
        builds: also of an environment that projects are built with.
    """

    name: str
    reason: str
    find: Callable[[Look], Iterable[str]]
    builds: bool = True


def text_of(entry: TarEntry) -> str | None:
    """Return the text of a small file, None for anything else."""
    if entry.kind != "file" or entry.length > MAX_TEXT:
        return None
    return read(entry).decode("utf-8", "surrogateescape")
