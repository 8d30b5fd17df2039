"""Git over HTTP: clones, filters, pull refs of branches and forks that are gone, and how pull requests land."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge import File, Forge, Pull, Repo, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "forge")


@pytest.fixture
def forge(world: World) -> Iterator[Forge]:
    with Forge(world) as forge:
        yield forge


def git(*arguments: str | Path) -> str:
    environment = {
        **os.environ,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
    }
    done = subprocess.run(["git", *map(str, arguments)], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def of(repo: Repo) -> Path:
    assert repo.path is not None
    return repo.path


def two_commits(repo: Repo, how: str, **more: object) -> Pull:
    commits = [("one", {"lib.py": "value = 2\n"}), ("two", {"new.py": "x\n"})]
    return repo.pull("Fix", commits=commits, merge=how, upstream={"other.py": "y\n"}, **more)


def test_a_clone_has_what_was_made(forge: Forge, repo: Repo, tmp_path: Path) -> None:
    repo.pull(
        "Fix",
        files={
            "dir/deep/new.py": "x\n",
            "lib.py": None,
            "run": File(b"#!/bin/sh\n", "100755"),
            "link": File(b"run", "120000"),
        },
        merge="squash",
    )
    git("clone", "-q", f"{forge.url}/octo/lib.git", tmp_path / "clone")
    assert git("-C", tmp_path / "clone", "fsck", "--full", "--strict") == ""
    assert git("-C", tmp_path / "clone", "ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD").split("\n") == [
        "100644 dir/deep/new.py",
        "120000 link",
        "100755 run",
    ]
    assert git("-C", tmp_path / "clone", "rev-parse", "HEAD") == repo.branches["main"]


def test_partial_clones_get_blobs_later(forge: Forge, repo: Repo, tmp_path: Path) -> None:
    git("clone", "-q", "--bare", "--filter=blob:none", f"{forge.url}/octo/lib", tmp_path / "partial")
    missing = git("-C", tmp_path / "partial", "rev-list", "--objects", "--all", "--missing=print").count("?")
    assert missing == 1
    assert git("-C", tmp_path / "partial", "show", "HEAD:lib.py") == "value = 1"


def test_heads_of_deleted_forks_and_replaced_commits_are_fetched(forge: Forge, repo: Repo, tmp_path: Path) -> None:
    pull = two_commits(repo, "squash", fork="fan", replaced={"draft.py": "d\n"})
    fork = repo.world.find("fan/lib")
    assert fork is not None
    repo.world.delete(fork)
    git("init", "-q", "--bare", tmp_path / "mirror")
    git("-C", tmp_path / "mirror", "fetch", "-q", f"{forge.url}/octo/lib", f"refs/pull/{pull.number}/head")
    assert git("-C", tmp_path / "mirror", "rev-parse", "FETCH_HEAD") == pull.head_oid
    draft = next(oid for oid, commit in repo.commits.items() if commit.message == "Draft")
    git("-C", tmp_path / "mirror", "fetch", "-q", f"{forge.url}/octo/lib", draft)
    with pytest.raises(AssertionError, match="not found"):
        git("ls-remote", f"{forge.url}/fan/lib")


def test_a_fork_has_its_own_branch_and_the_objects_of_its_network(forge: Forge, repo: Repo, tmp_path: Path) -> None:
    pull = repo.pull("Fix", fork="fan", head="topic")
    assert git("ls-remote", f"{forge.url}/fan/lib", "refs/heads/topic").split()[0] == pull.head_oid
    git("clone", "-q", f"{forge.url}/fan/lib", tmp_path / "fork")
    assert not list((of(repo.world.fork(repo, "fan")) / "objects").glob("??"))


def test_an_old_name_is_redirected(forge: Forge, repo: Repo) -> None:
    repo.rename("octo/library")
    assert git("ls-remote", f"{forge.url}/octo/lib.git", "HEAD").split()[0] == repo.branches["main"]


def test_the_token_of_git_is_the_one_of_the_api(forge: Forge, repo: Repo) -> None:
    git("ls-remote", forge.url.replace("//", "//user:the-token@") + "/octo/lib")
    git("-c", "http.extraHeader=Authorization: Bearer the-token", "ls-remote", f"{forge.url}/octo/lib")
    assert {entry.token for entry in forge.log.of("git")} <= {0, 1}
    assert {entry.token for entry in forge.log.of("git")} >= {1}


def test_git_may_fail_too(forge: Forge, repo: Repo) -> None:
    forge.fail("git", "server-error", times=1, status=503)
    with pytest.raises(AssertionError, match="503"):
        git("ls-remote", f"{forge.url}/octo/lib")
    assert git("ls-remote", f"{forge.url}/octo/lib", "HEAD")
    repo.blocked = "dmca"
    with pytest.raises(AssertionError, match="403"):
        git("ls-remote", f"{forge.url}/octo/lib")


def test_nobody_pushes(forge: Forge, repo: Repo, tmp_path: Path) -> None:
    git("clone", "-q", f"{forge.url}/octo/lib", tmp_path / "clone")
    with pytest.raises(AssertionError):
        git("-C", tmp_path / "clone", "push", "-q", "origin", "HEAD:refs/heads/new")


def test_a_merge_commit_joins_the_head(repo: Repo) -> None:
    pull = two_commits(repo, "merge")
    assert pull.merge_commit is not None
    first, second = git("-C", of(repo), "show", "-s", "--format=%P", pull.merge_commit.oid).split()
    assert second == pull.head_oid
    assert git("-C", of(repo), "merge-base", first, second) == pull.base_oid
    assert git("-C", of(repo), "show", f"{pull.merge_commit.oid}:other.py") == "y"


def test_a_squash_is_one_commit_on_the_tip(repo: Repo) -> None:
    pull = two_commits(repo, "squash")
    assert pull.merge_commit is not None
    assert pull.merge_commit.message == "Fix (#1)\n\n* one\n\n* two"
    assert git("-C", of(repo), "log", "--format=%s", "main").split("\n") == ["Fix (#1)", "Other work", "Start"]


def test_a_rebase_lands_every_commit_anew(repo: Repo) -> None:
    pull = two_commits(repo, "rebase")
    assert pull.merge_commit is not None
    assert git("-C", of(repo), "log", "--format=%s", "main").split("\n") == ["two", "one", "Other work", "Start"]
    assert pull.merge_commit.oid == repo.branches["main"] != pull.head_oid
    assert git("-C", of(repo), "show", "-s", "--format=%aI", "main") == "2025-05-08T11:51:00+00:00"


def test_a_rebase_may_drop_and_reorder_commits(repo: Repo) -> None:
    steps = [("one", {"1": "1"}), ("two", {"2": "2"}), ("three", {"3": "3"})]
    repo.pull("Fix", commits=steps, merge="rebase", landed=[2, 0])
    assert git("-C", of(repo), "log", "--format=%s", "main").split("\n") == ["one", "three", "Start"]


def test_a_merge_commit_may_change_more(repo: Repo) -> None:
    pull = repo.pull("Fix", files={"lib.py": "value = 2\n"}, merge="merge", extra={"evil.py": "e\n"})
    assert pull.merge_commit is not None
    assert git("-C", of(repo), "diff", "--name-only", pull.head_oid, pull.merge_commit.oid) == "evil.py"


def test_paths_and_contents_that_are_no_text(repo: Repo) -> None:
    name = b"caf\xe9.txt".decode(errors="surrogateescape")
    module = File(repo.branches["main"].encode(), "160000")
    files = {name: b"\xff\xfe\r\n", "module": module, ".gitattributes": "* text=auto\n"}
    pull = repo.pull("Fix", files=files, merge="squash")
    assert git("-C", of(repo), "fsck", "--full", "--strict").count("error") == 0
    listed = git("-C", of(repo), "ls-tree", "-r", "main")
    assert '"caf\\351.txt"' in listed
    assert f"160000 commit {module.data.decode()}\tmodule" in listed
    assert len(pull.files) == 3


def test_the_base_may_be_stated_as_the_tip(repo: Repo) -> None:
    pull = two_commits(repo, "squash", base_oid="tip")
    assert git("-C", of(repo), "show", "-s", "--format=%s", pull.base_oid) == "Other work"


def test_a_repository_from_elsewhere_is_served(forge: Forge, world: World, tmp_path: Path) -> None:
    git("init", "-q", "--bare", tmp_path / "real.git")
    world.mounted("else/where", tmp_path / "real.git")
    assert git("ls-remote", f"{forge.url}/else/where") == ""
