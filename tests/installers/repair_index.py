"""A package index on loopback for looking into files: wheels by ranges (or whole), source distributions, dates."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
import zipfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from installers.workshop import Workshop
from miner.core.blobs import BlobStore
from miner.core.settings import Settings, load_settings
from miner.sandbox.base_image import BaseImage
from miner.sandbox.image_archive import ImageConfig


class RepairIndex:
    """The index; a context manager. `ranges`: whether it sends ranges; `broken`: it answers with status 503."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.sent = 0
        self.ranges = True
        self.broken = False
        self.projects: dict[str, list[dict[str, Any]]] = {}
        self.files: dict[str, bytes] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/simple/"

    def __enter__(self) -> RepairIndex:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def wheel(
        self, name: str, version: str, files: Mapping[str, str | bytes], uploaded: str = "2020-01-01", **entry: Any
    ) -> None:
        """Publish a wheel with these files."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, text in files.items():
                archive.writestr(path, text)
        tag = entry.pop("tag", "py3-none-any")
        self._publish(name, version, f"{name}-{version}-{tag}.whl", packed.getvalue(), uploaded, **entry)

    def sdist(
        self, name: str, version: str, files: Mapping[str, str], uploaded: str = "2020-01-01", **entry: Any
    ) -> None:
        """Publish a source distribution with these files."""
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w") as archive:
            for path, text in files.items():
                info = tarfile.TarInfo(f"{name}-{version}/{path}")
                info.size = len(text.encode())
                archive.addfile(info, io.BytesIO(text.encode()))
        data = gzip.compress(plain.getvalue(), mtime=0)
        self._publish(name, version, f"{name}-{version}.tar.gz", data, uploaded, **entry)

    def _publish(self, name: str, version: str, filename: str, data: bytes, uploaded: str, **entry: Any) -> None:
        self.files[filename] = data
        stated = {
            "filename": filename,
            "url": f"../../files/{filename}",
            "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
            "size": len(data),
            "upload-time": f"{uploaded}T00:00:00.000000Z",
            "yanked": False,
            **entry,
        }
        self.projects.setdefault(name.replace("_", "-"), []).append(stated)


def _handler(index: RepairIndex) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append(self.path)
            name = self.path.rsplit("/", 1)[-1]
            project = re.fullmatch(r"/simple/([^/]+)/", self.path)
            if index.broken:
                self._send(503, b"on purpose", {})
            elif project is not None and project[1] in index.projects:
                page = {"meta": {"api-version": "1.1"}, "name": project[1], "files": index.projects[project[1]]}
                self._send(200, json.dumps(page).encode(), {"Content-Type": "application/vnd.pypi.simple.v1+json"})
            elif name in index.files:
                self._file(index.files[name])
            else:
                self._send(404, b"not found", {})

        def _file(self, data: bytes) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if asked is None or not index.ranges:
                self._send(200, data, {})
                return
            start, end = int(asked[1]), min(int(asked[2]), len(data) - 1)
            self._send(206, data[start : end + 1], {"Content-Range": f"bytes {start}-{end}/{len(data)}"})

        def _send(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
            index.sent += len(data)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


def settings_of(index: RepairIndex, work: Path) -> Settings:
    """Return settings that use this index, and wait for nothing."""
    return load_settings(overrides=[f"index.url={index.url}", f"paths.work={work}", "index.tries=2"])


def workshop_of(settings: Settings, work: Path) -> Workshop:
    """Return tools without an engine."""

    def room() -> Any:
        raise AssertionError("nothing is measured in a box here")

    base = BaseImage(
        image="x",
        digest="sha256:x",
        config=ImageConfig(architecture="amd64", created=0, diff_ids=(), notes=()),
        layers=(),
        packages="",
    )
    return Workshop(
        settings=settings,
        base=base,
        blobs=BlobStore(str(work / "blobs")),
        owner="test",
        scratch=work,
        base_cache=work,
        room=room,
    )
