"""Small, realistic candidates for the tests of stage 4."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from exporters.interface import ReleaseItem
from exporters.parquet import read_rows
from miner.core.blobs import BlobStore
from miner.core.hashing import hash_of, sha256_bytes
from miner.core.ledger import Ledger, fact_id
from miner.core.reasons import Reason
from miner.core.records import (
    BuildMode,
    Candidate,
    Cause,
    Decision,
    Environment,
    Evidence,
    Fact,
    FactKey,
    Finding,
    IssueLink,
    IssueText,
    Layer,
    Recipe,
    State,
    Verdict,
    Visibility,
)
from miner.core.settings import Settings, load_settings

UPLOADED = datetime(2023, 4, 18, 8, 30, 12, 345678, tzinfo=UTC)
OBSERVED = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
VERSIONS = {"swe-miner": "0.1.0", "pyarrow": "1", "jinja2": "2", "bc-detect-secrets": "3"}
LOCK_TEXT = "iniconfig==2.0.0 \\\n    --hash=sha256:" + "ab" * 32 + "\npytest==7.3.1\n"
GOLD = """\
diff --git a/wordlib/split.py b/wordlib/split.py
--- a/wordlib/split.py
+++ b/wordlib/split.py
@@ -1,2 +1,2 @@
 def words(text):
-    return text.split(" ")
+    return text.split()
"""
TESTS = """\
diff --git a/tests/test_split.py b/tests/test_split.py
--- a/tests/test_split.py
+++ b/tests/test_split.py
@@ -1,3 +1,5 @@
 from wordlib.split import words
+def test_tabs():
+    assert words("a\\tb") == ["a", "b"]
 def test_spaces():
     assert words("a b") == ["a", "b"]
"""


def settings(*overrides: str) -> Settings:
    return load_settings(overrides=("release.name=words", 'release.sources=["pypi"]', *overrides), environ={})


def fact(subject: str, kind: str = "validate.after", *, run: int = 0, blobs: dict[str, str] | None = None) -> Fact:
    """A fact whose content depends on its subject and kind, and whose measurements depend on `run` only."""
    key = FactKey(kind=kind, subject=subject, input_hash=hash_of([subject, kind]), producer=kind, epoch=1)
    return Fact(
        key=key,
        observed_at=OBSERVED + timedelta(hours=run),
        payload={"of": subject},
        blobs=blobs or {},
        measures={"wall_s": 1.5 + run, "bytes": 7.0},
        logs={"log": sha256_bytes(f"{subject} {kind} {run}".encode())},
    )


def candidate(name: str = "pypi__wordlib-1.1.0", **changes: object) -> Candidate:
    values: dict[str, object] = {
        "instance_id": name,
        "source": "pypi",
        "repo": name.removeprefix("pypi__").rpartition("-")[0],
        "version": name.rpartition("-")[2],
        "base_commit": "1" * 40,
        "base_tree": "2" * 40,
        "target_tree": "3" * 40,
        "created_at": UPLOADED,
        "patch": GOLD,
        "test_patch": TESTS,
        "statement": "Split words at any white space (#12).",
        "links": (IssueLink(number=12, provenance="changelog", where="CHANGES.md: 1.1.0", text="(#12)"),),
        "test_files": ("tests/test_split.py",),
        "gold_files": ("wordlib/split.py",),
    }
    return Candidate.model_validate({**values, **changes})


def pull_candidate(name: str = "o__words-34", **changes: object) -> Candidate:
    """A candidate that is a merged pull request which closes two issues."""
    values: dict[str, object] = {
        "source": "github",
        "repo": "o/words",
        "version": "1.1.0",
        "pull": 34,
        "month": "2023-05",
        "merged_at": UPLOADED + timedelta(days=20),
        "closed_at": UPLOADED + timedelta(days=20, seconds=1),
        "first_public_at": UPLOADED - timedelta(days=1),
        "issues": (
            IssueText(number=12, title="Tabs", body="They do not split.", created_at=UPLOADED - timedelta(days=9)),
            IssueText(number=13, title="White space", body="", created_at=UPLOADED - timedelta(days=8)),
        ),
        "links": (
            IssueLink(
                number=12,
                provenance="closing-reference",
                where="closingIssuesReferences",
                text="",
                confidence="certain",
            ),
            IssueLink(
                number=5, provenance="text", where="body:3", text="Fixes x/y#5", confidence="weak", repository="x/y"
            ),
        ),
    }
    return candidate(name, **{**values, **changes})


def environment(**changes: object) -> Environment:
    values: dict[str, object] = {
        "image": "sha256:" + "c" * 64,
        "base_digest": "sha256:" + "b" * 64,
        "layers": (Layer(diff_id="sha256:" + "d" * 64, size=1000), Layer(diff_id="sha256:" + "e" * 64, size=234)),
        "lock_sha256": sha256_bytes(LOCK_TEXT.encode()),
        "mode": BuildMode.EDITABLE,
    }
    return Environment.model_validate({**values, **changes})


def verdict(**changes: object) -> Verdict:
    values: dict[str, object] = {
        "fail_to_pass": ("tests/test_split.py::test_tabs",),
        "pass_to_pass": ("tests/test_split.py::test_spaces",),
        "causes": {"tests/test_split.py::test_tabs": Cause.ABSENT},
    }
    return Verdict.model_validate({**values, **changes})


def accepted(
    name: str = "pypi__wordlib-1.1.0",
    *,
    run: int = 0,
    visibility: Visibility = Visibility.PUBLIC,
    source: str = "pypi",
    **changes: object,
) -> ReleaseItem:
    trail = (fact(name, run=run), fact("env-1234", "install.layer", run=run))
    finding = Finding(
        rule="fail-to-pass",
        stage="validate",
        outcome="pass",
        value=1.0,
        detail="1 test failed before the gold patch and passed after it",
        evidence=(Evidence(fact=fact_id(trail[0].key), blob=trail[0].logs["log"], excerpt=f"1 failed in {run}.12s"),),
    )
    values: dict[str, object] = {
        "decision": Decision(
            instance_id=name,
            state=State.ACCEPTED,
            stage="validate",
            sentence=finding.detail,
            trail=tuple(fact_id(one.key) for one in trail),
        ),
        "findings": (finding,),
        "visibility": visibility,
        "source": source,
        "trail": trail,
        "candidate": candidate(name),
        "recipe": Recipe(python="3.11", build_backend="hatchling.build"),
        "environment": environment(),
        "verdict": verdict(),
        "test_command": "python -m pytest -p no:cacheprovider",
        "lock_text": LOCK_TEXT,
        "build_lock_text": "hatchling==1.21.0\n",
        "dockerfile": "FROM scratch\n",
    }
    if "lock_text" in changes:
        values["environment"] = environment(lock_sha256=sha256_bytes(str(changes["lock_text"]).encode()))
    return ReleaseItem.model_validate({**values, **changes})


def rejected(
    name: str = "pypi__shapes-2.0",
    *,
    run: int = 0,
    detail: str = "no test fails before the gold patch: 12 passed before, 12 passed after",
    visibility: Visibility = Visibility.PUBLIC,
    **changes: object,
) -> ReleaseItem:
    trail = (fact(name, run=run),)
    code = Reason.NOTHING_FAILS_BEFORE
    evidence = (Evidence(fact=fact_id(trail[0].key), blob=trail[0].logs["log"], excerpt=f"12 passed in {run}.3s"),)
    finding = Finding(
        rule="fail-to-pass", stage="validate", outcome="fail", code=code, value=0.0, detail=detail, evidence=evidence
    )
    values: dict[str, object] = {
        "decision": Decision(
            instance_id=name,
            state=State.REJECTED,
            stage="validate",
            code=code,
            sentence=detail,
            evidence=evidence,
            trail=tuple(fact_id(one.key) for one in trail),
        ),
        "findings": (Finding(rule="source-found", stage="discover", outcome="pass"), finding),
        "visibility": visibility,
        "source": "pypi",
        "trail": trail,
        "candidate": candidate(name),
    }
    return ReleaseItem.model_validate({**values, **changes})


def faulted(name: str = "pypi__colours-0.3", *, words: str = "the engine at 10.0.0.7 went away") -> ReleaseItem:
    decision = Decision(
        instance_id=name, state=State.FAULTED, stage="install", code=Reason.DOCKER_UNAVAILABLE, sentence=words
    )
    return ReleaseItem(decision=decision, visibility=Visibility.PUBLIC, source="pypi")


def tree(folder: Path) -> dict[str, bytes]:
    """All files of a folder by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def content(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if not name.startswith("measurements/")}


