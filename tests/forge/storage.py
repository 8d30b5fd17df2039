"""A world in a folder: `world.json`, and bare repositories beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from forge.records import Actor, ChangedFile, ClosedEvent, Comment, Commit, Edit, Issue, Pull
from forge.repository import Repo
from forge.world import World

FILE = "world.json"
_OF_REPO = (
    *("repo_id", "owner", "name", "names", "default_branch", "description", "languages", "license", "stars", "forks"),
    *("disk_kb", "created_at", "pushed_at", "updated_at", "is_archived", "is_template", "is_private", "is_disabled"),
    *("is_locked", "is_mirror", "is_empty", "has_issues", "deleted", "blocked", "branches"),
)
_NESTED = {
    "comments": Comment,
    "edits": Edit,
    "closed_events": ClosedEvent,
    "commits": Commit,
    "files": ChangedFile,
}


def save_world(world: World, folder: Path) -> None:
    """Write what a world knows to its folder; its git repositories lie there already."""
    stored = []
    for repo in world:
        stated = {name: getattr(repo, name) for name in _OF_REPO}
        stated["parent"] = None if repo.parent is None else repo.parent.repo_id
        stated["path"] = None if repo.path is None else str(repo.path.absolute().relative_to(folder.absolute()))
        stated["issues"] = [_stored(issue) for issue in repo.issues]
        stated["pulls"] = [_stored(pull) for pull in repo.pulls]
        stated["history"] = [asdict(commit) for commit in repo.history]
        stored.append(stated)
    text = json.dumps({"repositories": stored}, indent=1, ensure_ascii=False)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")


def load_world(folder: Path) -> World:
    """Read a world from its folder: it can be served and changed, but no history is written to it any more."""
    world = World(folder)
    parents: dict[int, int] = {}
    for stated in json.loads((folder / FILE).read_text(encoding="utf-8"))["repositories"]:
        kept = {name: stated[name] for name in _OF_REPO if name in stated and name not in ("repo_id", "owner", "name")}
        repo = world.bare(f"{stated['owner']}/{stated['name']}", repo_id=stated.get("repo_id"), **kept)
        if stated.get("path"):
            repo.path = folder / stated["path"]
        if stated.get("parent"):
            parents[repo.repo_id] = stated["parent"]
        for issue in stated.get("issues", []):
            repo.issues.put(_loaded(Issue, repo, issue))
        for pull in stated.get("pulls", []):
            repo.pulls.put(_loaded(Pull, repo, pull))
        repo.history = [_record(Commit, commit) for commit in stated.get("history", [])]
        repo.commits = {commit.oid: commit for commit in repo.history}
    for repo_id, parent in parents.items():
        world.by_id[repo_id].parent = world.by_id[parent]
    return world


def _stored(item: Issue | Pull) -> dict[str, Any]:
    return {field.name: _plain(getattr(item, field.name)) for field in fields(item) if field.name != "repo"}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(inside) for inside in value]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value


def _loaded(kind: Any, repo: Repo, stated: Mapping[str, Any]) -> Any:
    values: dict[str, Any] = {"repo": repo}
    for name, value in stated.items():
        if name in _NESTED:
            values[name] = [_record(_NESTED[name], inside) for inside in value]
        elif name == "author":
            values[name] = None if value is None else Actor(**value)
        elif name == "merge_commit":
            values[name] = None if value is None else _record(Commit, value)
        elif name == "closing":
            values[name] = [tuple(pair) for pair in value]
        elif name == "moved_to":
            values[name] = None if value is None else tuple(value)
        else:
            values[name] = value
    return kind(**values)


def _record(kind: Any, stated: Mapping[str, Any]) -> Any:
    values = dict(stated)
    for name in ("author", "actor"):
        if values.get(name) is not None:
            values[name] = Actor(**values[name])
    for name in ("pull", "commit", "parents"):
        if isinstance(values.get(name), list):
            values[name] = tuple(values[name])
    if "edits" in values:
        values["edits"] = [Edit(**edit) for edit in values["edits"]]
    return kind(**values)
