"""What a machine needs for mining: each need looked at on its own, with what to do where it is not met."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import requests
from pypi_simple import ACCEPT_JSON_ONLY, ProjectPage, UnsupportedRepoVersionError

import miner
from miner.core.errors import ConfigError, DockerUnavailable, InfrastructureFault
from miner.core.index_access import ca_bundle, index_url, pair_of_url, require_no_login, without_login
from miner.core.records import Record
from miner.core.settings import Docker, Index, Settings
from miner.sandbox.engine import connect, engine_faults
from miner.sandbox.upstream import routes_of

DISK_BYTES = 10 << 30
MIN_GIT = (2, 32)  # older ones read the user's settings in spite of GIT_CONFIG_GLOBAL
DISTRIBUTION = "swe-miner"
IMPORT_NAMES = ("miner", "installers", "validators", "exporters")
_PROBE_PROJECT = "pluggy"
_MB = 1 << 20


class Check(Record):
    """One need of the program: whether the machine meets it, what was seen, and what to do if not."""

    name: str
    ok: bool
    detail: str
    next_step: str = ""


def checks(settings: Settings) -> list[Check]:
    """Look at everything; one failed check does not keep the others from being made."""
    engine, facts = check_engine(settings.docker)
    found = [engine]
    if facts is not None:
        found += [check_limits(facts), check_memory(facts, settings)]
    found.append(check_disk("disk", settings.paths.work))
    if facts is not None and Path(root := str(facts.get("DockerRootDir", ""))).is_dir():
        found.append(check_disk("disk of the engine", Path(root)))
    found += [
        check_base_image(settings.docker, settings.paths.work / "base"),
        check_index(settings.index),
        check_way_out(settings.index),
        check_git(),
        check_import_names(),
    ]
    return found


def check_engine(settings: Docker) -> tuple[Check, dict[str, Any] | None]:
    """Ask the engine for its version; the second value is what it says about itself."""
    try:
        client = connect(settings)
    except DockerUnavailable as error:
        return Check(name="engine", ok=False, detail=str(error), next_step=error.next_step), None
    try:
        with engine_faults():
            version, facts = client.version(), client.info()
    except InfrastructureFault as error:
        return Check(name="engine", ok=False, detail=str(error), next_step=error.next_step), None
    finally:
        client.close()
    detail = f"{version['Version']}, API {version['ApiVersion']}, {version['Os']}/{version['Arch']}, {facts['Driver']}"
    return Check(name="engine", ok=True, detail=detail), facts


def check_limits(facts: dict[str, Any]) -> Check:
    """Whether the engine can bound what a container takes."""
    needed = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "CPU time"}
    missing = [word for key, word in needed.items() if not facts.get(key)]
    if missing:
        return Check(
            name="limits",
            ok=False,
            detail=f"the engine cannot limit {', '.join(missing)}",
            next_step="enable the memory, pids and cpu control groups of the engine's machine",
        )
    return Check(name="limits", ok=True, detail="memory, processes and CPU time can be limited")


def check_memory(facts: dict[str, Any], settings: Settings) -> Check:
    """Whether all workers' containers fit into the memory of the engine's machine."""
    each = max(settings.measure.install.memory_mb, settings.measure.test.memory_mb)
    needed, there = settings.run.workers * each, int(facts["MemTotal"]) // _MB
    return Check(
        name="memory",
        ok=there >= needed,
        detail=f"{there} MB; {settings.run.workers} workers may take {each} MB each",
        next_step="" if there >= needed else f"-c run.workers={max(1, there // each)}, or a machine with more memory",
    )


def check_disk(name: str, folder: Path) -> Check:
    """Whether the disk that a folder is or will be on has room for images and logs."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    return Check(
        name=name,
        ok=free >= DISK_BYTES,
        detail=f"{free / (1 << 30):.1f} GB free, {DISK_BYTES >> 30} GB wanted",
        next_step="" if free >= DISK_BYTES else "free some space: old images (`docker system prune`), old releases",
    )


