"""The shapes of REST answers, with every field that GitHub's OpenAPI description requires.

https://github.com/github/rest-api-description
"""

from __future__ import annotations

from typing import Any

from forge.nodes import LicenseOf, actor_id, database_id, head_repository, id_of, number_of, url_of
from forge.records import Actor, ChangedFile, ClosedEvent, Comment, Commit, Issue, Pull
from forge.repository import Repo

_STATUS = {
    "ADDED": "added",
    "DELETED": "removed",
    "MODIFIED": "modified",
    "RENAMED": "renamed",
    "COPIED": "copied",
    "CHANGED": "changed",
}
_USER_URLS = ("followers", "following", "gists", "starred", "subscriptions", "repos", "events", "received_events")
_REPO_URLS = (
    "archive",
    "assignees",
    "blobs",
    "branches",
    "collaborators",
    "comments",
    "commits",
    "compare",
    "contents",
    "contributors",
    "deployments",
    "downloads",
    "events",
    "forks",
    "git_commits",
    "git_refs",
    "git_tags",
    "hooks",
    "issue_comment",
    "issue_events",
    "issues",
    "keys",
    "labels",
    "languages",
    "merges",
    "milestones",
    "notifications",
    "pulls",
    "releases",
    "stargazers",
    "statuses",
    "subscribers",
    "subscription",
    "tags",
    "teams",
    "trees",
)


def api(repo: Repo) -> str:
    """Return the address of a repository in the API."""
    return f"{repo.world.url}/api/v3/repos/{repo.full_name}"


def user(actor: Actor | None, web: str) -> dict[str, Any] | None:
    """Return a `simple-user`; None for a deleted account."""
    if actor is None:
        return None
    login = f"{actor.login}[bot]" if actor.kind == "Bot" else actor.login
    url = f"{web}/api/v3/users/{login}"
    return {
        "login": login,
        "id": actor_id(actor),
        "node_id": f"U_{actor.login}",
        "avatar_url": f"{web}/avatars/{login}",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{web}/{login}",
        "organizations_url": f"{url}/orgs",
        **{f"{name}_url": f"{url}/{name}" for name in _USER_URLS},
        "type": actor.kind,
        "site_admin": False,
    }


def license_of(repo: Repo) -> dict[str, Any] | None:
    """Return a `nullable-license-simple`."""
    if repo.license is None:
        return None
    found = LicenseOf(repo.license)
    return {"key": found.key, "name": found.name, "spdx_id": found.spdx_id, "url": None, "node_id": found.id}


def minimal(repo: Repo) -> dict[str, Any]:
    """Return a `repository`, as it stands inside of other answers and in searches."""
    url, web = api(repo), url_of(repo)
    return {
        "id": repo.repo_id,
        "node_id": id_of(repo),
        "name": repo.name,
        "full_name": repo.full_name,
        "private": repo.is_private,
        "owner": user(Actor(repo.owner, "Organization"), repo.world.url),
        "html_url": web,
        "description": repo.description or None,
        "fork": repo.parent is not None,
        "url": url,
        **{f"{name}_url": f"{url}/{name}" for name in _REPO_URLS},
        "git_url": f"{web}.git".replace("http://", "git://"),
        "ssh_url": f"git@forge.example:{repo.full_name}.git",
        "clone_url": f"{web}.git",
        "svn_url": web,
        "mirror_url": web if repo.is_mirror else None,
        "homepage": None,
        "language": max(repo.languages, key=repo.languages.__getitem__, default=None),
        "forks_count": repo.forks,
        "forks": repo.forks,
        "stargazers_count": repo.stars,
        "watchers_count": repo.stars,
        "watchers": repo.stars,
        "size": repo.disk_kb,
        "default_branch": repo.default_branch,
        "open_issues_count": 0,
        "open_issues": 0,
        "is_template": repo.is_template,
        "topics": [],
        "has_issues": repo.has_issues,
        "has_projects": True,
        "has_wiki": True,
        "has_pages": False,
        "has_downloads": True,
        "has_discussions": False,
        "archived": repo.is_archived,
        "disabled": repo.is_disabled,
        "visibility": "private" if repo.is_private else "public",
        "pushed_at": repo.pushed_at,
        "created_at": repo.created_at,
        "updated_at": repo.updated_at,
        "license": license_of(repo),
        "web_commit_signoff_required": False,
        "allow_forking": True,
        "permissions": {"admin": False, "maintain": False, "push": False, "triage": False, "pull": True},
    }


