from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from miner.core.settings import Docker, Index, load_settings
from miner.sandbox import doctor
from miner.sandbox.doctor import Check, checks

JSON = "application/vnd.pypi.simple.v1+json"


def page(**fields: str) -> bytes:
    file = {"filename": "pluggy-1.0.0.tar.gz", "url": "pluggy-1.0.0.tar.gz", "hashes": {}, **fields}
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "pluggy", "files": [file]}).encode()


PAGE = page(**{"upload-time": "2024-01-01T00:00:00Z"})


@contextmanager
def index(status: int = 200, body: bytes = PAGE, content_type: str = JSON) -> Iterator[Index]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield Index(url=f"http://127.0.0.1:{server.server_port}/simple/")
    finally:
        server.shutdown()
        server.server_close()


def has_next_step(check: Check) -> bool:
    return not check.ok and bool(check.next_step)


def test_index_that_answers_with_a_page_is_ok() -> None:
    with index() as settings:
        assert doctor.check_index(settings).ok


@pytest.mark.parametrize(
    ("status", "body", "content_type"),
    [
        (404, b"", "text/html"),
        (503, b"", "text/html"),
        (200, b"<html>log in to this network first</html>", "text/html"),
        (200, b"\x89PNG", "image/png"),
        (200, b"{", JSON),
        (200, b'{"meta": {"api-version": "1.1"}, "name": "pluggy", "files": []}', JSON),
        (200, page(), JSON),
    ],
)
def test_answer_that_is_no_index_page_is_not_ok(status: int, body: bytes, content_type: str) -> None:
    with index(status, body, content_type) as settings:
        assert has_next_step(doctor.check_index(settings))


def test_index_that_does_not_answer_is_not_ok() -> None:
    check = doctor.check_index(Index(url="http://127.0.0.1:1/simple/"))
    assert has_next_step(check)
    assert "127.0.0.1:1" in check.detail


def test_ca_bundle_that_is_not_there_is_named() -> None:
    check = doctor.check_index(Index(url="https://127.0.0.1:1/simple/", ca_bundle=Path("/nonexistent.pem")))
    assert has_next_step(check)
    assert "/nonexistent.pem" in check.detail


@pytest.mark.parametrize("status", [200, 500])
def test_login_of_the_index_is_not_shown(status: int) -> None:
    with index(status) as settings:
        named = settings.model_copy(update={"url": str(settings.url).replace("//", "//me:s3cret@")})
        found = [doctor.check_index(named), doctor.check_way_out(named)]
    assert found[0].ok is (status == 200)
    assert has_next_step(found[1])
    assert "s3cret" not in str(found)


def test_proxy_of_the_environment_that_boxes_cannot_use_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Index(url="https://index.test/simple/")
    monkeypatch.setenv("https_proxy", "http://me:s3cret@127.0.0.1:3128")
    assert has_next_step(doctor.check_way_out(settings))
    monkeypatch.setenv("https_proxy", "http://me:s3cret@proxy.test:3128")
    check = doctor.check_way_out(settings)
    assert check.ok
    assert "proxy.test:3128" in check.detail
    assert "s3cret" not in check.detail


def test_without_an_engine_everything_else_is_still_looked_at(tmp_path: Path) -> None:
    with index() as reachable:
        settings = load_settings(environ={}).model_copy(
            update={"index": reachable, "docker": Docker(host="tcp://127.0.0.1:1")}
        )
        found = {check.name: check for check in checks(settings)}
    assert has_next_step(found["engine"])
    assert found["index"].ok
    assert {"disk", "git", "base image", "import names"} <= set(found)


def test_engine_that_cannot_limit_memory_is_not_ok() -> None:
    check = doctor.check_limits({"MemoryLimit": False, "PidsLimit": True, "CpuCfsQuota": True})
    assert has_next_step(check)
    assert "memory" in check.detail


@pytest.mark.parametrize(("megabytes", "ok"), [(8192, True), (8191, False)])
def test_all_workers_have_to_fit_into_memory(megabytes: int, ok: bool) -> None:
    settings = load_settings(
        overrides=["run.workers=2", "measure.test.memory_mb=4096", "measure.install.memory_mb=64"], environ={}
    )
    assert doctor.check_memory({"MemTotal": megabytes << 20}, settings).ok is ok


def test_disk_is_that_of_the_folder_that_will_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DISK_BYTES", 1)
    assert doctor.check_disk("disk", tmp_path / "not" / "there" / "yet").ok
    monkeypatch.setattr(doctor, "DISK_BYTES", 1 << 60)
    assert has_next_step(doctor.check_disk("disk", tmp_path))


def test_without_base_image_and_builder_there_is_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert has_next_step(doctor.check_base_image(Docker(), tmp_path))
    assert doctor.check_base_image(Docker(base_image="x@sha256:00"), tmp_path).ok
    (tmp_path / "key.json").write_text("{}")
    assert doctor.check_base_image(Docker(), tmp_path).ok


@pytest.mark.parametrize(
    ("says", "ok"),
    [
        ("echo git version 2.39.5", True),
        ("echo git version 2.31.8", False),
        ("echo nonsense", False),
        ("exit 1", False),
    ],
)
def test_git_has_to_be_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, ok: bool) -> None:
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\n{says}\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    check = doctor.check_git()
    assert check.ok is ok
    assert ok or check.next_step


def test_machine_without_git_is_told_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install git" in doctor.check_git().next_step


def test_our_import_names_are_ours_here() -> None:
    assert doctor.import_clash() is None
    assert doctor.check_import_names().ok


def test_foreign_package_before_ours_on_the_path_is_found(tmp_path: Path) -> None:
    (tmp_path / "validators").mkdir()
    (tmp_path / "validators" / "__init__.py").touch()
    code = "import sys; sys.path.insert(0, sys.argv[1]); from miner.sandbox import doctor; print(doctor.import_clash())"
    run = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert f"`import validators` finds {tmp_path}" in run.stdout


def test_foreign_distribution_with_our_import_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "validators-0.35.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: validators\nVersion: 0.35.0\n")
    (info / "top_level.txt").write_text("validators\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    check = doctor.check_import_names()
    assert has_next_step(check)
    assert "the package validators" in check.detail


@pytest.mark.docker
@pytest.mark.index
def test_machine_that_runs_the_tests_passes() -> None:
    assert [check for check in checks(load_settings()) if not check.ok] == []
