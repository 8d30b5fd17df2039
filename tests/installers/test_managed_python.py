"""Builds that uv downloads, from a mirror on loopback: the listed one, checked, and never waited for twice."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from bench import OWN_PYTHON

from installers import doctor, managed_python
from installers.managed_python import reached
from installers.pythons import Build, Python
from miner.core.settings import Settings, load_settings

SYSCONFIG = """\
# system configuration generated and used by the sysconfig module
build_time_vars = {'prefix': '/install', 'LIBDIR': '/install/lib'}
"""
FILES = {
    "bin/python3.8": "#!/bin/sh\n",
    "include/python3.8/patchlevel.h": '#define PY_VERSION "3.8.20"\n',
    "lib/python3.8/_sysconfigdata__linux_x86_64-linux-gnu.py": SYSCONFIG,
}


def archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, text in FILES.items():
            info = tarfile.TarInfo(f"python/{path}")
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


ARCHIVE = archive()
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()


@dataclass
class Mirror:
    url: str
    status: int = 200
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(f"{self.command} {self.path}")
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(ARCHIVE)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(ARCHIVE)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Mirror(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", found.url)
    monkeypatch.setattr(managed_python, "_unreached", {})
    yield found
    server.shutdown()
    server.server_close()


def python(sha256: str = DIGEST, architecture: str = "amd64") -> Python:
    return Python(
        version="3.8",
        executable="/opt/python/3.8/bin/python3.8",
        released=date(2019, 10, 14),
        end_of_life=date(2024, 10, 7),
        managed=Build(release="3.8.20", build="20241002", sha256={architecture: sha256}),
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(overrides=[f"paths.work={tmp_path}"])


def install(settings: Settings, folder: Path, asked: Python) -> Path | str:
    return managed_python.managed_python(settings, "amd64", asked, folder)


def test_listed_build_is_installed(mirror: Mirror, settings: Settings, tmp_path: Path) -> None:
    found = install(settings, tmp_path / "here", python())
    assert isinstance(found, Path)
    assert (found / "include/python3.8/patchlevel.h").read_text() == FILES["include/python3.8/patchlevel.h"]
    [asked] = mirror.asked
    assert asked.startswith("GET /20241002/cpython-3.8.20%2B20241002-x86_64-unknown-linux-gnu-")


def test_archive_with_another_digest_is_refused(mirror: Mirror, settings: Settings, tmp_path: Path) -> None:
    said = install(settings, tmp_path / "here", python(sha256="0" * 64))
    assert isinstance(said, str)
    assert "Hash mismatch" in said


def test_mirror_without_the_build_is_asked_again_for_another(
    mirror: Mirror, settings: Settings, tmp_path: Path
) -> None:
    mirror.status = 404
    assert "404" in str(install(settings, tmp_path / "one", python()))
    mirror.status = 200
    assert isinstance(install(settings, tmp_path / "two", python()), Path)


def test_mirror_that_is_not_reached_is_not_asked_again(
    mirror: Mirror, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", "http://127.0.0.1:1")
    first = install(settings, tmp_path / "one", python())
    assert isinstance(first, str)
    monkeypatch.setattr(managed_python.uv, "find_uv_bin", lambda: pytest.fail("asked again"))
    assert install(settings, tmp_path / "two", python()) == first


def test_build_of_another_architecture_is_not_listed(mirror: Mirror, settings: Settings, tmp_path: Path) -> None:
    assert "no build is listed for amd64" in str(install(settings, tmp_path, python(architecture="arm64")))
    assert mirror.asked == []


class TestDoctor:
    @pytest.fixture(autouse=True)
    def machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doctor, "host_architecture", lambda: "amd64")

    def test_mirror_that_answers_is_enough(self, mirror: Mirror, settings: Settings) -> None:
        check = doctor.check_pythons(settings, [OWN_PYTHON, python()])
        assert check.ok
        assert "its mirror answers" in check.detail
        assert mirror.asked[0].startswith("HEAD ")

    def test_folder_is_enough_and_what_it_lacks_is_said(
        self, mirror: Mirror, settings: Settings, tmp_path: Path
    ) -> None:
        mirror.status = 500
        header = tmp_path / "pythons" / "3.8.20" / "include/python3.8/patchlevel.h"
        for path, text in FILES.items():
            file = tmp_path / "pythons" / "3.8.20" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        assert header.exists()
        ours = load_settings(overrides=[f"paths.work={tmp_path}", f"paths.pythons={tmp_path / 'pythons'}"])
        other = python().model_copy(update={"version": "3.9"})
        check = doctor.check_pythons(ours, [OWN_PYTHON, python(), other])
        assert check.ok
        assert check.detail.endswith("not to be had: 3.9")

    def test_neither_is_a_failure_that_says_what_to_do(self, mirror: Mirror, settings: Settings) -> None:
        mirror.status = 404
        check = doctor.check_pythons(settings, [OWN_PYTHON, python()])
        assert not check.ok
        assert "paths.pythons" in check.next_step
        assert "404" in check.detail

    def test_where_no_others_are_asked_for_nothing_is_needed(self, mirror: Mirror, settings: Settings) -> None:
        assert doctor.check_pythons(settings, [OWN_PYTHON]).ok
        assert mirror.asked == []

    def test_machine_without_mmdebstrap_needs_a_base_image_of_its_own(
        self, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        check = doctor.check_packages(settings.docker)
        assert not check.ok
        assert check.next_step
        assert doctor.check_packages(settings.docker.model_copy(update={"base_image": "x@sha256:00"})).ok


def test_reached_names_the_host_that_does_not_answer(
    mirror: Mirror, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = python().managed
    assert build is not None
    assert reached(settings, build, "amd64") is None
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", "http://127.0.0.1:1")
    assert "127.0.0.1 does not give its builds" in str(reached(settings, build, "amd64"))
