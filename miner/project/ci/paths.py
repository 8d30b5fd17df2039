"""Which paths of a tree say what CI does: its own files, and the scripts and tasks that they start."""

from __future__ import annotations

import re

_AT_ROOT = frozenset(
    {
        ".travis.yml",
        ".travis.yaml",
        "appveyor.yml",
        ".appveyor.yml",
        "azure-pipelines.yml",
        ".azure-pipelines.yml",
        ".gitlab-ci.yml",
        "circle.yml",
        ".readthedocs.yml",
        ".readthedocs.yaml",
        "readthedocs.yml",
        "readthedocs.yaml",
    }
)
_ANYWHERE = frozenset({"Makefile", "makefile", "GNUmakefile", "noxfile.py", "tox.ini", "tox.toml", "action.yml"})
_FOLDERS = re.compile(
    r"(?:\.github/(?:[^/]+/){0,3}[^/]+\.ya?ml|\.circleci/[^/]+\.ya?ml"
    r"|\.(?:azure-pipelines|azure|azuredevops|gitlab|gitlab-ci|ci|travis)/(?:[^/]+/)?[^/]+\.ya?ml"
    r"|(?:ci|azure-pipelines|azure|pipelines|build_tools/azure)/(?:[^/]+/)?[^/]+\.ya?ml|[^/]*azure[^/]*\.ya?ml)\Z",
    re.I,
)
_DOCKERFILE = re.compile(r"(?:Dockerfile(?:[.-][^/]*)?|[^/]+\.[Dd]ockerfile)\Z")
_SCRIPTS = re.compile(
    r"(?:\.?(?:ci|circleci|travis|github|azure)|scripts?|bin|tools?|build_tools|continuous_integration|dev)"
    r"/[A-Za-z0-9_-]+\Z"
)
_DEEPEST = 4


def is_ci(path: str) -> bool:
    """Whether `read_ci` reads a file of this path: what a caller has to hand over in `files`."""
    if path in _AT_ROOT or _FOLDERS.match(path):
        return True
    *folders, name = path.split("/")
    if len(folders) > _DEEPEST:
        return False
    if folders and folders[-1] in ("constraints", "requirements", "reqs") and name.endswith(".txt"):
        return True
    return name in _ANYWHERE or bool(_DOCKERFILE.match(name)) or is_script(path)


def is_script(path: str) -> bool:
    """Whether a file is a shell script, by its name, or by the folder of one that has no suffix."""
    return path.endswith((".sh", ".bash")) or bool(_SCRIPTS.match(path))
