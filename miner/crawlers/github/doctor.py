"""What a crawl needs of the forge, each need looked at on its own: tokens, limits, clock, git, and what is assumed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from miner.core.errors import ForgeToken, InfrastructureFault, SweMinerError
from miner.core.memo import Clock, utc_now
from miner.core.settings import Github
from miner.crawlers.git_run import GitRunner, failed
from miner.crawlers.github.client import ForgeClient, RestReply
from miner.crawlers.github.client_wire import Origin
from miner.crawlers.github.doctor_assumptions import ASSUMPTIONS, Assumption
from miner.crawlers.github.doctor_known import Known, NotNamed
from miner.crawlers.github.limits import server_time
from miner.crawlers.github.tokens import tokens_from
from miner.sandbox.doctor import Check

_RESOURCES = ("core", "graphql", "search")
_SKEW_S = 60.0
_TRIES = 2
_GIT_TIMEOUT_S = 60.0
_OK = 200
_SAID = 300
_REPORT = "the crawl may miss or mistake things here: report what was seen to the maintainers"
_NO_SCOPE = "public data needs no scope: a classic token without any, or a fine-grained one with read access to public"


def checks(
    settings: Github,
    environ: Mapping[str, str],
    *,
    known: Known | None = None,
    clock: Clock = utc_now,
    sleep: Callable[[float], object] | None = None,
) -> tuple[Check, ...]:
    """Look at everything; one failed check does not keep the others from being made.

    Args:
        settings: where the forge is.
        environ: holds the tokens.
        known: public data of this forge; that of GitHub by default.
        clock: the time of this machine.
        sleep: waits between two tries.
    """
    known = known or Known()
    brief = settings.model_copy(update={"tries": min(_TRIES, settings.tries), "max_wait_s": 0.0})
    try:
        tokens = tokens_from(settings, environ)
        clients = [ForgeClient(brief, tokens=(token,), clock=clock, sleep=sleep) for token in tokens]
    except SweMinerError as error:
        return (_failed("forge tokens", error), *check_git(settings, known))
    names = " or ".join(settings.token_env)
    if not clients:
        missing = Check(name="forge tokens", ok=False, detail=f"none in {names}", next_step=ForgeToken.next_step)
        return (missing, *check_git(settings, known))
    found = [Check(name="forge tokens", ok=True, detail=f"{len(clients)} in {names}")]
    works: list[ForgeClient] = []
    for number, client in enumerate(clients, 1):
        check, reply = check_token(number, client)
        found.append(check)
        if reply is not None:
            works.append(client)
            if len(works) == 1:
                found.append(check_clock(reply, clock()))
    found += check_git(settings, known)
    if works:
        found += [check_assumption(assumption, works[0], known) for assumption in ASSUMPTIONS]
    return tuple(found)


def check_token(number: int, client: ForgeClient) -> tuple[Check, RestReply | None]:
    """Whether the forge takes a token; the second value is what it answered."""
    name = f"forge token {number}"
    try:
        reply = client.get("/rate_limit")
    except InfrastructureFault as error:
        return _failed(name, error), None
    said = [_scopes(reply.headers), _left(reply)]
    if expires := reply.headers.get("github-authentication-token-expiration"):
        said.append(f"expires {expires}")
    return Check(name=name, ok=True, detail="; ".join(said)), reply


def check_clock(reply: RestReply, now: datetime) -> Check:
    """Whether the clocks agree: months, watermarks and the times of facts go by ours."""
    there = server_time(reply.headers)
    if there is None:
        return Check(name="clock", ok=True, detail="the forge does not say what time it is")
    off_s = (now - there).total_seconds()
    ok = abs(off_s) <= _SKEW_S
    return Check(
        name="clock",
        ok=ok,
        detail=f"{abs(off_s):.0f} s {'ahead of' if off_s > 0 else 'behind'} the forge",
        next_step="" if ok else "set this machine's clock (chrony, ntp)",
    )


def check_git(settings: Github, known: Known) -> tuple[Check, ...]:
    """Whether git reads a public repository of the forge, and gets a commit by its id that no branch holds."""
    url = f"{settings.url.rstrip('/')}/{known.repository}.git"
    name = "forge by git"
    try:
        with _git_for(settings) as (git, env):
            status, out, err = git.run(("ls-remote", "--quiet", url, "HEAD"), env=env)
            if failed(status, err) or not out:
                said = " ".join(err.split())[-_SAID:] or "no HEAD"
                next_step = "check the network and github.url"
                return (Check(name=name, ok=False, detail=f"{url}: {said}", next_step=next_step),)
            found = Check(name=name, ok=True, detail=f"{url}: HEAD is {out.split()[0].decode()}")
            return found, _check_fetch(git, env, url, known.replaced)
    except SweMinerError as error:
        return (_failed(name, error),)


def _check_fetch(git: GitRunner, env: Mapping[str, str], url: str, commit: str | None) -> Check:
    name = "forge: fetch-by-id"
    assumed = "commits that a force-push replaced can be fetched by their ids"
    if commit is None:
        return Check(name=name, ok=True, detail=f"{assumed}: not looked at, since replaced is not named")
    status, _, err = git.run(("fetch", "--quiet", "--depth=1", "--no-tags", "--filter=tree:0", url, commit), env=env)
    ok = not failed(status, err)
    seen = f"{commit} was fetched" if ok else " ".join(err.split())[-_SAID:]
    return Check(name=name, ok=ok, detail=f"{assumed}: {seen}", next_step="" if ok else _REPORT)


@contextmanager
def _git_for(settings: Github) -> Iterator[tuple[GitRunner, dict[str, str]]]:
    """Return git on an empty repository, and what it needs to reach the forge without any login."""
    scheme = Origin.of(settings.url).scheme
    with tempfile.TemporaryDirectory() as folder:
        env = {"GIT_ALLOW_PROTOCOL": scheme, "HOME": folder}
        if settings.ca_bundle is not None:
            env["GIT_SSL_CAINFO"] = str(settings.ca_bundle.absolute())
        git = GitRunner(Path(folder), timeout_s=_GIT_TIMEOUT_S)
        git.run(("init", "--quiet", "--bare"))
        yield git, env


def check_assumption(assumption: Assumption, client: ForgeClient, known: Known) -> Check:
    """Whether the forge does what the crawl assumes."""
    name = f"forge: {assumption.name}"
    try:
        ok, seen = assumption.look(client, known)
    except InfrastructureFault as error:
        return _failed(name, error)
    except NotNamed as error:
        return Check(name=name, ok=True, detail=f"{assumption.assumed}: not looked at, since {error} is not named")
    except (LookupError, TypeError, AttributeError) as error:
        ok, seen = False, f"an answer of another shape ({type(error).__name__}: {error})"
    return Check(
        name=name,
        ok=ok,
        detail=f"{assumption.assumed}: {seen}",
        next_step="" if ok else _REPORT,
    )


def _failed(name: str, error: SweMinerError) -> Check:
    return Check(name=name, ok=False, detail=str(error), next_step=error.next_step)


def _scopes(headers: Mapping[str, str]) -> str:
    """Say what a token may do, as far as the forge says it: only classic tokens have scopes."""
    scopes = headers.get("x-oauth-scopes")
    if scopes is None:
        return "scopes not stated (a fine-grained token, or one of an app)"
    return f"scopes {scopes} ({_NO_SCOPE})" if scopes.strip() else "no scopes (enough for public data)"


def _left(reply: RestReply) -> str:
    """Say what is left of each limit."""
    if reply.status != _OK:
        return "the forge has no limits"
    resources: dict[str, Any] = reply.data.get("resources") or {}
    parts = [
        f"{name} {found.get('remaining')} of {found.get('limit')}"
        for name in _RESOURCES
        if isinstance(found := resources.get(name), dict)
    ]
    return f"left: {', '.join(parts)}"
