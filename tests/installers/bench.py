"""A workshop and small projects of our own, for tests that install in real containers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

from installers.attempt import InstallCase
from installers.environment import environment, environment_request, layer_of
from installers.ground import Ground
from installers.health import TestSide
from installers.interface import Tree
from installers.lock import LockRequest
from installers.project_install import ProjectRequest, project_request
from installers.pythons import Python
from installers.steps import common
from installers.venv_layer import VenvRequest, make_venv
from installers.workshop import Workshop, uv_version
from miner.core.memo import Memo, utc_now
from miner.core.records import BuildMode, Fact, Layer, Observation, Recipe
from miner.core.settings import Limits, Settings
from miner.crawlers.archive import Entry
from miner.crawlers.git_image import pack_single_commit
from miner.crawlers.git_repo import GitRepo, make_repo

OWNER = f"test-installers-{os.getpid()}"  # not that of tests that run at the same time
LIMITS = Limits(memory_mb=768, cpus=2.0, pids=128, disk_mb=192, output_mb=1, timeout_s=90.0)


def small(settings: Settings, **limits: float) -> Settings:
    """Return settings with small bounds, for the one Python that the base image has on any machine."""
    bounds = LIMITS.model_copy(update=limits)
    measure = settings.measure.model_copy(update={"install": bounds, "test": bounds, "pythons": ("3.11",)})
    return settings.model_copy(update={"measure": measure})


PYTHON = "/usr/bin/python3.11"
CUTOFF = datetime(2023, 4, 19, tzinfo=UTC)
OWN_PYTHON = Python(version="3.11", executable=PYTHON, released=date(2022, 10, 24), end_of_life=date(2027, 10, 31))


def ground_of(workshop: Workshop) -> Ground:
    """Return the base image with its own Python as a ground: nothing on it."""
    return Ground(task=workshop.base, build=workshop.base, python=OWN_PYTHON, facts=())


BACKEND = '''
"""A build back end (PEP 517) that needs nothing but the standard library."""
import pathlib, zipfile

def wheel(directory, files):
    files = {
        **files,
        "demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n",
        "demo-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    record = "".join(name + ",,\\n" for name in [*files, "demo-1.0.dist-info/RECORD"])
    with zipfile.ZipFile(pathlib.Path(directory) / "demo-1.0-py3-none-any.whl", "w") as archive:
        for name, text in {**files, "demo-1.0.dist-info/RECORD": record}.items():
            archive.writestr(name, text)
    return "demo-1.0-py3-none-any.whl"

def build_wheel(directory, config_settings=None, metadata_directory=None):
    source = pathlib.Path("src")
    return wheel(directory, {str(path.relative_to(source)): path.read_text() for path in source.rglob("*.py")})
'''
EDITABLE = """
def build_editable(directory, config_settings=None, metadata_directory=None):
    return wheel(directory, {"demo.pth": str(pathlib.Path("src").resolve())})
"""
DECLARATION = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
PROJECT = {
    "pyproject.toml": DECLARATION,
    "backend.py": BACKEND + EDITABLE,
    "src/demo/__init__.py": "answer = 41\n",
}
NORMAL_ONLY = {**PROJECT, "backend.py": BACKEND}


@dataclass
class Known:
    """A memo's memory."""

    facts: list[Fact] = field(default_factory=list)

    def memo(self, later: timedelta = timedelta()) -> Memo:
        """Return a memo whose clock is late."""
        return Memo(self._find, self.facts.append, clock=lambda: utc_now() + later)

    def _find(self, key):
        like = {"ordinal": key.ordinal}
        return [fact for fact in self.facts if fact.key.model_copy(update=like) == key]


@dataclass(frozen=True)
class Repo:
    """A repository with one commit."""

    git: GitRepo
    commit: str
    tree: str

    def pack(self, out) -> None:
        pack_single_commit(self.git, self.commit, out)


def repo_of(files: Mapping[str, str], folder: Path) -> Repo:
    entries = {path: Entry("100644", text.encode()) for path, text in files.items()}
    when = datetime(2023, 4, 1, tzinfo=UTC)
    git = make_repo(folder / "repo", [("base", entries, when, "Base")])
    commit = git.commit_of("refs/heads/base")
    return Repo(git, commit, git.tree_of(commit))


def new_file_patch(files: Mapping[str, str]) -> bytes:
    """Return git's diff that adds files."""
    parts = []
    for path, text in files.items():
        lines = text.splitlines()
        head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
        parts.append(f"{head}@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines))
    return "".join(parts).encode()


def recipe_of(**changes) -> Recipe:
    plain = Recipe(
        python="3.11",
        requirements=("pytest",),
        build_backend="backend",
        backend_path=(".",),
        distribution="demo",
        top_level=("demo",),
        source_root="src",
    )
    return plain.model_copy(update=changes)


def case_of(
    files: Mapping[str, str], folder: Path, tests: Mapping[str, str], gold: bytes = b"", **recipe
) -> InstallCase:
    repo = repo_of(files, folder)
    return InstallCase(
        instance_id="pypi__demo-1.1",
        repository="demo",
        recipe=recipe_of(**recipe),
        created_at=datetime(2023, 4, 18, tzinfo=UTC),
        pack=partial(repo.pack),
        tree=repo.tree,
        files=Tree({path: text.encode() for path, text in files.items()}, tuple(files)),
        side=TestSide(tuple(tests), new_file_patch(tests), gold),
    )


def lock_request(workshop: Workshop, *requirements: str, **changes) -> LockRequest:
    shared = common(workshop, ground_of(workshop), CUTOFF, {})
    return LockRequest(purpose="run", requirements=requirements, **shared).model_copy(update=changes)


def venv_request(workshop: Workshop, lock: str, **changes) -> VenvRequest:
    plain = VenvRequest(lock=lock, executable=PYTHON, base=workshop.base.digest, uv=uv_version())
    return plain.model_copy(update=changes)


def empty_environment(workshop: Workshop) -> Layer:
    """Return the layer of an environment that holds nothing but an interpreter."""
    seen = make_venv(workshop, workshop.base, venv_request(workshop, workshop.blobs.put(b"")))
    assert seen.outcome == "ok", seen.payload
    return layer_of(seen)


def environment_of_lock(workshop: Workshop, memo: Memo, plan: LockRequest, locked: Fact) -> list[Fact]:
    """Return the facts that lead to the layer of a lock on the base image."""
    return environment(workshop, memo, ground_of(workshop), environment_request(plan, locked))


def request_of(workshop: Workshop, environment: Layer, tree: str, mode: BuildMode, **recipe) -> ProjectRequest:
    """Return the request for a project of this recipe."""
    plan = lock_request(workshop)
    made = recipe_of(**{"modes": (mode,), **recipe})
    built = Observation(payload={"layer": environment.model_dump()})
    return project_request(plan, made, mode, built=built, tree=tree)
