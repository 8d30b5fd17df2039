"""What a repository names and does not hold: submodules, and files that git LFS keeps elsewhere. Pure.

A submodule is an empty folder in the tree that we pack, and a file of git LFS a pointer of three lines (git-lfs,
docs/spec.md, "The Pointer"). Neither is fetched: what they point to is not part of the commit. Where the installation
or the tests need them, that is a reason; elsewhere it is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from installers.interface import Refusal
from miner.core.reasons import Reason
from miner.core.records import Recipe

_POINTER = b"version https://git-lfs.github.com/spec/"
_MAX_POINTER = 1024


def is_pointer(data: bytes) -> bool:
    """Whether the content of a file is a pointer of git LFS."""
    return len(data) <= _MAX_POINTER and data.startswith(_POINTER)


def needed_paths(recipe: Recipe, test_files: Iterable[str]) -> tuple[str, ...]:
    """Return what an installation and its tests cannot do without: the project's folder, its modules, the tests."""
    root = "/".join(part for part in (recipe.project_dir, recipe.source_root) if part)
    modules = (f"{root}/{name.replace('.', '/')}".lstrip("/") for name in recipe.top_level)
    return tuple(dict.fromkeys(path for path in (recipe.project_dir, *modules, *test_files) if path))


def missing_content(
    needed: Iterable[str], *, links: Iterable[str] = (), pointers: Iterable[str] = ()
) -> Refusal | None:
    """Return why a tree lacks what is needed, or None.

    Args:
        needed: paths of files and folders, modules without their suffix (`needed_paths`).
        links: folders of submodules (`miner.project.git_files.read_submodules`).
        pointers: files of which the tree has a pointer only.
    """
    wanted, kept_elsewhere = tuple(needed), tuple(pointers)
    for folder in links:
        for path in wanted:
            if f"{path}/".startswith(f"{folder}/"):
                detail = f"{path} lies in the submodule {folder}, which is not part of the commit"
                return Refusal(reason=Reason.SUBMODULE_MISSING, detail=detail)
    for path in wanted:
        if (found := _pointer_of(path, kept_elsewhere)) is not None:
            return Refusal(reason=Reason.LFS_CONTENT_MISSING, detail=f"{found} is kept by git LFS elsewhere")
    return None


def _pointer_of(path: str, pointers: Iterable[str]) -> str | None:
    """Return a pointer that stands for the path itself or for a file of Python of that name."""
    return next((one for one in pointers if one in (path, f"{path}.py", f"{path}/__init__.py")), None)


def pointers_of(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the paths whose content is a pointer of git LFS."""
    return tuple(path for path, data in files.items() if is_pointer(data))
