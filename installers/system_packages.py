"""Debian packages as one layer over the base image, and a lock of what is in it; shared by all with the same set.

The base image's own tree is what they are installed on (by mmdebstrap, as it was made), so that the layer holds what
they add and nothing that stands still. What is in it and its hashes come from the lists of packages of that moment.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import structlog

from installers.debian_names import is_package_name
from installers.ground_cache import kept
from installers.layer import difference, store
from installers.workshop import Workshop
from miner.core.excerpt import explanation
from miner.core.hashing import hash_of
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Layer, Observation, Producer
from miner.sandbox.base_image import layer_path
from miner.sandbox.base_tree import grown_entries, keep, package_versions
from miner.sandbox.debootstrap import install_packages
from miner.sandbox.engine import engine_faults
from miner.sandbox.image_archive import TarEntry, read_tar

PRODUCER = Producer(name="installers.system_packages", epoch=1)
KIND = "install.ground"
TRIM = 1
"""Enters input hashes: raise it when a rule here changes the bytes of a layer."""

_IDENTITY = (b"Package", b"Version", b"Architecture")
_READ = frozenset((*_IDENTITY, b"SHA256"))
_LISTS = "var/lib/apt/lists/"
_UNKNOWN = re.compile(
    r"^E: (?:Unable to locate package (\S+)|Couldn't find any package by (?:glob|regex) '([^']+)'"
    r"|Package '([^']+)' has no installation candidate)",
    re.MULTILINE,
)
_UNUSED = re.compile(
    r"usr/lib/.*/(?:libpython3[^/]*|lib(?:a|hwa|l|t|ub)san)\.a\Z|usr/bin/.*(?:lto-dump|dwp|gprofng|gp-)[^/]*\Z"
)
"""What of the tool chain no extension module is built with: a third of its bytes."""
_OF_ONE_MACHINE = re.compile(
    r"etc/machine-id\Z|var/cache/|var/lib/dpkg/[^/]*-old\Z|etc/.*-old\Z|var/lib/(?:postgresql|mysql)/.|.*/ssl-cert-snakeoil"
)
"""What scripts of packages make anew each time: caches, keys, databases, numbers of this machine."""

_MB = 1 << 20
_MAX_BYTES = 2048 * _MB

_log = structlog.get_logger()


def system_packages(workshop: Workshop, memo: Memo, names: Iterable[str]) -> Fact:
    """Return the fact about a set of packages: its lock and its layer; negative where Debian has no such packages.

    What the base image holds is left out of the set.

    Args:
        workshop: the tools.
        memo: known facts.
        names: as the suite of the base image has them (`installers.debian_names.settled_names`).

    Raises:
        InfrastructureFault: the archive of Debian packages did not answer, or the engine failed.
    """
    held = {line.split(" ")[0] for line in workshop.base.packages.splitlines()}
    chosen = tuple(sorted({name for name in names if name not in held}))
    inputs = {"packages": chosen, "base": workshop.base.digest, "trim": TRIM}
    subject = f"debian-{hash_of(inputs)[:16]}"
    made = partial(
        kept, workshop, {"kind": KIND, "epoch": PRODUCER.epoch, **inputs}, partial(_observe, workshop, chosen)
    )
    return memo.measure(PRODUCER, KIND, subject, inputs, made)


def package_layer(fact: Fact) -> Layer | None:
    """Return the layer that a positive fact of this kind holds; None where the base image has it all."""
    layer = fact.payload["layer"]
    return None if layer is None else Layer.model_validate(layer)


def package_note(fact: Fact) -> str:
    """Return what an image's history says of the layer."""
    return f"debian packages: {' '.join(fact.payload['packages'])}"


def packages_of(fact: Fact) -> str:
    """Return `name version architecture` of each package in the layer, one a line."""
    return "".join(f"{one['name']} {one['version']} {one['architecture']}\n" for one in fact.payload["lock"])


