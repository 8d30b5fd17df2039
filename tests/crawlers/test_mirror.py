from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from git_server import Asked, GitServer, Handler, make_certificate
from histories import Upstream

from miner.core.errors import ConfigError, InfrastructureFault, Interrupted
from miner.core.reasons import Reason
from miner.core.settings import Github
from miner.crawlers.git_run import GitFault
from miner.crawlers.interface import Refused
from miner.crawlers.mirror import Mirror, Mirrors, Remote

pytestmark = pytest.mark.loopback

NOBODY = "1" * 40
BIG = "line\n" * 2000


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "served" / "o" / "r.git")


@pytest.fixture
def server(upstream: Upstream, tmp_path: Path) -> Iterator[GitServer]:
    with GitServer(tmp_path / "served") as server:
        yield server


def mirror_of(server: GitServer, tmp_path: Path, repo: str = "o/r", number: int = 1, **options: object) -> Mirror:
    remote = Remote(f"{server.url}/{repo}.git", number)
    return Mirror(tmp_path / "store.git", remote, **{"tries": 3, "wait_s": 0.01, **options})  # type: ignore[arg-type]


def test_history_comes_without_contents_and_contents_come_in_one_request(
    upstream: Upstream, server: GitServer, tmp_path: Path
) -> None:
    first = upstream.commit({"a": BIG, "b": "2"})
    last = upstream.ref("heads/main", upstream.commit({"a": "3", "b": "4"}, first))
    mirror = mirror_of(server, tmp_path)
    assert mirror.bring({"heads/main": last}) == frozenset()
    files = [*mirror.repo.entries(first), *mirror.repo.entries(last)]
    assert set(mirror.repo.sizes(file.oid for file in files).values()) == {None}
    server.asked.clear()
    mirror.bring_blobs([file.oid for file in files])
    assert len(server.fetches()) == 1
    assert {file.path: data for file, data in mirror.repo.blobs(mirror.repo.files(last))} == {"a": b"3", "b": b"4"}


def test_what_is_there_is_not_asked_for_again(upstream: Upstream, server: GitServer, tmp_path: Path) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    mirror = mirror_of(server, tmp_path)
    mirror.bring({"heads/main": last})
    mirror.bring_blobs([upstream.blob(b"1")])
    server.asked.clear()
    assert mirror_of(server, tmp_path).bring({"pull/1/merge": last}) == frozenset()
    mirror.bring_blobs([upstream.blob(b"1")])
    assert server.asked == []


def test_a_commit_that_no_name_leads_to_comes_by_its_id(upstream: Upstream, server: GitServer, tmp_path: Path) -> None:
    base = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    pushed_over = upstream.commit({"a": "2"}, base)
    upstream.repo.run("update-ref", "-d", "refs/heads/scratch")
    mirror = mirror_of(server, tmp_path)
    assert mirror.bring({"pull/1/head": pushed_over}) == frozenset()
    assert mirror.resolve("pull/1/head") == pushed_over


def test_what_is_gone_is_said_and_the_rest_comes_all_the_same(
    upstream: Upstream, server: GitServer, tmp_path: Path
) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    upstream.ref("tags/v1", last)
    mirror = mirror_of(server, tmp_path)
    wanted = {"pull/1/head": NOBODY, "pull/1/merge": last, "pull/2/head": "refs/pull/2/head"}
    also = {"tags/*": "refs/tags/*", "heads/old": "refs/heads/old"}
    assert mirror.bring(wanted, also=also) == {"pull/1/head", "pull/2/head"}
    assert mirror.resolve("pull/1/merge") == mirror.resolve("tags/v1") == last
    assert mirror.resolve("pull/1/head") is None