def words_in(files: dict[str, bytes]) -> str:
    """Everything that a reader of these files can read: their bytes, and the rows of the Parquet files."""
    texts = []
    for name, data in files.items():
        texts.append(name)
        texts.append(data.decode("latin-1"))
        if name.endswith(".parquet"):
            texts.append(repr(read_rows(data)))
    return "\n".join(texts)


class Store:
    """A ledger and blobs that hold candidates as facts, and a loader that computes them again."""

    def __init__(self, folder: Path, run: int = 0) -> None:
        self.ledger = Ledger(f"sqlite:///{folder}/ledger.sqlite3")
        self.blobs = BlobStore(str(folder / "blobs"))
        self.run = run
        self.ledger.begin_run(f"run-{run}", "run", settings(), VERSIONS)

    def add(self, item: ReleaseItem) -> ReleaseItem:
        """Store a candidate; return it with the facts that now hold it."""
        names = {"visibility", "source", "month", "candidate", "recipe", "environment", "verdict", "test_command"}
        names |= {"build_lock_text", "dockerfile"}
        whole = fact(item.instance_id, "case", run=self.run)
        payload = item.model_dump(mode="json", include=names)
        blobs = {"lock": self.blobs.put_text(item.lock_text or "")}
        trail = (whole.model_copy(update={"payload": payload, "blobs": blobs}), *item.trail)
        for one in trail:
            self.ledger.add(one, f"run-{self.run}")
        decision = item.decision.model_copy(update={"trail": tuple(fact_id(one.key) for one in trail)})
        return item.model_copy(update={"trail": trail, "decision": decision})

    def load(self, instance_id: str, trail: Sequence[Fact], decision: Decision) -> ReleaseItem:
        """Compute a candidate from its facts, as the product's loader does."""
        assert decision.instance_id == instance_id
        whole = trail[0]
        lock_text = self.blobs.get_text(whole.blobs["lock"])
        return ReleaseItem.model_validate(
            {**whole.payload, "lock_text": lock_text, "trail": tuple(trail), "decision": decision}
        )

    def runs(self, items: Sequence[ReleaseItem]) -> dict[str, str]:
        """Which run measured which fact."""
        return self.ledger.runs_of(fact_id(one.key) for item in items for one in item.trail)
