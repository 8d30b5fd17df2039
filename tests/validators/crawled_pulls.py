"""Builders for tests of rules about crawled pull requests: what a forge says, in a few words."""

from datetime import UTC, datetime

from miner.core.records import IssueLink
from miner.crawlers.github.answers import Crawled
from miner.crawlers.github.linking import Judged
from miner.crawlers.github.model import Actor, ChangedFile, Closer, Issue, Pull, Repository
from validators.interface import Case

WHEN = datetime(2025, 5, 3, 12, tzinfo=UTC)
ID = 7


def repository(**changes):
    """The repository `o/r`, whose default branch is `main`."""
    known = {"forge_id": ID, "node_id": "R_7", "full_name": "o/r", "default_branch": "main", "created_at": WHEN}
    return Repository(**{**known, **changes})


def issue(number=12, **changes):
    """An issue of `o/r`."""
    known = {"node_id": f"I_{number}", "repository_id": ID, "repository": "o/r", "title": "It breaks", "body": "So."}
    times = {"created_at": WHEN, "updated_at": WHEN}
    return Issue(**{"number": number, "url": "", "state": "CLOSED", **known, **times, **changes})


def closed_by(number, repository_id=ID):
    """A closed-event of an issue: a pull request closed it."""
    return Closer(at=WHEN, pull=number, repository_id=repository_id)


def files(*paths, change="MODIFIED"):
    """Changed files."""
    return tuple(ChangedFile(path=path, additions=1, deletions=1, change=change) for path in paths)


def pull(*paths, **changes):
    """Pull request 34 of `o/r`, merged into `main` by a person; the forge lists all of its files."""
    changed = files(*(paths or ("pkg/core.py", "tests/test_core.py")))
    known = {"node_id": "PR_34", "repository_id": ID, "repository": "o/r", "number": 34, "title": "Do not break"}
    times = {"created_at": WHEN, "updated_at": WHEN, "merged_at": WHEN}
    branches = {"base_branch": "main", "base_oid": "a" * 40, "head_branch": "fix", "head_oid": "b" * 40}
    author = Actor(login="ada", kind="User")
    told = {"body": "Fixes #12", "url": "", "files": changed, "changed_files": len(changed), "author": author}
    return Pull(**{**known, **times, **branches, **told, **changes})


def link(number=12, **changes):
    """What says that the pull request closes an issue."""
    known = {"provenance": "text", "where": "body:1", "text": f"Fixes #{number}", "confidence": "strong"}
    return IssueLink(**{"number": number, **known, **changes})


def judged(*links, **changes):
    """What was made of links; by default one to issue 12, which is there."""
    return Judged(**{"links": links or (link(),), "issues": (issue(),), **changes})


def crawled_case(of=None, instance_id="o__r-34", **changes):
    """A case of which only the crawl is known."""
    known = {"source": "github", "crawled": Crawled(repository=repository(), pull=of or pull()), "links": judged()}
    return Case(instance_id=instance_id, **{**known, **changes})
