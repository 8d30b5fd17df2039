"""An interpreter that uv downloads: exactly the build that `configs/pythons.toml` names, checked by its sha256.

uv is told of that one build by a list of downloads of our own (uv reference, "python-downloads-json-url"), so that
another version of uv gets the same. A mirror that is not reached is not asked again while the program runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import requests
import structlog
import uv

from installers.pythons import Build, Python
from miner.core.index_access import ca_bundle
from miner.core.settings import Settings

_MIRROR = "https://github.com/astral-sh/python-build-standalone/releases/download"
_FAMILIES = {"amd64": "x86_64", "arm64": "aarch64"}
_TIMEOUT_S = 300.0
_CONNECT_S = 20
_LOOK_S = 10.0
_PASSED_ON = ("PATH", "UV_PYTHON_INSTALL_MIRROR", "http_proxy", "https_proxy", "all_proxy", "no_proxy")
_UNREACHABLE = ("error sending request", "dns error", "connection", "timed out", "timeout", "tls", "certificate")

_log = structlog.get_logger()
_guard = threading.Lock()
_unreached: dict[str, str] = {}
"""Mirror -> what was said when it was asked last, in vain."""


def managed_python(settings: Settings, architecture: str, python: Python, folder: Path) -> Path | str:
    """Return the folder of an interpreter that uv has put into `folder`, or why there is none."""
    build = python.managed
    if build is None or architecture not in build.sha256 or architecture not in _FAMILIES:
        return f"no build is listed for {architecture}"
    mirror = _mirror()
    with _guard:  # one download at a time; those who wait know whether the mirror was reached
        if mirror in _unreached:
            return _unreached[mirror]
        said = _install(settings, build, architecture, folder)
        if said is not None and any(word in said.lower() for word in _UNREACHABLE):
            _unreached[mirror] = said
    if said is not None:
        _log.warning("uv has not installed an interpreter", version=python.version, said=said)
        return said
    found = sorted(folder.glob(f"*/bin/python{python.version}"))
    return found[0].resolve().parents[1] if found else "uv installed something else"


def reached(settings: Settings, build: Build, architecture: str) -> str | None:
    """Return why a build cannot be downloaded here; None where it can. Nothing is downloaded."""
    family = _FAMILIES.get(architecture)
    if family is None:
        return f"no build is listed for {architecture}"
    url = _url(build, family).replace(_MIRROR, _mirror())
    if url.startswith("file:"):
        return None if Path(url2pathname(urlsplit(url).path)).exists() else f"{url} is not there"
    bundle = ca_bundle(settings.index)
    try:
        answer = requests.head(url, allow_redirects=True, timeout=_LOOK_S, verify=str(bundle) if bundle else True)
        answer.raise_for_status()
    except requests.RequestException as error:
        status = "" if error.response is None else f" {error.response.status_code}"
        return f"{urlsplit(url).hostname} does not give its builds ({type(error).__name__}{status})"
    return None


def _mirror() -> str:
    """Return where uv finds its builds (uv reference, "UV_PYTHON_INSTALL_MIRROR")."""
    return os.environ.get("UV_PYTHON_INSTALL_MIRROR", _MIRROR).rstrip("/")


def _install(settings: Settings, build: Build, architecture: str, folder: Path) -> str | None:
    """Have uv install a build into a folder; return what it said where it failed."""
    folder.mkdir(parents=True, exist_ok=True)
    listing, family = folder / "downloads.json", _FAMILIES[architecture]
    key = f"cpython-{build.release}-linux-{family}-gnu"
    listing.write_text(json.dumps({key: _download(build, family, build.sha256[architecture])}), encoding="utf-8")
    command = [uv.find_uv_bin(), "python", "install", key, "--install-dir", str(folder), "--no-bin", "--no-progress"]
    command += ["--python-downloads-json-url", str(listing), "--no-config", "--cache-dir", str(folder / "cache")]
    try:
        done = subprocess.run(
            command, env=_environment(settings), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"timed out after {_TIMEOUT_S:.0f} s"
    return None if done.returncode == 0 else " ".join(done.stderr.split())[-600:]


def _download(build: Build, family: str, sha256: str) -> Mapping[str, Any]:
    major, minor, patch = map(int, build.release.split("."))
    return {
        "name": "cpython",
        "arch": {"family": family, "variant": None},
        "os": "linux",
        "libc": "gnu",
        "major": major,
        "minor": minor,
        "patch": patch,
        "prerelease": "",
        "url": _url(build, family),
        "sha256": sha256,
        "variant": None,
        "build": build.build,
    }


def _url(build: Build, family: str) -> str:
    name = f"cpython-{build.release}%2B{build.build}-{family}-unknown-linux-gnu-install_only_stripped.tar.gz"
    return f"{_MIRROR}/{build.build}/{name}"


def _environment(settings: Settings) -> dict[str, str]:
    names = (*_PASSED_ON, *(name.upper() for name in _PASSED_ON))
    passed = {name: value for name in names if (value := os.environ.get(name))}
    bundle = ca_bundle(settings.index)
    certificates = {} if bundle is None else {"SSL_CERT_FILE": str(bundle)}
    limits = {"UV_HTTP_TIMEOUT": str(_CONNECT_S), "UV_HTTP_RETRIES": "1"}
    return {**passed, **certificates, **limits, "UV_PYTHON_DOWNLOADS": "manual", "HOME": "/nonexistent"}
