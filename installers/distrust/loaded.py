"""Groups of entry points whose modules are imported without anybody's asking, and who may have one.

Sources: the documentation of each reader that is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from miner.project.text import words


@dataclass(frozen=True)
class Loader:
    """Who reads a group.

    Attributes:
        when: what imports the modules of its entry points.
        known: distributions that are known to have such an entry point, and to change no outcome by it.
    """

    when: str
    known: frozenset[str]


def _loader(when: str, known: str) -> Loader:
    return Loader(when, frozenset(words(known)))


PLUGINS = "pytest11"
"""The group of pytest's own plug-ins: `installers.distrust.plugins` says which are known."""

LOADED: Mapping[str, Loader] = {
    # group: what imports it in a run of tests
    "hypothesis": _loader("Hypothesis, when it is imported", "trio pydantic crosshair-tool hypothesis-crosshair"),
    "pydantic": _loader("pydantic 2, when a model is made", "logfire"),
    "opentelemetry_context": _loader("OpenTelemetry, when its API is imported", "opentelemetry-api"),
    "opentelemetry_propagator": _loader(
        "OpenTelemetry, when its API is imported", "opentelemetry-api opentelemetry-propagator-b3"
    ),
    "jax_plugins": _loader("JAX, when it looks for devices", ""),
    "torch.backends": _loader("PyTorch, when it is imported", ""),
    "tensorflow_plugins": _loader("TensorFlow, when it is imported", ""),
    "numba_extensions": _loader("Numba, when it compiles a first function", "awkward numba-scipy"),
    "networkx.backends": _loader("NetworkX, when it is imported", "networkx"),
    "fsspec.specs": _loader("fsspec, when it is imported", "gcsfs s3fs adlfs dask huggingface-hub"),
    "keyring.backends": _loader("keyring, when it is first asked", "keyring keyrings-alt"),
    "pytest_randomly.random_seeder": _loader("pytest-randomly, before every test", ""),
    "nose.plugins": _loader("nose, when it starts", "nose nosexcover"),
    "nose.plugins.0.10": _loader("nose, when it starts", "nose"),
}
_SETUPTOOLS = "setuptools, whenever a project is built with it"
_HATCHLING = "hatchling, whenever a project is built with it"
BUILDS: Mapping[str, Loader] = {
    # group: what imports it in a build
    "setuptools.finalize_distribution_options": _loader(
        _SETUPTOOLS, "setuptools setuptools-scm setuptools-git-versioning setuptools-rust"
    ),
    "distutils.setup_keywords": _loader(
        _SETUPTOOLS,
        "setuptools setuptools-scm setuptools-rust setuptools-git-versioning setuptools-golang setuptools-dso cffi pbr "
        "calver incremental milksnake vcversioner setupmeta babel pyscaffold setuptools-markdown",
    ),
    "distutils.commands": _loader(
        _SETUPTOOLS,
        "setuptools wheel pytest-runner babel sphinx nose flake8 isort setuptools-rust setuptools-dso pbr setupmeta "
        "collective-checkdocs zope-testrunner",
    ),
    "egg_info.writers": _loader(_SETUPTOOLS, "setuptools pbr"),
    "setuptools.file_finders": _loader(
        _SETUPTOOLS, "setuptools setuptools-scm setuptools-git setuptools-scm-git-archive"
    ),
    "hatch": _loader(
        _HATCHLING,
        "hatch hatchling hatch-vcs hatch-fancy-pypi-readme hatch-requirements-txt hatch-nodejs-version hatch-cython "
        "hatch-jupyter-builder hatch-mypyc hatch-regex-commit hatch-build-scripts uv-dynamic-versioning",
    ),
    "pdm.build.hook": _loader("pdm-backend, whenever a project is built with it", ""),
    "poetry.plugin": _loader("Poetry, whenever it starts", "poetry-dynamic-versioning"),
    "poetry.application.plugin": _loader(
        "Poetry, whenever it starts", "poetry-dynamic-versioning poetry-plugin-export"
    ),
}
