"""How fast hours of GH Archive are read, and in how much memory; made hours of both shapes, ratios only.

    python benchmarks/gharchive.py [--events 40000] [--repeats 7]

The mix of events follows what was measured on real hours: 2024-09 for the fat shape (8 % of the events are of pull
requests, of which 43 % close them; 4 KB and 580 gzipped bytes an event), 2026-01 for the slim one (6 %; 240 gzipped
bytes). All readers run in one process, in turns; a ratio is that of their best processor times. Memory is the peak of a
process of its own.
"""

import argparse
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from isal import igzip
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from miner.crawlers.gharchive import Hints, HourArchive, hours_of, read_hour  # noqa: E402 - needs the path above

MONTH = "2025-05"
API = "https://api.github.com"
USER_LINKS = ("followers", "following", "gists", "starred", "subscriptions", "orgs", "repos", "received_events")
REPO_LINKS = re.findall(
    r"\w+",
    "forks keys collaborators teams hooks issue_events events assignees branches tags blobs git_tags git_refs trees"
    " statuses languages stargazers contributors subscribers subscription commits git_commits comments issue_comment"
    " contents compare merges archive downloads issues pulls milestones notifications labels releases deployments",
)
PULL_LINKS = ("self", "html", "issue", "comments", "review_comments", "review_comment", "commits", "statuses")