def test_names_of_two_repositories_of_a_network_stay_apart_and_share_their_objects(
    upstream: Upstream, server: GitServer, tmp_path: Path
) -> None:
    base = upstream.ref("heads/main", upstream.commit({"a": BIG}))
    fork = Upstream(tmp_path / "served" / "f" / "r.git")
    own = fork.ref("heads/main", fork.commit({"a": BIG, "b": "2"}, fork.commit({"a": BIG}, at=1_700_000_000)))
    mirror_of(server, tmp_path).bring({"heads/main": base})
    other = mirror_of(server, tmp_path, "f/r", 2)
    other.bring({"heads/main": own})
    assert (mirror_of(server, tmp_path).resolve("heads/main"), other.resolve("heads/main")) == (base, own)
    have = [one for one in server.fetches() if f"have {base}".encode() in one.body]
    assert have, "the fork was fetched without telling what is there"


def test_names_of_a_repository_come_also_where_its_fork_has_brought_all_commits(
    upstream: Upstream, server: GitServer, tmp_path: Path
) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    upstream.ref("tags/v1.0", last)
    fork = Upstream(tmp_path / "served" / "f" / "r.git")
    fork.repo.run("fetch", str(upstream.path), "refs/heads/main:refs/heads/main", env={"GIT_ALLOW_PROTOCOL": "file"})
    tags = {"tags/*": "refs/tags/*"}
    assert mirror_of(server, tmp_path, "f/r", 2).bring({"pull/1/merge": last}, also=tags) == frozenset()
    own = mirror_of(server, tmp_path)
    assert own.bring({"pull/7/merge": last}, also=tags) == frozenset()
    assert own.resolve("tags/v1.0") == last
    server.asked.clear()
    own.bring({"pull/7/merge": last}, also=tags)
    assert server.asked == []


def test_mirrors_of_a_forge_are_one_store_for_each_network(tmp_path: Path) -> None:
    mirrors = Mirrors(tmp_path, Github(url="https://forge.example/"))
    assert mirrors.of("o/r", 5, 3).path == mirrors.of("f/r", 6, 3).path == tmp_path / "3.git"
    assert mirrors.of("o/r", 5).path == tmp_path / "5.git"
    assert mirrors.of("o/r", 5).remote.url == "https://forge.example/o/r.git"
    for name in ("o/r.git?x=/../../secret", "../r", "o/..", "r", "o/r/s", ""):
        with pytest.raises(InfrastructureFault, match="no name of a repository"):
            mirrors.of(name, 5)


def status(code: int) -> Callable[[Handler, Asked], bool]:
    def trouble(handler: Handler, _asked: Asked) -> bool:
        handler.answer(code, {"Content-Type": "text/plain"}, b"no")
        return True

    return trouble


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (404, Reason.REPOSITORY_GONE),
        (410, Reason.REPOSITORY_GONE),
        (401, Reason.REPOSITORY_GONE),
        (451, Reason.REPOSITORY_UNAVAILABLE),
    ],
)
def test_a_repository_that_is_gone_is_refused_and_nobody_is_asked_for_a_password(
    server: GitServer, tmp_path: Path, code: int, reason: Reason
) -> None:
    server.trouble = status(code)
    with pytest.raises(Refused) as refused:
        mirror_of(server, tmp_path).bring({"pull/1/head": NOBODY})
    assert refused.value.reason is reason
    assert "Authorization" not in {key for one in server.asked for key in one.headers}


def html(handler: Handler, _asked: Asked) -> bool:
    handler.answer(200, {"Content-Type": "text/html"}, b"<html>You have exceeded a rate limit</html>")
    return True


