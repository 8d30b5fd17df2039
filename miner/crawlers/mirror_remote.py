"""git's conversation with a remote: what is asked, how often, and what its complaints mean.

No other protocol is spoken than that of the remote, no redirect is followed to another host, nobody logs in, and no
submodule is looked at (https://git-scm.com/docs/git-config, https://git-scm.com/docs/partial-clone).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_attempt,
    stop_any,
    stop_when_event_set,
    wait_exponential,
)

from miner.core.errors import ConfigError, InfrastructureFault, Interrupted
from miner.core.reasons import Reason
from miner.crawlers.git_repo import GitRepo
from miner.crawlers.git_run import GitTimeout, checked, failed
from miner.crawlers.interface import Refused
from miner.crawlers.moved import moved_to

_SCHEMES = ("http", "https", "file")
_MAX_WAIT_S = 60.0
_CONFIG = (
    "protocol.version=2",
    "http.followRedirects=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
    "credential.helper=",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
    "fetch.unpackLimit=1",
)
_FETCH = (
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--refmap=",
    "--filter=blob:none",
)
# A folder need not be configured to serve partial clones, nor belong to the user of this program.
_UPLOAD_PACK = "git -c uploadpack.allowFilter=true -c 'safe.directory=*' upload-pack"

_NO_SUCH_OBJECT = re.compile(r"(?:not our ref|unadvertised object) ([0-9a-f]{40})")
_NO_SUCH_REF = re.compile(r"couldn't find remote ref (\S+)")
_MOVED = re.compile(r"returned error: 30[1278]\b")
_GONE = re.compile(
    r"repository '.*' not found|returned error: 4(?:01|04|10)\b|could not read Username|Authentication failed"
    r"|does not appear to be a git repository"
)
_BLOCKED = re.compile(r"returned error: 451\b")
_CONFLICT = re.compile(r"cannot lock ref|unable to resolve reference|not a git repository")

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Remote:
    """Where a repository is fetched from.

    Attributes:
        url: http, https or file.
        repository_id: keeps its names apart from those of other repositories in the same store.
        ca_bundle: certificates to trust; None: those of git.

    Raises:
        ConfigError: another protocol.
    """

    url: str
    repository_id: int
    ca_bundle: Path | None = None

    def __post_init__(self) -> None:
        if self.scheme not in _SCHEMES:
            raise ConfigError(
                f"repositories are fetched by {', '.join(_SCHEMES[:-1])} or {_SCHEMES[-1]}, not {self.url}"
            )

    @property
    def space(self) -> str:
        """What the names of this repository begin with."""
        return f"refs/repositories/{self.repository_id}"

    @property
    def scheme(self) -> str:
        """The one protocol that may be spoken."""
        return urlsplit(self.url).scheme


class Missing(Exception):
    """The remote does not have an object or a reference."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Unanswered(InfrastructureFault):
    """Every try has failed; the message is git's last complaint."""

    reason = Reason.MIRROR_FAILED


class _Transient(Exception):
    """Worth another try."""


