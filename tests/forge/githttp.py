"""Git over smart HTTP, by git's own server program.

https://git-scm.com/docs/git-http-backend
"""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from forge.exchange import Reply

_SETTINGS = {
    "uploadpack.allowFilter": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "http.receivepack": "false",
    "safe.directory": "*",
    "core.hooksPath": os.devnull,
}


def serve_git(path: Path, rest: str, method: str, query: str, headers: Mapping[str, str], body: bytes) -> Reply:
    """Answer a request for a bare repository.

    Args:
        rest: what follows the repository in the path, "/info/refs" or "/git-upload-pack".
    """
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    environment = {
        **os.environ,
        "GIT_PROJECT_ROOT": str(path.parent.absolute()),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_PROTOCOL": headers.get("git-protocol", ""),
        "PATH_INFO": f"/{path.name}{rest}",
        "QUERY_STRING": query,
        "REQUEST_METHOD": method,
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    }
    for index, (key, value) in enumerate(_SETTINGS.items()):
        environment[f"GIT_CONFIG_KEY_{index}"], environment[f"GIT_CONFIG_VALUE_{index}"] = key, value
    done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
    head, _, answer = done.stdout.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
    status = int(fields.pop("Status", "200").split()[0])
    return Reply(status if head else 500, answer, {name.lower(): value for name, value in fields.items()})


def diff_of(path: Path, base: str, head: str, *, patch: bool = False) -> bytes:
    """Return the diff of a pull request from its merge base, or its commits as mails (`patch`)."""
    if patch:
        command = ["format-patch", "--stdout", "--binary", f"{base}..{head}"]
    else:
        command = ["diff", "--no-ext-diff", "--no-textconv", "--full-index", "--binary", f"{base}...{head}"]
    environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(["git", "-C", str(path), *command], env=environment, capture_output=True, check=True)
    return done.stdout
