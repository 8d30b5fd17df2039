"""A small world for tests of jobs: an index on loopback with packages of our own, and settings that point to it."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crawlers.index_server import IndexServer

from miner.core.settings import Settings, load_settings

NOWHERE = "tcp://127.0.0.1:1"
"""An address at which no container engine answers."""

Pair = Mapping[str, str]
Files = Mapping[str, bytes | None]

_SETUP = 'from setuptools import setup\nsetup(name="{name}", version="{version}", py_modules=["{name}"])\n'
_CHANGES = "# Changes\n\n## {version}\n\n- `double` doubles numbers below zero as well (#7)\n\n## 0.1\n\n- first\n"
_MODULE = "def double(number):\n    return {body}\n"
_TESTS = "from {name} import double\n\n\ndef test_two():\n    assert double(2) == 4\n"
_MORE = "\n\ndef test_below_zero():\n    assert double(-1) == -2\n"


def project(name: str, version: str, *, fixed: bool) -> dict[str, bytes]:
    """A package with a test module; the fix comes with a test and a line in the change log."""
    body = "2 * number" if fixed else "2 * abs(number)"
    files = {
        "setup.py": _SETUP.format(name=name, version=version),
        "CHANGES.md": _CHANGES.format(version=version),
        f"{name}.py": _MODULE.format(body=body),
        "tests/test_double.py": _TESTS.format(name=name) + _MORE * fixed,
    }
    return {path: text.encode() for path, text in files.items()}


def publish(server: IndexServer, name: str, *, old: Files | None = None, new: Files | None = None) -> Pair:
    """Publish 1.0 and the fixed 1.1 of a package; `old` and `new` replace files, or leave them out with None."""
    for version, changes, month in (("1.0", old, 1), ("1.1", new, 2)):
        files: Files = {**project(name, version, fixed=version == "1.1"), **(changes or {})}
        kept = {path: data for path, data in files.items() if data is not None}
        server.release(name, version, kept, uploaded=f"2024-0{month}-01T12:00:00.000000Z")
    return pair(name)


def quiet_pair(server: IndexServer, name: str) -> Pair:
    """Publish a package whose tests did not change: it is rejected before anything is installed."""
    return publish(
        server, name, new={"tests/test_double.py": project(name, "1.0", fixed=False)["tests/test_double.py"]}
    )


def pair(name: str, old: str = "1.0", new: str = "1.1") -> Pair:
    return {"name": name, "old": old, "new": new}


def settings(folder: Path, server: IndexServer, *pairs: Pair, **changes: Any) -> Settings:
    """Settings for a run in a folder over these pairs; see `options`."""
    made = load_settings(overrides=_overrides(folder, server, changes), environ={})
    return Settings.model_validate({**made.model_dump(), "pairs": list(pairs)})


def options(folder: Path, server: IndexServer, *pairs: Pair, **changes: Any) -> list[str]:
    """The same as options of the command line: no engine answers, and the index is asked once."""
    file = folder / "pairs.toml"
    tables = ("\n".join(f"{key} = {json.dumps(value)}" for key, value in one.items()) for one in pairs)
    file.write_text("".join(f"[[pairs]]\n{table}\n" for table in tables), encoding="utf-8")
    return ["--config", str(file), *(part for text in _overrides(folder, server, changes) for part in ("-c", text))]


def _overrides(folder: Path, server: IndexServer, changes: Mapping[str, Any]) -> list[str]:
    server.project("pip")  # by whose page it is seen whether an index is well
    values = {
        "paths.work": folder / "var",
        "measure.pythons": '["3.11"]',  # which the base image has on any machine
        "paths.release": folder / "out",
        "index.url": server.url,
        "index.tries": 1,
        "index.timeout_s": 5.0,
        "run.pause_max_s": 0,
        "docker.host": NOWHERE,
        "release.sources": '["pypi"]',
        **{key.replace("__", "."): value for key, value in changes.items()},
    }
    return [f"{key}={value}" for key, value in values.items()]


def tar_gz(*members: tuple[str, bytes] | tarfile.TarInfo) -> bytes:
    """An archive of any members, honest or not."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            tar.addfile(info, io.BytesIO(member[1]))
    return out.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    """A member that is no file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def content(folder: Path) -> dict[str, bytes]:
    """The content part of a release: every file that must be the same in every run over the same inputs."""
    return {path: data for path, data in files(folder).items() if not path.startswith("measurements/")}


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by relative path."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
