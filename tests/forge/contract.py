"""GitHub's own contract, from two packages of the npm registry: the public GraphQL schema and the OpenAPI description.

Fetched once by `npm pack`, from the registry that npm is set up with, and kept in `var/contract`. Where there is no
npm, the environment variable NPM_CONFIG_REGISTRY (npm's own) names the registry.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import requests

CACHE = Path(__file__).resolve().parents[2] / "var" / "contract"


@dataclass(frozen=True)
class Package:
    """A file of a package, pinned by the integrity that the registry states for the package."""

    name: str
    version: str
    integrity: str
    member: str

    @property
    def tarball(self) -> str:
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}.tgz"


GRAPHQL = Package(
    "@octokit/graphql-schema",
    "15.26.1",
    "sha512-RFDC2MpRBd4AxSRvUeBIVeBU7ojN/SxDfALUd7iVYOSeEK3gZaqR2MGOysj4Zh2xj2RY5fQAUT+Oqq7hWTraMA==",
    "package/schema.graphql",
)
OPENAPI = Package(
    "@octokit/openapi",
    "23.0.2",
    "sha512-pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg==",
    "package/generated/api.github.com.json",
)


def can_fetch() -> bool:
    """Whether there is a way to a registry: npm, or the variable that names one."""
    return shutil.which("npm") is not None or "NPM_CONFIG_REGISTRY" in os.environ


def contract(package: Package, cache: Path = CACHE) -> Path:
    """Return the file of a package, fetched where it is not kept yet or is not what was pinned.

    Raises:
        ValueError: what the registry gave has another integrity.
    """
    tarball = cache / package.tarball
    if not tarball.exists() or _integrity(tarball) != package.integrity:
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as apart:  # another process may fetch the same
            fetched = _fetch(package, Path(apart))
            if (found := _integrity(fetched)) != package.integrity:
                raise ValueError(f"{package.name} {package.version} has the integrity {found}, not {package.integrity}")
            fetched.replace(tarball)
    file = cache / f"{package.tarball.removesuffix('.tgz')}-{Path(package.member).name}"
    if not file.exists():
        with tarfile.open(tarball) as tar:
            content = tar.extractfile(package.member)
            assert content is not None, package.member
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(content.read())
            part.replace(file)
    return file


def _fetch(package: Package, folder: Path) -> Path:
    to = folder / package.tarball
    if shutil.which("npm") is not None:
        wanted = f"{package.name}@{package.version}"
        command = ["npm", "pack", wanted, "--silent", "--pack-destination", str(folder)]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        return to
    registry = os.environ["NPM_CONFIG_REGISTRY"].rstrip("/")
    base = package.name.rpartition("/")[2]
    answer = requests.get(f"{registry}/{package.name}/-/{base}-{package.version}.tgz", timeout=300)
    answer.raise_for_status()
    to.write_bytes(answer.content)
    return to


def _integrity(file: Path) -> str:
    with file.open("rb") as content:
        return "sha512-" + base64.b64encode(hashlib.file_digest(content, "sha512").digest()).decode()