def check_base_image(settings: Docker, cache: Path) -> Check:
    """Whether there is a base image, or a way to get one."""
    if settings.base_image is not None:
        return Check(name="base image", ok=True, detail=f"{settings.base_image}, as docker.base_image says")
    if any(cache.glob("*.json")):
        return Check(name="base image", ok=True, detail="built")
    if shutil.which("mmdebstrap"):
        return Check(name="base image", ok=True, detail="not built yet; mmdebstrap is there")
    return Check(
        name="base image",
        ok=False,
        detail="not built yet, and mmdebstrap is missing",
        next_step="run `make docker` (as root on Debian or Ubuntu), or set docker.base_image to an image by digest",
    )


def check_index(settings: Index) -> Check:
    """Whether the package index answers with a project's page, in JSON (PEP 691) and with upload times (PEP 700)."""
    endpoint, login = without_login(index_url(settings))
    bundle = ca_bundle(settings)
    try:
        response = requests.get(
            f"{endpoint.rstrip('/')}/{_PROBE_PROJECT}/",
            headers={"Accept": ACCEPT_JSON_ONLY},
            auth=login,
            timeout=settings.timeout_s,
            verify=None if bundle is None else str(bundle),
        )
        response.raise_for_status()
        files = ProjectPage.from_json_data(response.json(), response.url).packages
        problem = None if any(file.upload_time for file in files) else "it answers without files or their upload times"
    except (OSError, ValueError, UnsupportedRepoVersionError) as error:
        problem = str(error)
    if problem is not None:
        next_step = "check the network, index.url and index.ca_bundle"
        return Check(name="index", ok=False, detail=f"{endpoint}: {problem}", next_step=next_step)
    return Check(name="index", ok=True, detail=f"{endpoint}: {len(files)} files of {_PROBE_PROJECT}")


def check_way_out(settings: Index) -> Check:
    """Whether boxes can go the way to the index that this program goes: without a login, and by the same proxy."""
    pair = pair_of_url(index_url(settings))
    try:
        require_no_login(settings)
        routes = routes_of([pair] if pair else [])
    except ConfigError as error:
        return Check(name="way out of boxes", ok=False, detail=str(error), next_step=error.next_step)
    proxies = sorted({f"{host}:{port}" for found in routes.values() for host, port, _ in found.values()})
    detail = (
        f"by the proxy {', '.join(proxies)} of the environment" if proxies else "direct, no proxy in the environment"
    )
    return Check(name="way out of boxes", ok=True, detail=detail)


def check_git() -> Check:
    """Whether git is there and not too old."""
    wanted = ".".join(map(str, MIN_GIT))
    try:
        text = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Check(name="git", ok=False, detail=f"git does not run: {error}", next_step="apt-get install git")
    match = re.search(r"(\d+)\.(\d+)", text)
    ok = match is not None and (int(match[1]), int(match[2])) >= MIN_GIT
    return Check(name="git", ok=ok, detail=text.strip(), next_step="" if ok else f"install git {wanted} or newer")


def check_import_names() -> Check:
    """Whether our import names are ours: the index has a package with the import name `validators`, too."""
    clash = import_clash() or _foreign_distribution()
    if clash is None:
        return Check(name="import names", ok=True, detail=f"{', '.join(IMPORT_NAMES)} are ours")
    return Check(
        name="import names",
        ok=False,
        detail=clash,
        next_step="give swe-miner an environment of its own (`make setup`), or uninstall the other package",
    )


def import_clash() -> str | None:
    """Return which foreign package stands before ours on the import path, or None; cheap enough for every start."""
    home = Path(miner.__file__).resolve().parents[1]
    for name in IMPORT_NAMES:
        spec = importlib.util.find_spec(name)
        where = None if spec is None or spec.origin is None else Path(spec.origin).resolve().parents[1]
        if where != home:
            return f"`import {name}` finds {spec and spec.origin}, which is not part of swe-miner in {home}"
    return None


def _foreign_distribution() -> str | None:
    """Return which other distribution has put files into one of our packages, or None."""
    owners = packages_distributions()
    for name in IMPORT_NAMES:
        if foreign := sorted(set(owners.get(name, ())) - {DISTRIBUTION}):
            return (
                f"the package {', '.join(foreign)} is installed in the same environment and has the import name {name}"
            )
    return None
