"""Which files of a tree declare how it is built and tested: their texts are kept, so that recipes can be computed."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

MAX_BYTES = 1 << 20

_NAMES = frozenset(
    {
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "tox.ini",
        "tox.toml",
        "noxfile.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "Pipfile",
        "Pipfile.lock",
        "poetry.lock",
        "pdm.lock",
        "uv.lock",
        "environment.yml",
        "environment.yaml",
        "Makefile",
        "justfile",
        "Dockerfile",
        "MANIFEST.in",
        ".python-version",
        ".travis.yml",
        ".gitlab-ci.yml",
        "CONTRIBUTING.md",
        "CONTRIBUTING.rst",
    }
)
_REQUIREMENTS = re.compile(
    r"(?:requirements|constraints|deps|dependencies)[^/]*\.(?:txt|in|pip)$|^reqs?[^/]*\.txt$", re.I
)
_EGG_INFO = frozenset({"PKG-INFO", "requires.txt", "top_level.txt", "entry_points.txt"})
_MAX_DEPTH = 3


def is_declaration(path: str) -> bool:
    """Whether a file of this path may declare a dependency, a build back end or how tests are run."""
    pure = PurePosixPath(path)
    folders = pure.parts[:-1]
    if pure.name == "PKG-INFO" and not folders:
        return True
    if folders and folders[-1].endswith(".egg-info"):
        return pure.name in _EGG_INFO
    if folders == (".github", "workflows"):
        return pure.suffix in (".yml", ".yaml")
    if len(folders) > _MAX_DEPTH:
        return False
    in_requirements = bool(folders) and folders[-1].lower().startswith(("requirements", "reqs"))
    is_list = bool(_REQUIREMENTS.search(pure.name)) or (in_requirements and pure.suffix in (".txt", ".in", ".pip"))
    return pure.name in _NAMES or is_list
