"""What is fetched of GitHub's contract is what was pinned, or an error."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from forge.contract import GRAPHQL, contract
from forge.exchange import Reply
from forge.handler import Http, handler_of


def packed(text: str) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w:gz") as tar:
        info = tarfile.TarInfo(GRAPHQL.member)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
    return plain.getvalue()


def test_a_package_is_fetched_once_and_only_as_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed("type Query { a: Int }")
    asked: list[str] = []

    def handle(method: str, path: str, *rest: Any) -> Reply:
        asked.append(path)
        return Reply(200, data, {"content-type": "application/octet-stream"})

    handler: type[BaseHTTPRequestHandler] = handler_of(handle)
    with Http.started(handler) as registry:
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"http://127.0.0.1:{registry.server_address[1]}/")
        monkeypatch.setenv("PATH", "")  # no npm
        with pytest.raises(ValueError, match="has the integrity"):
            contract(GRAPHQL, tmp_path)
        assert list(tmp_path.iterdir()) == []
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        package = replace(GRAPHQL, integrity=integrity)
        for _ in range(2):
            assert contract(package, tmp_path).read_text() == "type Query { a: Int }"
    assert asked == ["/@octokit/graphql-schema/-/graphql-schema-15.26.1.tgz"] * 2
