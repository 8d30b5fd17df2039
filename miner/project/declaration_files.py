"""Which files of a tree declare how it is built and tested: their texts are kept, so that recipes can be computed."""

from __future__ import annotations

import posixpath
import re

from miner.project.ci import is_ci

_NAMES = frozenset(
    {
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "tox.ini",
        "tox.toml",
        "hatch.toml",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "Pipfile",
        "runtime.txt",
        ".python-version",
        "MANIFEST.in",
        "meta.yaml",
        "meta.yml",
    }
)
_AT_ROOT = frozenset({"PKG-INFO", ".gitmodules", ".gitattributes", "CONTRIBUTING.md", "CONTRIBUTING.rst"})
_LOCKS = frozenset({"Pipfile.lock", "poetry.lock", "pdm.lock", "uv.lock"})
_LOCK = re.compile(r"pylock(?:\.[^/.]+)?\.toml\Z")
_REQUIREMENTS = re.compile(
    r"(?:[^/]*(?:require|constraint|deps|dependenc|pip|packages|reqs?)[^/]*\.(?:txt|in|pip)"
    r"|requirements/(?:[^/]+/)?[^/]+\.(?:txt|in|pip)|reqs/[^/]+\.(?:txt|in))\Z",
    re.I,
)
_CONDA = re.compile(
    r"(?:[^/]*(?:environment|conda|(?<![a-z])env(?![a-z]))[^/]*\.ya?ml|(?:^|/)(?:ci|conda|envs?|requirements)/[^/]+\.ya?ml)\Z",
    re.I,
)
_BUILD_SCRIPT = re.compile(r"(?:hatch_)?build\w*\.py\Z")
_EGG_INFO = frozenset({"PKG-INFO", "requires.txt", "top_level.txt", "entry_points.txt"})
_FOREIGN = frozenset({"node_modules", "site-packages", "_vendor", "vendor", "vendored", "third_party", ".git"})
_DEEPEST = 4


def is_declaration(path: str) -> bool:
    """Whether a file of this path may declare a dependency, a build back end or how tests are run.

    What a caller has to hand over in `files` of `read_project` and of the readers of CI files.
    """
    *folders, name = path.split("/")
    if not folders and name in _AT_ROOT:
        return True
    if len(folders) > _DEEPEST or not _FOREIGN.isdisjoint(folders):
        return False
    if folders and folders[-1].endswith(".egg-info"):
        return name in _EGG_INFO
    if len(folders) <= 1 and _BUILD_SCRIPT.match(name):
        return True
    return name in _NAMES or is_lock(path) or is_requirements(path) or is_conda(path) or is_ci(path)


def is_requirements(path: str) -> bool:
    """Whether a file's name or folder says that it holds requirements or constraints, one a line."""
    return bool(_REQUIREMENTS.search(_tail(path, 3)))


def is_conda(path: str) -> bool:
    """Whether a file's name or folder says that it is a conda environment."""
    return bool(_CONDA.search(_tail(path, 2))) and not path.startswith(".github/")


def is_lock(path: str) -> bool:
    """Whether a file is the lock of a tool, by its name."""
    name = posixpath.basename(path)
    return name in _LOCKS or bool(_LOCK.match(name))


def _tail(path: str, parts: int) -> str:
    return "/".join(path.split("/")[-parts:])