def cut(handler: Handler, asked: Asked) -> bool:
    code, headers, body = handler.backend(asked)
    handler.answer(code, headers, body, cut=len(body) * 2 // 3 if asked.method == "POST" else None)
    return True


TROUBLES = {"503": status(503), "403": status(403), "429": status(429), "html": html, "cut": cut}


@pytest.mark.parametrize("kind", TROUBLES)
def test_trouble_is_a_fault_after_a_bound_of_tries(
    upstream: Upstream, server: GitServer, tmp_path: Path, kind: str
) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": BIG}))
    server.trouble = TROUBLES[kind]
    with pytest.raises(InfrastructureFault, match="failed 3 times") as fault:
        mirror_of(server, tmp_path).bring({"heads/main": last})
    assert fault.value.reason is Reason.MIRROR_FAILED


@pytest.mark.parametrize("kind", TROUBLES)
def test_trouble_that_passes_does_no_harm(upstream: Upstream, server: GitServer, tmp_path: Path, kind: str) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": BIG}))
    left = [1, 1]
    server.trouble = lambda handler, asked: bool(left) and bool(left.pop()) and TROUBLES[kind](handler, asked)
    mirror = mirror_of(server, tmp_path, tries=4)
    assert mirror.bring({"heads/main": last}) == frozenset()
    assert mirror.has(last)


def test_nothing_answers(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "s.git", Remote("http://127.0.0.1:9/o/r.git", 1), tries=2, wait_s=0.01)
    with pytest.raises(InfrastructureFault) as fault:
        mirror.bring({"heads/main": NOBODY})
    assert fault.value.reason is Reason.MIRROR_FAILED


def redirect(to: str) -> Callable[[Handler, Asked], bool]:
    def trouble(handler: Handler, asked: Asked) -> bool:
        if not asked.path.startswith("/old/"):
            return False
        handler.answer(301, {"Location": to + asked.path.removeprefix("/old/name.git")}, b"")
        return True

    return trouble


def test_a_renamed_repository_is_followed_on_its_own_host(
    upstream: Upstream, server: GitServer, tmp_path: Path
) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    server.trouble = redirect("/o/r.git")
    mirror = mirror_of(server, tmp_path, "old/name")
    mirror.bring({"heads/main": last})
    mirror.bring_blobs([upstream.blob(b"1")])
    assert mirror.repo.read(last, "a") == b"1"


def test_no_redirect_leads_to_another_host(upstream: Upstream, server: GitServer, tmp_path: Path) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    with GitServer(tmp_path / "served") as elsewhere:
        server.trouble = redirect(f"{elsewhere.url}/o/r.git")
        with pytest.raises(InfrastructureFault, match="301"):
            mirror_of(server, tmp_path, "old/name").bring({"heads/main": last})
        assert elsewhere.asked == []


def test_passwords_and_settings_of_the_user_are_not_used(
    upstream: Upstream, server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (home / ".gitconfig").write_text(
        f'[url "file:///nowhere/"]\ninsteadOf = {server.url}/\n[credential]\nhelper = "!id"\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_ASKPASS", "/bin/echo")
    mirror_of(server, tmp_path).bring({"heads/main": last})
    assert not {"Authorization", "authorization"} & {key for one in server.asked for key in one.headers}


def test_certificates_are_those_of_the_settings(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    certificate = make_certificate(tmp_path / "certificate.pem")
    monkeypatch.delenv("GIT_SSL_CAINFO", raising=False)
    with GitServer(tmp_path / "served", certificate=certificate, trouble=redirect("/o/r.git")) as server:
        with pytest.raises(InfrastructureFault, match="certificate"):
            mirror_of(server, tmp_path, tries=1).bring({"heads/main": last})
        forge = Github(url=server.url, ca_bundle=certificate, tries=2)
        for name in ("o/r", "old/name"):
            mirror = Mirrors(tmp_path / name.replace("/", "-"), forge).of(name, 1)
            assert mirror.bring({"heads/main": last}) == frozenset()
            assert mirror.has(last)


def test_a_remote_speaks_its_own_protocol_alone(
    upstream: Upstream, server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file:ext:http")
    mirror = mirror_of(server, tmp_path, tries=1)
    for other in (f"file://{tmp_path}/served/", f"ext::sh -c touch% {tmp_path}/ran% "):
        mirror.repo.run("config", "--replace-all", f"url.{other}.insteadOf", f"{server.url}/")
        with pytest.raises(InfrastructureFault, match="not allowed"):
            mirror.bring({"heads/main": last})
        mirror.repo.run("config", "--remove-section", f"url.{other}")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("url", ["ext::sh -c true", "ssh://host/o/r", "host:o/r", "/o/r", "ftp://host/o/r"])
def test_other_protocols_are_no_remotes(url: str) -> None:
    with pytest.raises(ConfigError, match="http, https or file"):
        Remote(url, 1)


def test_a_folder_is_only_read_and_need_not_be_set_up_for_partial_clones(upstream: Upstream, tmp_path: Path) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": BIG}))
    upstream.head("main")
    upstream.config("uploadpack.allowFilter", "false")
    upstream.config("core.hooksPath", str(tmp_path))
    before = {path: path.stat().st_mtime_ns for path in upstream.path.rglob("*")}
    for path in upstream.path.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o222)
    mirror = Mirror(tmp_path / "s.git", Remote(upstream.path.as_uri(), 1), tries=1)
    assert mirror.names() == {"HEAD": "refs/heads/main", "refs/heads/main": last, "refs/heads/scratch": last}
    mirror.bring({"heads/main": "refs/heads/main"})
    content = mirror.repo.entries(last)[0].oid
    assert not mirror.has(content)
    mirror.bring_blobs([content])
    assert mirror.repo.read(last, "a") == BIG.encode()
    assert {path: path.stat().st_mtime_ns for path in upstream.path.rglob("*")} == before


def test_a_content_that_the_remote_lacks_is_a_fault_that_names_it(upstream: Upstream, tmp_path: Path) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": BIG}))
    mirror = Mirror(tmp_path / "s.git", Remote(upstream.path.as_uri(), 1), tries=1)
    mirror.bring({"heads/main": last})
    with pytest.raises(InfrastructureFault, match=f"{NOBODY}, which its trees name") as fault:
        mirror.bring_blobs([NOBODY, mirror.repo.entries(last)[0].oid])
    assert fault.value.reason is Reason.MIRROR_FAILED


def damage(path: Path, kind: str) -> None:
    packs = sorted((path / "objects" / "pack").glob("*.pack"))
    for pack in packs:
        pack.chmod(0o644)
        if kind == "flipped":
            content = pack.read_bytes()
            pack.write_bytes(content[:40] + bytes([content[40] ^ 0xFF]) + content[41:])
        elif kind == "cut":
            pack.write_bytes(pack.read_bytes()[:30])
        elif kind == "gone":
            pack.unlink()
            pack.with_suffix(".idx").unlink()
    if kind == "config":
        (path / "config").write_text("[core\n")


@pytest.mark.parametrize("kind", ["flipped", "cut", "gone", "config"])
def test_a_damaged_store_is_made_again(upstream: Upstream, server: GitServer, tmp_path: Path, kind: str) -> None:
    first = upstream.commit({"a": BIG})
    last = upstream.ref("heads/main", upstream.commit({"a": "2"}, first))
    mirror = mirror_of(server, tmp_path)

    def work() -> bytes | None:
        mirror.bring({"heads/main": last})
        mirror.bring_blobs(mirror.repo.changed_blobs(first, last))
        return mirror.repo.read(last, "a")

    assert mirror.mending(work) == b"2"
    damage(mirror.path, kind)
    assert mirror.mending(work) == b"2"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_damage_shows_also_when_fetching(upstream: Upstream, server: GitServer, tmp_path: Path) -> None:
    first = upstream.ref("heads/main", upstream.commit({"a": BIG}))
    mirror = mirror_of(server, tmp_path)
    mirror.bring({"heads/main": first})
    damage(mirror.path, "flipped")
    last = upstream.ref("heads/main", upstream.commit({"a": "2"}, first))
    assert mirror.mending(lambda: mirror.bring({"heads/main": last})) == frozenset()
    assert mirror.repo.entries(last)


def test_damage_that_stays_is_a_fault(server: GitServer, tmp_path: Path) -> None:
    def work() -> None:
        raise GitFault("unable to read")

    with pytest.raises(InfrastructureFault, match="made again and is still no good") as fault:
        mirror_of(server, tmp_path).mending(work)
    assert fault.value.reason is Reason.MIRROR_FAILED


def test_a_branch_that_makes_way_for_a_folder_of_branches_is_no_obstacle(
    upstream: Upstream, server: GitServer, tmp_path: Path
) -> None:
    first = upstream.ref("heads/dev", upstream.commit({"a": "1"}))
    mirror = mirror_of(server, tmp_path)
    mirror.bring({"heads/dev": "refs/heads/dev"})
    upstream.drop("heads/dev")
    last = upstream.ref("heads/dev/next", upstream.commit({"a": "2"}))
    assert first != last
    mirror.mending(lambda: mirror.bring({"heads/dev/next": "refs/heads/dev/next"}))
    assert mirror.resolve("heads/dev/next") == last


def test_what_a_killed_command_left_is_tidied_up(upstream: Upstream, server: GitServer, tmp_path: Path) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    mirror = mirror_of(server, tmp_path)
    mirror.bring({"heads/main": last})
    left = [mirror.path / "packed-refs.lock", mirror.path / "objects/pack/tmp_pack_x"]
    left.append(mirror.path / "refs/repositories/1/pull/9/head.lock")
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    Path(f"{mirror.path}.busy").touch()
    assert mirror.bring({"pull/9/head": "refs/heads/main"}) == frozenset()
    assert not any(path.exists() for path in left)


def slow(handler: Handler, asked: Asked) -> bool:
    if b"command=fetch" in asked.body:
        time.sleep(3)
    return False


def test_a_command_that_takes_too_long_is_ended(upstream: Upstream, server: GitServer, tmp_path: Path) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    server.trouble = slow
    began = time.monotonic()
    with pytest.raises(InfrastructureFault, match=r"ended after 0\.1 seconds") as fault:
        mirror_of(server, tmp_path, timeout_s=0.1).bring({"heads/main": last})
    assert fault.value.reason is Reason.MIRROR_FAILED
    assert time.monotonic() - began < 2


def test_a_stop_ends_what_is_running(upstream: Upstream, server: GitServer, tmp_path: Path) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": "1"}))
    server.trouble = slow
    stopped = threading.Event()
    threading.Timer(0.2, stopped.set).start()
    with pytest.raises(Interrupted):
        mirror_of(server, tmp_path, stopped=stopped).bring({"heads/main": last})


def test_workers_share_a_mirror(upstream: Upstream, server: GitServer, tmp_path: Path) -> None:
    base = upstream.ref("heads/main", upstream.commit({"a": BIG}))
    heads = {n: upstream.ref(f"pull/{n}/head", upstream.commit({"a": f"{n}"}, base)) for n in range(1, 7)}

    def fetch(number: int) -> bytes | None:
        mirror = mirror_of(server, tmp_path)
        mirror.bring({f"pull/{number}/head": heads[number]}, also={"heads/main": "refs/heads/main"})
        mirror.bring_blobs(mirror.repo.changed_blobs(base, heads[number]))
        return mirror.repo.read(heads[number], "a")

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(fetch, heads)) == [f"{number}".encode() for number in heads]


HOLDER = """
import sys, time
from pathlib import Path
from miner.crawlers.mirror import Mirror, Remote
Mirror(Path(sys.argv[1]), Remote(sys.argv[2], 1), tries=1).bring({"heads/main": sys.argv[3]})
"""


def test_git_of_a_killed_process_keeps_the_lock_until_it_ends(
    upstream: Upstream, server: GitServer, tmp_path: Path
) -> None:
    last = upstream.ref("heads/main", upstream.commit({"a": BIG}))
    held, go = threading.Event(), threading.Event()

    def hold(_handler: Handler, asked: Asked) -> bool:
        if b"command=fetch" in asked.body and not held.is_set():
            held.set()
            go.wait(5)
        return False

    server.trouble = hold
    mirror = mirror_of(server, tmp_path)
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(mirror.path), mirror.remote.url, last])
    assert held.wait(10)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(mirror.bring, {"heads/main": last})
        time.sleep(0.2)
        assert not waiting.done()
        go.set()
        assert waiting.result(10) == frozenset()
    assert mirror.has(last)