class Maker:
    """Makes events; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        letters = self._random.choices("etaoinshrdlucmfwypvbgk", weights=range(22, 0, -1), k=40000)
        sizes = self._random.choices(range(2, 11), k=6000)
        self._words = ["".join(letters[start * 6 : start * 6 + size]) for start, size in enumerate(sizes)]

    def text(self, words: int) -> str:
        return " ".join(self._random.choices(self._words, k=words))

    def sha(self) -> str:
        return f"{self._random.getrandbits(160):040x}"

    def node(self) -> str:
        return f"MDQ6{self._random.getrandbits(72):x}"

    def user(self, number: int) -> dict[str, Any]:
        login = f"{self._words[number % 6000]}{number % 97}"
        links = {f"{link}_url": f"{API}/users/{login}/{link}" for link in USER_LINKS}
        picture = f"https://avatars.githubusercontent.com/u/{number}?v=4"
        known = {"login": login, "id": number, "node_id": self.node(), "avatar_url": picture, "gravatar_id": ""}
        return {**known, "html_url": f"https://github.com/{login}", **links, "type": "User", "site_admin": False}

    def repository(self, number: int) -> dict[str, Any]:
        name = self.name(number)
        links = {f"{link}_url": f"{API}/repos/{name}/{link}{{/sha}}" for link in REPO_LINKS}
        known = {"id": number, "node_id": self.node(), "name": name.split("/")[1], "full_name": name, "private": False}
        numbers = (
            "size",
            "stargazers_count",
            "watchers_count",
            "forks_count",
            "open_issues_count",
            "forks",
            "watchers",
        )
        times = {f"{what}_at": f"2025-0{number % 4 + 1}-11T10:11:12Z" for what in ("created", "updated", "pushed")}
        flags = {f"has_{what}": True for what in ("issues", "projects", "downloads", "wiki", "pages", "discussions")}
        return {
            **known,
            "owner": self.user(number % 7919),
            "description": self.text(9),
            **links,
            **times,
            **{key: self._random.randrange(9999) for key in numbers},
            **flags,
            "language": ("Python", "Python", "TypeScript", "Go", None)[number % 5],
            "license": {"key": "mit", "name": "MIT License", "spdx_id": "MIT", "url": f"{API}/licenses/mit"},
            "topics": [],
            "visibility": "public",
            "default_branch": "main",
        }

    def name(self, number: int) -> str:
        return f"{self._words[number % 6000]}/{self._words[number * 7 % 5987]}"

    def side(self, repository: dict[str, Any], *, slim: bool) -> dict[str, Any]:
        """Make `head` or `base` of a pull request."""
        side = {"ref": "-".join(self.text(4).split()), "sha": self.sha()}
        if slim:
            url = f"{API}/repos/{repository['full_name']}"
            return {**side, "repo": {"id": repository["id"], "url": url, "name": repository["name"]}}
        return {**side, "user": self.user(self._random.randrange(10**8)), "repo": repository}

    def pull(self, repository: dict[str, Any], number: int, at: str, *, state: str, slim: bool) -> dict[str, Any]:
        """Make the payload of an event of a pull request."""
        url = f"{API}/repos/{repository['full_name']}/pulls/{number}"
        sides = {side: self.side(repository, slim=slim) for side in ("head", "base")}
        known = {"url": url, "id": self._random.getrandbits(31), "number": number}
        if slim:
            return {"action": state, "number": number, "pull_request": {**known, **sides}}
        merged, ended = state == "merged", state in ("merged", "closed")
        user = self.user(self._random.randrange(10**8))
        pull = {
            **known,
            "node_id": self.node(),
            "state": "closed" if ended else "open",
            "locked": False,
            "title": self.text(7),
            "user": user,
            "body": self.text(self._random.randrange(300)).replace(" e", "\r\n\r\n## "),
            "created_at": "2025-04-29T12:00:00Z",
            "updated_at": at,
            "closed_at": at if ended else None,
            "merged_at": at if merged else None,
            "merge_commit_sha": self.sha(),
            **{key: [] for key in ("assignees", "requested_reviewers", "requested_teams", "labels")},
            **sides,
            "_links": {link: {"href": f"{url}/{link}"} for link in PULL_LINKS},
            "author_association": "CONTRIBUTOR",
            "merged": merged,
            "mergeable_state": "unknown",
            "merged_by": user if merged else None,
            **{key: self._random.randrange(99) for key in ("comments", "commits", "additions", "changed_files")},
        }
        return {"action": "closed" if ended else state, "number": number, "pull_request": pull}

    def push(self, repository: dict[str, Any], *, slim: bool) -> dict[str, Any]:
        known = {"repository_id": repository["id"], "push_id": self._random.getrandbits(34), "ref": "refs/heads/main"}
        known |= {"head": self.sha(), "before": self.sha()}
        if slim:
            return known
        author = {"email": f"{self.text(1)}@users.noreply.example", "name": self.text(2)}
        shas = [self.sha() for _ in range(self._random.randint(1, 3))]
        url = f"{API}/repos/{repository['full_name']}/commits"
        commits = [{"sha": sha, "author": author, "message": self.text(9), "url": f"{url}/{sha}"} for sha in shas]
        return {**known, "size": len(shas), "commits": commits}

    def comment(self) -> dict[str, Any]:
        user = self.user(self._random.randrange(10**8))
        issue = {"user": user, "title": self.text(7), "body": self.text(150)}
        return {"action": "created", "issue": issue, "comment": {"user": user, "body": self.text(80)}}

    def payload(self, kind: str, repository: dict[str, Any], at: str, *, slim: bool) -> dict[str, Any]:
        number = self._random.randrange(1, 20000)
        if kind == "PullRequestEvent":
            state = self._random.choices(["opened", "merged", "closed"], weights=[57, 34, 9])[0]
            return self.pull(repository, number, at, state=state, slim=slim)
        if kind == "PullRequestReviewEvent":
            reviewed = self.pull(repository, number, at, state="created", slim=slim)
            return {**reviewed, "review": {"user": self.user(number), "body": self.text(20)}}
        if kind == "PushEvent":
            return self.push(repository, slim=slim)
        return self.comment() if kind == "IssueCommentEvent" else {"ref": self.text(2), "ref_type": "branch"}

    def event(self, count: int, at: str, *, slim: bool) -> dict[str, Any]:
        shares = {"PullRequestEvent": 6 if slim else 8, "PullRequestReviewEvent": 2 if slim else 4, "PushEvent": 60}
        shares |= {"IssueCommentEvent": 9, "CreateEvent": 12, "WatchEvent": 7, "DeleteEvent": 4}
        kind = self._random.choices(list(shares), weights=list(shares.values()))[0]
        repository = self.repository(self._random.randrange(3000) * 7919 + 10)
        actor = self.user(self._random.randrange(10**8))
        url = f"{API}/repos/{repository['full_name']}"
        return {
            "id": str(48 * 10**9 + count),
            "type": kind,
            "actor": {key: actor[key] for key in ("id", "login", "gravatar_id", "html_url", "avatar_url")},
            "repo": {"id": repository["id"], "name": repository["full_name"], "url": url},
            "payload": self.payload(kind, repository, at, slim=slim),
            "public": True,
            "created_at": at,
        }


def make_hour(path: Path, events: int, *, slim: bool) -> None:
    """Write an hour as the archive does: one compact object a line, gzip."""
    maker = Maker(events)
    with gzip.open(path, "wb", compresslevel=6) as file:
        for count in range(events):
            at = f"{MONTH}-01T00:{count * 60 // events:02}:{count % 60:02}Z"
            file.write(json.dumps(maker.event(count, at, slim=slim), separators=(",", ":")).encode() + b"\n")


def by_json(path: Path) -> int:
    """Count merges the plain way."""
    merges = 0
    with gzip.open(path) as file:
        for line in file:
            event = json.loads(line)
            if event["type"] == "PullRequestEvent":
                payload = event["payload"]
                merges += payload["action"] == "merged" or bool(payload["pull_request"].get("merged"))
    return merges


def decompressed(path: Path) -> int:
    """Only decompress, with isal."""
    size = 0
    with igzip.open(path) as file:
        while block := file.read(1 << 18):
            size += len(block)
    return size


def by_reader(path: Path) -> int:
    """Count merges with the reader of this project."""
    reading = read_hour(HourArchive(str(path.parent)), path.name.removesuffix(".json.gz"))
    return sum(1 for _ in reading)


READERS: dict[str, Callable[[Path], int]] = {
    "gzip + json": by_json,
    "isal alone": decompressed,
    "this reader": by_reader,
}


def best_times(path: Path, repeats: int) -> dict[str, float]:
    """Run the readers in turns; return the best time of each."""
    best = dict.fromkeys(READERS, float("inf"))
    for _ in range(repeats):
        for name, reader in READERS.items():
            start = time.process_time()
            reader(path)
            best[name] = min(best[name], time.process_time() - start)
    return best


def fold(folder: Path, hours: int) -> int:
    """Read the first hours into hints; return the peak of this process's memory in bytes."""
    archive, hints = HourArchive(str(folder)), Hints(MONTH)
    for hour in hours_of(MONTH)[:hours]:
        for hint in read_hour(archive, hour):
            hints.add(hint)
    # not ru_maxrss: a new process takes that over from its parent
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