def full(repo: Repo) -> dict[str, Any]:
    """Return a `full-repository`."""
    family = {} if repo.parent is None else {"parent": minimal(repo.parent), "source": minimal(repo.root)}
    return {**minimal(repo), **family, "network_count": repo.forks, "subscribers_count": 1, "temp_clone_token": None}


def found_repository(repo: Repo) -> dict[str, Any]:
    """Return a `repo-search-result-item`."""
    return {**minimal(repo), "score": 1.0}


def _side(pull: Pull, repo: Repo | None, ref: str, sha: str) -> dict[str, Any]:
    owner = None if repo is None else Actor(repo.owner, "Organization")
    return {
        "label": f"{repo.owner if repo else 'unknown'}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(owner, pull.repo.world.url),
        "repo": None if repo is None else minimal(repo),
    }


def _labels(item: Issue | Pull) -> list[dict[str, Any]]:
    return [
        {
            "id": number_of(name),
            "node_id": f"LA_{item.repo.repo_id}_{name}",
            "url": f"{api(item.repo)}/labels/{name}",
            "name": name,
            "description": "",
            "color": "ededed",
            "default": False,
        }
        for name in item.labels
    ]


def pull_simple(pull: Pull) -> dict[str, Any]:
    """Return a `pull-request-simple`, as it stands in lists."""
    repo, web = pull.repo, url_of(pull)
    url, issue = f"{api(repo)}/pulls/{pull.number}", f"{api(repo)}/issues/{pull.number}"
    links = {
        "self": url,
        "html": web,
        "issue": issue,
        "comments": f"{issue}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{api(repo)}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": f"{api(repo)}/statuses/{pull.head_oid}",
    }
    return {
        "url": url,
        "id": database_id(pull),
        "node_id": id_of(pull),
        "html_url": web,
        "diff_url": f"{web}.diff",
        "patch_url": f"{web}.patch",
        "issue_url": issue,
        "commits_url": links["commits"],
        "review_comments_url": links["review_comments"],
        "review_comment_url": links["review_comment"],
        "comments_url": links["comments"],
        "statuses_url": links["statuses"],
        "number": pull.number,
        "state": "open" if pull.state == "OPEN" else "closed",
        "locked": pull.locked,
        "title": pull.title,
        "user": user(pull.author, repo.world.url),
        "body": pull.body or None,
        "labels": _labels(pull),
        "milestone": None,
        "active_lock_reason": None,
        "created_at": pull.created_at,
        "updated_at": pull.updated_at,
        "closed_at": pull.closed_at,
        "merged_at": pull.merged_at,
        "merge_commit_sha": pull.merge_commit.oid if pull.merge_commit else None,
        "assignee": None,
        "assignees": [],
        "requested_reviewers": [],
        "requested_teams": [],
        "head": _side(pull, head_repository(pull), pull.head_ref, pull.head_oid),
        "base": _side(pull, repo, pull.base_ref, pull.base_oid),
        "_links": {name: {"href": href} for name, href in links.items()},
        "author_association": "CONTRIBUTOR",
        "auto_merge": None,
        "draft": False,
    }


def pull_full(pull: Pull) -> dict[str, Any]:
    """Return a `pull-request`."""
    merged = pull.state == "MERGED"
    return {
        **pull_simple(pull),
        "merged": merged,
        "mergeable": None,
        "rebaseable": None,
        "mergeable_state": "unknown",
        "merged_by": user(Actor("octocat"), pull.repo.world.url) if merged else None,
        "comments": len(pull.comments),
        "review_comments": 0,
        "maintainer_can_modify": False,
        "commits": len(pull.commits),
        "additions": sum(file.additions for file in pull.files),
        "deletions": sum(file.deletions for file in pull.files),
        "changed_files": len(pull.files),
    }


def issue(item: Issue | Pull) -> dict[str, Any]:
    """Return an `issue`: every pull request is one too, with the key `pull_request`."""
    repo, web = item.repo, url_of(item)
    url = f"{api(repo)}/issues/{item.number}"
    reason = item.state_reason.lower() if isinstance(item, Issue) and item.state_reason else None
    value = {
        "url": url,
        "repository_url": api(repo),
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": web,
        "id": database_id(item),
        "node_id": id_of(item),
        "number": item.number,
        "title": item.title,
        "user": user(item.author, repo.world.url),
        "labels": _labels(item),
        "state": "open" if item.state == "OPEN" else "closed",
        "locked": item.locked,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": len(item.comments),
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "closed_at": item.closed_at,
        "author_association": "CONTRIBUTOR",
        "active_lock_reason": None,
        "body": item.body or None,
        "closed_by": None,
        "timeline_url": f"{url}/timeline",
        "performed_via_github_app": None,
        "state_reason": reason,
    }
    if isinstance(item, Pull):
        value["pull_request"] = {
            "url": f"{api(repo)}/pulls/{item.number}",
            "html_url": web,
            "diff_url": f"{web}.diff",
            "patch_url": f"{web}.patch",
            "merged_at": item.merged_at,
        }
    return value