def _observe(workshop: Workshop, names: tuple[str, ...]) -> Observation:
    if strange := [name for name in names if not is_package_name(name)]:
        return _unknown(names, strange, f"no names of packages: {', '.join(map(repr, strange))}", workshop)
    if not names:
        return Observation(payload={"packages": [], "lock": [], "layer": None})
    docker = workshop.settings.docker
    _log.info("making a layer of Debian packages", packages=len(names), first=names[0])
    with tempfile.TemporaryDirectory(dir=workshop.scratch) as place:
        folder = Path(place)
        system, grown = _system(workshop, folder), folder / "grown.tar"
        said = install_packages(
            system,
            grown,
            suite=docker.suite,
            packages=names,
            epoch=workshop.base.config.created or docker.snapshot_epoch,
        )
        if said is not None:
            unknown = sorted({name for found in _UNKNOWN.findall(said) for name in found if name})
            detail = f"Debian {docker.suite} has no {', '.join(unknown)}" if unknown else explanation(said)
            return _unknown(names, unknown, detail, workshop, said)
        below = {entry.path: entry for entry in grown_entries(read_tar(system, keep))}
        above = {entry.path: entry for entry in grown_entries(read_tar(grown, keep))}
        lock = _lock(below, above, _lists(grown))
        entries = list(_whole(difference(below, above), above))
        if (size := sum(entry.length for entry in entries)) > _MAX_BYTES:
            return _too_large(names, size)
        layer = store(entries, workshop.blobs, folder)
    return Observation(
        payload={"packages": list(names), "lock": lock, "layer": layer.model_dump()},
        blobs={"layer": layer.diff_id.removeprefix("sha256:")},
        network=True,
    )


def _unknown(
    names: Iterable[str], unknown: Iterable[str], detail: str, workshop: Workshop, said: str = ""
) -> Observation:
    return Observation(
        outcome=Reason.SYSTEM_PACKAGE_UNKNOWN.value,
        payload={"packages": list(names), "unknown": list(unknown), "detail": detail},
        logs={"log": workshop.blobs.put_text(said)} if said else {},
        network=bool(said),
    )


def _too_large(names: Iterable[str], size: int) -> Observation:
    detail = f"the Debian packages take {size // _MB} MiB, more than {_MAX_BYTES // _MB}"
    return Observation(
        outcome=Reason.BUILD_LIMIT.value, payload={"packages": list(names), "detail": detail}, network=True
    )


def _system(workshop: Workshop, folder: Path) -> Path:
    """Return the base image's whole tree as a tar: the layer that we built, else what the engine exports."""
    layers = workshop.base.layers
    kept = layer_path(workshop.base_cache, layers[0].diff_id)
    if len(layers) == 1 and kept.exists():
        return kept.absolute()
    path = folder / "base.tar"
    with engine_faults():
        container = workshop.client.containers.create(workshop.base.image, ["true"], network_mode="none")
        try:
            with path.open("wb") as file:
                for chunk in workshop.client.api.export(str(container.id)):
                    file.write(chunk)
        finally:
            container.remove(force=True)
    return path


def _whole(layer: Iterable[TarEntry], above: Mapping[str, TarEntry]) -> Iterator[TarEntry]:
    """Leave out what is of no use elsewhere; a hard link to a file that is not in the layer becomes a file."""
    kept = [entry for entry in layer if not (_UNUSED.match(entry.path) or _OF_ONE_MACHINE.match(entry.path))]
    written = {entry.path for entry in kept}
    for entry in kept:
        lost = entry.kind == "hardlink" and entry.link not in written
        yield replace(above[entry.link], path=entry.path) if lost else entry


def _lists(grown: Path) -> Iterator[TarEntry]:
    """Return the lists of packages that apt knew, of all suites."""
    return (one for one in read_tar(grown, lambda path: path.startswith(_LISTS) and path.endswith("_Packages")))


def _lock(
    below: Mapping[str, TarEntry], above: Mapping[str, TarEntry], lists: Iterable[TarEntry]
) -> list[dict[str, str]]:
    """Return name, version, architecture and sha256 of each package that came in, sorted."""
    before = set(package_versions(below.values()).splitlines())
    came = [line.split(" ") for line in package_versions(above.values()).splitlines() if line not in before]
    wanted = {(name, version, architecture) for name, version, architecture in came}
    hashes: dict[tuple[str, ...], str] = {}
    for entry in lists:
        with entry.open() as stream:
            hashes.update(_hashes(stream, wanted))
    return [
        {
            "name": name,
            "version": version,
            "architecture": architecture,
            "sha256": hashes.get((name, version, architecture), ""),
        }
        for name, version, architecture in sorted(wanted)
    ]


def _hashes(lines: Iterable[bytes], wanted: Container[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the sha256 of each wanted package in a list of packages (Debian policy 5.1; deb822)."""
    fields: dict[bytes, str] = {}
    for line in chain(lines, [b"\n"]):
        if line == b"\n":
            key = tuple(fields.get(name, "") for name in _IDENTITY)
            if key in wanted and b"SHA256" in fields:
                yield key, fields[b"SHA256"]
            fields = {}
        elif (found := line.partition(b": "))[0] in _READ:
            fields[found[0]] = found[2].strip().decode("utf-8", "replace")