def peak(folder: Path, hours: int) -> int:
    """Run `fold` in a process of its own."""
    command = [sys.executable, __file__, "--fold", str(hours), str(folder)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def rows(folder: Path, events: int, repeats: int) -> Iterator[tuple[str, ...]]:
    """Measure both shapes."""
    for shape in ("fat", "slim"):
        below = folder / shape
        below.mkdir()
        first = below / f"{hours_of(MONTH)[0]}.json.gz"
        make_hour(first, events * (3 if shape == "slim" else 1), slim=shape == "slim")
        for hour in hours_of(MONTH)[1:24]:
            os.link(first, below / f"{hour}.json.gz")
        if by_json(first) != by_reader(first):
            raise SystemExit(f"{shape}: the readers disagree")
        times = best_times(first, repeats)
        size, packed = decompressed(first), first.stat().st_size
        idle, one, day = peak(below, 0), peak(below, 1), peak(below, 24)
        yield (
            shape,
            f"{size / 2**20:.0f} MiB, 1:{size / packed:.1f}",
            f"{times['gzip + json'] / times['this reader']:.1f}x",
            f"{times['this reader'] / times['isal alone']:.2f}x",
            f"+{(one - idle) / 2**20:.1f} MiB",
            f"+{(day - idle) / 2**20:.1f} MiB",
        )


def main() -> None:
    """Read the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=40000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--fold", nargs=2, metavar=("HOURS", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fold:
        print(fold(Path(arguments.fold[1]), int(arguments.fold[0])))
        return
    table = Table(
        "shape", "an hour", "faster than gzip + json", "time of isal alone", "peak memory, 1 hour", "24 hours"
    )
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(Path(folder), arguments.events, arguments.repeats):
            table.add_row(*row)
    Console().print(table)
    print("targets: at least 6x; at most 1.50x; the same peak for any number of hours (over that of reading none)")


if __name__ == "__main__":
    main()