def found_issue(item: Issue | Pull) -> dict[str, Any]:
    """Return an `issue-search-result-item`."""
    return {**issue(item), "score": 1.0}


def comment(on: Issue | Pull, made: Comment) -> dict[str, Any]:
    """Return an `issue-comment`."""
    url = f"{api(on.repo)}/issues/comments"
    key = f"IC_{on.repo.repo_id}_{on.number}_{made.number}"
    return {
        "id": number_of(key),
        "node_id": key,
        "url": f"{url}/{number_of(key)}",
        "html_url": f"{url_of(on)}#issuecomment-{number_of(key)}",
        "body": made.body,
        "user": user(made.author, on.repo.world.url),
        "created_at": made.created_at,
        "updated_at": made.last_edited_at or made.created_at,
        "issue_url": f"{api(on.repo)}/issues/{on.number}",
        "author_association": "NONE",
        "performed_via_github_app": None,
    }


def commit(repo: Repo, made: Commit, author: Actor | None) -> dict[str, Any]:
    """Return a `commit`."""
    url = f"{api(repo)}/commits/{made.oid}"
    name = author.login if author is not None else "ghost"
    person = {"name": name, "email": f"{name}@users.noreply.example"}
    return {
        "url": url,
        "sha": made.oid,
        "node_id": f"C_{repo.repo_id}_{made.oid}",
        "html_url": f"{url_of(repo)}/commit/{made.oid}",
        "comments_url": f"{url}/comments",
        "commit": {
            "url": f"{api(repo)}/git/commits/{made.oid}",
            "author": {**person, "date": made.authored_at},
            "committer": {**person, "date": made.committed_at},
            "message": made.message,
            "comment_count": 0,
            "tree": {"sha": made.tree or made.oid, "url": f"{api(repo)}/git/trees/{made.tree or made.oid}"},
            "verification": {
                "verified": False,
                "reason": "unsigned",
                "payload": None,
                "signature": None,
                "verified_at": None,
            },
        },
        "author": user(author, repo.world.url),
        "committer": user(author, repo.world.url),
        "parents": [
            {"sha": oid, "url": f"{api(repo)}/commits/{oid}", "html_url": f"{url_of(repo)}/commit/{oid}"}
            for oid in made.parents
        ],
    }


def file(pull: Pull, changed: ChangedFile) -> dict[str, Any]:
    """Return a `diff-entry`."""
    where = f"{pull.head_oid}/{changed.path}"
    value = {
        "sha": changed.oid,
        "filename": changed.path,
        "status": _STATUS[changed.change],
        "additions": changed.additions,
        "deletions": changed.deletions,
        "changes": changed.additions + changed.deletions,
        "blob_url": f"{url_of(pull.repo)}/blob/{where}",
        "raw_url": f"{url_of(pull.repo)}/raw/{where}",
        "contents_url": f"{api(pull.repo)}/contents/{changed.path}?ref={pull.head_oid}",
    }
    return value if changed.patch is None else {**value, "patch": changed.patch}


def closed_event(on: Issue, event: ClosedEvent) -> dict[str, Any]:
    """Return a `state-change-issue-event`: the commit stands in it, a pull request does not."""
    key = f"CE_{on.repo.repo_id}_{on.number}_{event.created_at}"
    by = event.commit
    return {
        "id": number_of(key),
        "node_id": key,
        "url": f"{api(on.repo)}/issues/events/{number_of(key)}",
        "actor": user(event.actor or Actor("ghost"), on.repo.world.url),
        "event": "closed",
        "commit_id": by[1] if by else None,
        "commit_url": f"{api(on.repo.world.by_id[by[0]])}/commits/{by[1]}" if by else None,
        "created_at": event.created_at,
        "performed_via_github_app": None,
        "state_reason": event.state_reason.lower() if event.state_reason else None,
    }