class RemoteGit:
    """Asks a remote on behalf of a store, with a bound of tries.

    Args:
        repo: takes what is fetched.
        remote: is asked.
        tries: how often.
        wait_s: the first wait between two tries; it doubles.
        stopped: ends what is running.
    """

    def __init__(self, repo: GitRepo, remote: Remote, *, tries: int, wait_s: float, stopped: threading.Event) -> None:
        self._repo = repo
        self._remote = remote
        self._tries = tries
        self._wait_s = wait_s
        self._stopped = stopped
        self._url = remote.url

    def fetch(self, lock: int, specs: Sequence[str], oids: Collection[str] = ()) -> None:
        """Fetch references or commits, or else single objects, in one request.

        Args:
            lock: a file that git keeps open, so that its lock lives as long as git does.
            specs: `+source:name`.
            oids: objects that are asked for without anything that they need, and without telling what is there.

        Raises:
            Missing: the remote lacks one of these.
            Refused: the repository is gone.
            Unanswered: it cannot be fetched from now.
            GitFault: names of the store stand in the way of new ones.
        """
        more = ("--stdin",) if oids else ()
        feed = "".join(f"{oid}\n" for oid in oids).encode()
        negotiation = "fetch.negotiationAlgorithm=" + ("noop" if oids else "skipping")
        self._retried(lambda: self._ask((negotiation,), (*_FETCH, *more), specs, stdin=feed, keep_open=(lock,)))

    def names(self) -> dict[str, str]:
        """Return what the remote has names for: full reference -> id, and "HEAD" -> the reference that it points to.

        Raises:
            Refused: the repository is gone.
            Unanswered: it cannot be asked now.
        """
        out = self._retried(lambda: self._ask((), ("ls-remote", "--quiet", "--symref")))
        found: dict[str, str] = {}
        for line in out.decode("utf-8", "surrogateescape").split("\n"):
            value, _, name = line.partition("\t")
            if value.startswith("ref: "):
                found[name] = value.removeprefix("ref: ")
            elif name:
                found.setdefault(name, value)
        return found

    def _retried(self, attempt: Callable[[], _Answer]) -> _Answer:
        retrying = Retrying(
            sleep=sleep_using_event(self._stopped),
            stop=stop_any(stop_after_attempt(self._tries), stop_when_event_set(self._stopped)),
            wait=wait_exponential(multiplier=self._wait_s, max=_MAX_WAIT_S),
            retry=retry_if_exception_type(_Transient),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except GitTimeout as error:
            raise Unanswered(str(error)) from error
        except _Transient as error:
            if self._stopped.is_set():
                raise Interrupted("stopped while git was to ask once more") from error
            raise Unanswered(f"git failed {self._tries} times, last with: {error}") from error

    def _ask(
        self,
        config: Sequence[str],
        command: Sequence[str],
        args: Sequence[str] = (),
        *,
        stdin: bytes = b"",
        keep_open: Sequence[int] = (),
    ) -> bytes:
        """Run a git command that talks to the remote once, and return its output.

        Raises:
            _Transient: it is worth another try; other errors as `_explain` says.
        """
        name = f"r{self._remote.repository_id}"
        settings = (
            *_CONFIG,
            *config,
            f"remote.{name}.url={self._url}",
            f"remote.{name}.promisor=true",
            f"remote.{name}.partialclonefilter=blob:none",
        )
        upload_pack = (f"--upload-pack={_UPLOAD_PACK}",) if self._remote.scheme == "file" else ()
        env = {"GIT_ALLOW_PROTOCOL": self._remote.scheme, "HOME": str(self._repo.path)}  # no .netrc either
        if self._remote.ca_bundle is not None:
            env["GIT_SSL_CAINFO"] = str(self._remote.ca_bundle.absolute())
        line = (*(word for setting in settings for word in ("-c", setting)), *command, *upload_pack, name, *args)
        status, out, err = self._repo.attempt(*line, stdin=stdin, env=env, keep_open=keep_open)
        if failed(status, err):
            self._explain(status, err)
        return out

    def _explain(self, status: int, err: str) -> None:
        """Raise what the error output of git means."""
        missing = _NO_SUCH_OBJECT.search(err) or _NO_SUCH_REF.search(err)
        if missing:
            raise Missing(missing[1])
        if _MOVED.search(err) and self._url == self._remote.url:
            url = moved_to(self._url, self._remote.ca_bundle)
            if url is not None:
                self._url = url
                raise _Transient(f"the repository has moved to {url}")
        if _GONE.search(err):
            raise Refused(Reason.REPOSITORY_GONE, "the repository cannot be fetched: it is not there, or not public")
        if _BLOCKED.search(err):
            raise Refused(Reason.REPOSITORY_UNAVAILABLE, "the repository cannot be fetched: it is blocked (451)")
        if "No space left on device" in err or _CONFLICT.search(err):
            checked("fetch", status, b"", err)
        raise _Transient(err.strip()[-2000:])
