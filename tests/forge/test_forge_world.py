"""The world: what is built, kept in a folder and read again, or made when it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import requests

from forge import Forge, Limits, Pull, Repo, Scale, World, big_world, load_world, sample_project, save_world
from forge.conftest import TOKEN
from miner.crawlers.github import queries


def answers(world: World, names: list[str]) -> list[object]:
    with Forge(world, port=0, limits=Limits.none()) as forge:
        told: list[object] = []
        for name in names:
            owner, _, short = name.partition("/")
            variables = {"owner": owner, "name": short, "first": 50}
            sent = {"query": queries.PULLS, "variables": variables}
            answer = requests.post(forge.graphql_url, json=sent, headers=TOKEN, timeout=10).json()
            assert "errors" not in answer
            told.append(str(answer["data"]["repository"]).replace(forge.url, ""))
        return told


def test_a_world_is_the_same_after_it_was_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    sample_project(world, "octo/calc")
    repo = world.repository("octo/lib")
    issue = repo.issue(author=None)
    repo.comment(issue, "Yes.", at="2025-04-02T00:00:00Z", edits=[("2025-04-03T00:00:00Z", "No.")])
    repo.commit({"a": "b"}, at="2025-05-01T00:00:00Z", closes=[issue])
    repo.pull("Fix", "One", merge="squash", edits=[("2025-05-30T00:00:00Z", "Fixes #1")], closes=[issue])
    save_world(world, tmp_path)
    again = load_world(tmp_path)
    names = [repo.full_name for repo in world]
    assert [repo.full_name for repo in again] == names == ["octo/calc", "contributor/calc", "octo/lib"]
    assert answers(again, names) == answers(world, names)
    fork = again.find("contributor/calc")
    assert fork is not None
    assert fork.root is again.find("octo/calc")


def test_a_sample_project_has_one_of_each(tmp_path: Path) -> None:
    world = World(tmp_path)
    repo = sample_project(world, "octo/calc")
    merged = [pull for pull in repo.pulls if pull.state == "MERGED" and (pull.merged_at or "").startswith("2025-05")]
    assert len([pull for pull in merged if pull.closing and pull.base_ref == "main"]) == 4
    assert [len(pull.merge_commit.parents) for pull in merged[:3] if pull.merge_commit] == [1, 2, 1]
    assert repo.path is not None
    checked = subprocess.run(["git", "-C", repo.path, "fsck", "--strict"], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("git", [False, True])
def test_history_has_the_same_ids_with_and_without_git(git: bool, tmp_path: Path) -> None:
    repo = World(tmp_path if git else None).repository("octo/lib", files={"a": "1"})
    repo.pull("Fix", files={"b": "2"}, merge="merge", author="me")
    other = World().repository("octo/lib", files={"a": "1"})
    other.pull("Fix", files={"b": "2"}, merge="merge", author="me")
    assert repo.branches["main"] == other.branches["main"]


def test_files_are_counted_as_added_deleted_renamed(repo: Repo) -> None:
    repo.commit({"old.py": "same\n" * 9, "gone.py": "1\n2\n"}, at="2025-01-01T00:00:00Z")
    files = {"old.py": None, "moved.py": "same\n" * 9, "gone.py": None, "new.py": "1\n2\n3", "image.png": b"\0\1"}
    pull = repo.pull("Fix", files=files)
    assert [(file.path, file.change, file.additions, file.deletions) for file in pull.files] == [
        ("gone.py", "DELETED", 0, 2),
        ("image.png", "ADDED", 0, 0),
        ("moved.py", "RENAMED", 0, 0),
        ("new.py", "ADDED", 3, 0),
    ]


def test_a_pull_request_into_another_branch_closes_nothing(repo: Repo) -> None:
    repo.move("stable", repo.branches["main"])
    issue = repo.issue()
    repo.pull("Backport", base="stable", merge="merge", closes=[issue])
    assert (issue.state, issue.closed_events) == ("OPEN", [])


def test_numbers_are_shared_by_issues_and_pull_requests(repo: Repo) -> None:
    made = [
        repo.issue().number,
        repo.pull().number,
        repo.issue().number,
        repo.issue(number=70).number,
        repo.pull().number,
    ]
    assert made == [1, 2, 3, 70, 71]


def test_a_large_world_is_the_same_every_time() -> None:
    scale = Scale(repositories=20, pulls=400)
    first, second = big_world(scale), big_world(scale)
    assert (
        sum(len([head for head in repo.pulls.heads if (head.merged_at or "")[:7] == "2025-05"]) for repo in first)
        == 400
    )
    for one, other in zip(first, second, strict=True):
        assert [_told(pull) for pull in one.pulls] == [_told(pull) for pull in other.pulls]
    assert len({pull.merge_commit.oid for repo in first for pull in repo.pulls if pull.merge_commit}) > 400


def test_a_large_world_can_be_changed() -> None:
    repo = next(iter(big_world(Scale(repositories=1, pulls=50))))
    repo.touch(2, at="2025-08-08T00:00:00Z")
    keys, more = repo.pulls.after("updated", frozenset({"MERGED"}), None, 1, descending=True)
    assert (keys, more) == ([("2025-08-08T00:00:00Z", 2)], True)
    assert repo.pulls[2].updated_at == "2025-08-08T00:00:00Z"


def test_a_folder_is_served_by_hand(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "forge", str(tmp_path / "w"), "--port", "0"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url, _, rest = server.stdout.readline().partition(" ")
        try:
            assert rest.startswith("serves 4 repositories")
            assert requests.get(f"{url}/api/v3/repos/octo/calc", timeout=5).json()["full_name"] == "octo/calc"
            assert "GET /api/v3/repos/octo/calc" in server.stdout.readline()
            assert (tmp_path / "w" / "repositories.txt").read_text(encoding="utf-8") == "octo/calc\nocto/parts\n"
        finally:
            server.terminate()


def _told(pull: Pull) -> tuple[object, ...]:
    return pull.number, pull.body, pull.merged_at, pull.head_oid, [file.patch for file in pull.files], pull.closing
