"""What language models are shown of failures: whether it tells why, how long it is, and what it costs to send.

    python benchmarks/model_prompts.py --from FOLDER [FOLDER ...]

Each folder is that of a run of `install_corpus.py`, without a model; it is read, and nothing is written to it. Of each
failing attempt (one after which the ladder looks for a better one; one that was measured again with the same end counts
once) the excerpt of its log is made anew, as the structured rung makes it, and its signatures are looked for in the
excerpt alone, by the patterns that find them in the log; the same in the blind end of the log, as long as the excerpt
may be, and in the whole of it. What pytest reports beside its log the excerpt may show, and the log may not.

Then the rung is asked what it would ask a model, had the ladder ended with this attempt, and how it would refine a
recipe that fails in the same way. No model is asked. Prompts are estimated as the rung does it; money is computed.
The table is printed as `docs/figures.md` holds it.
"""

import argparse
import json
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast

from install_choose import Row, collected, read_rows
from install_corpus import KIND, name_of
from model_prompt_tables import BUDGETS, Read, Seen, Sizes, as_markdown, column, heading
from sqlalchemy import Engine, create_engine, select

from installers.attempt import ATTEMPT, attempt_of
from installers.brief.evidence import tokens_of
from installers.brief.failures import deciding, failure
from installers.brief.proposals import draft_of
from installers.interface import Attempt, Help, Memory, Question, Signature, Tree
from installers.models.desk import Answer, Desk
from installers.models.interface import Prompt, Reply, Request
from installers.models.kept import PRODUCER, REPLY
from installers.pythons import chosen_among
from installers.repair.signatures import signatures_of_log
from installers.rungs.structured import structured
from installers.workshop import Workshop
from miner.core import tables as t
from miner.core.blobs import BlobStore
from miner.core.hashing import canonical_json, sha256_bytes
from miner.core.ledger import fact_id
from miner.core.ledger_rows import fact_of
from miner.core.memo import Memo, utc_now
from miner.core.records import Fact, FactKey, Recipe
from miner.core.settings import Settings, load_settings
from miner.project.facts import project_folder

RUNG = "structured"


class Aside(BlobStore):
    """The blobs of a folder; what is put is kept aside, in memory."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise SystemExit(f"{folder} is not there: name the folder of a run of install_corpus.py")
        super().__init__(str(folder))
        self._aside: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        """Keep bytes in memory."""
        digest = sha256_bytes(data)
        self._aside[digest] = data
        return digest

    def get(self, digest: str) -> bytes:
        """Return the bytes of a blob."""
        return self._aside[digest] if digest in self._aside else super().get(digest)


@dataclass(frozen=True)
class Shop:
    """What the rung uses of a workshop."""

    settings: Settings
    blobs: BlobStore


@dataclass
class Listener:
    """Stands for the desk of the models: hears what they would be asked, and says nothing."""

    models: tuple[str, ...] = ("nobody",)
    heard: list[tuple[Request, Prompt]] = field(default_factory=list)

    def ask(self, _memo: Memo, request: Request, *, repository: str, prompt: Prompt, ordinal: int) -> Answer:
        """Hear a request."""
        self.heard.append((request, prompt))
        return Answer(Reply(), "", 0, 0.0, 0.0)


@dataclass(frozen=True)
class Past:
    """What a folder knows of one package.

    Attributes:
        failing: attempts, each with those before it, which is the last one.
    """

    row: Row
    tree: Tree
    declared: Recipe
    failing: tuple[tuple[Attempt, ...], ...]
    facts: tuple[Fact, ...]


def facts_in(folder: Path) -> list[Fact]:
    """Return the facts of a ledger, the oldest first; it is opened so that not even its lock changes."""
    file = folder / "ledger.sqlite3"
    if not file.is_file():
        raise SystemExit(f"there is no ledger in {folder}: name the folder of a run of install_corpus.py")
    log = folder / "ledger.sqlite3-wal"
    how = "mode=ro" if log.is_file() and log.stat().st_size else "immutable=1"
    at = f"{file.resolve().as_uri()}?{how}"
    engine: Engine = create_engine("sqlite://", creator=partial(sqlite3.connect, at, uri=True))
    alive = t.facts.c.fact_id.not_in(select(t.tombstones.c.fact_id))
    with engine.connect() as connection:
        return [
            fact_of(row) for row in connection.execute(select(t.facts).where(alive).order_by(t.facts.c.observed_at))
        ]


def pasts(facts: Sequence[Fact], blobs: BlobStore) -> Iterator[Past]:
    """Yield the packages of the corpus that were tried, in its order."""
    known = {fact_id(fact.key): fact for fact in facts}
    sources = {fact.key.subject: fact for fact in facts if fact.key.kind == KIND}
    made: dict[str, list[Attempt]] = {}
    for fact in facts:
        if fact.key.kind == ATTEMPT:
            made.setdefault(fact.key.subject, []).append(attempt_of(fact, blobs))
    for row in (row for row in read_rows() if row.counts):
        name = name_of(row)
        if name in sources and name in made:
            steps = dict.fromkeys(step for one in made[name] for step in one.steps)
            used = tuple(known[step] for step in steps if step in known)
            declared = next((one for one in made[name] if one.rung == "declared"), made[name][0]).recipe
            yield Past(row, tree_of(sources[name], blobs), declared, tuple(failing(made[name])), used)


def failing(attempts: Iterable[Attempt]) -> Iterator[tuple[Attempt, ...]]:
    """Yield the failing attempts of a package, each after those before it; the same failure of the same recipe once.

    Args:
        attempts: as they were made; where a package was climbed for again, the numbers begin again.
    """
    latest: dict[int, Attempt] = {}
    told = set()
    for made in attempts:
        latest[made.number] = made
        what = (made.fingerprint, made.outcome, made.signatures)
        if not made.good and what not in told:
            told.add(what)
            yield tuple(latest[number] for number in range(made.number + 1) if number in latest)


def tree_of(source: Fact, blobs: BlobStore) -> Tree:
    """Return the tree of a package, as `install_corpus.py` has noted it."""
    texts: Mapping[str, str] = json.loads(blobs.get(source.blobs["files"]))
    files = {path: text.encode("utf-8", "surrogateescape") for path, text in texts.items()}
    return Tree(files, list(source.payload["paths"]))


def measured(past: Past, shop: Shop) -> Iterator[Seen]:
    """Yield what is shown of each failing attempt of a package."""
    help_ = Help(cast(Workshop, shop), memo_of(past.facts), Memory(), chosen_among(shop.settings))
    for attempts in past.failing:
        made, seconds, excerpts = attempts[-1], [], {}
        for budget in BUDGETS:
            began = time.process_time()
            excerpts[budget] = failure(made, help_, budget)
            seconds.append(time.process_time() - began)
        yield Seen(
            package=name_of(past.row),
            half=past.row.half,
            installed=made.ok,
            read=read_again(made, help_, excerpts) if made.signatures else None,
            sizes=asked(past, attempts, help_),
            seconds=tuple(seconds),
        )


def memo_of(facts: Iterable[Fact]) -> Memo:
    """Return a memo that has answered with some facts, and keeps none."""
    memo = Memo(lambda _: [], lambda _: None)
    for fact in facts:
        memo.used.note(fact)
    return memo


def read_again(made: Attempt, help_: Help, excerpts: Mapping[int, str]) -> Read:
    """Return what the excerpts, the ends of the same logs, and these as a whole show."""
    found = deciding(made, help_)
    log = "\n".join(one.log for one in found) or made.detail
    build = not made.ok and all(one.run is None for one in found)
    return Read(
        signatures=made.signatures,
        excerpts={budget: shown_in(text, build) for budget, text in excerpts.items()},
        ends={budget: shown_in(log[-budget:], build) for budget in excerpts},
        whole=shown_in(log, build),
    )


def shown_in(text: str, build: bool) -> frozenset[Signature]:
    """Return the signatures that a text shows: of a step that resolves and builds, or of one in which pytest ran."""
    return frozenset(signatures_of_log("project" if build else "suite", text))


def asked(past: Past, attempts: Sequence[Attempt], help_: Help) -> Sizes | None:
    """Return the sizes of what a model would be asked after some attempts; None where none would be."""
    first, made, blobs = heard(past, attempts, help_), attempts[-1], help_.workshop.blobs
    reply = reply_fact(blobs.put_text(Reply(text=as_reply(made.recipe), finish="stop").model_dump_json()))
    again = made.model_copy(update={"rung": RUNG, "number": made.number + 1, "asked": (fact_id(reply.key),)})
    refined = heard(past, (*attempts, again), replace(help_, memo=memo_of([*past.facts, reply])))
    if first is None or refined is None or first[0].form is None:
        return None
    return Sizes(
        first=tokens_in(first[0]),
        refinement=tokens_in(refined[0]),
        own=tokens_of(refined[1].text),
        form=tokens_of(canonical_json(first[0].form.definition)),
    )


def heard(past: Past, attempts: Sequence[Attempt], help_: Help) -> tuple[Request, Prompt] | None:
    """Return what the rung would ask after some attempts."""
    listener = Listener()
    paths = list(past.tree.paths)
    question = Question(
        repository=attempts[0].repository,
        tree=past.tree,
        declared=past.declared,
        created_at=past.row.uploaded,
        test_files=tuple(collected(paths, dict(past.tree.files), project_folder(paths))),
        past=tuple(attempts),
        candidate=name_of(past.row),
    )
    structured(question, replace(help_, models=cast(Desk, listener)))
    return listener.heard[0] if listener.heard else None


def reply_fact(digest: str) -> Fact:
    """Return the fact of a reply that nobody gave."""
    key = FactKey(kind=REPLY, subject="model-nobody", input_hash=digest, producer=PRODUCER.name, epoch=PRODUCER.epoch)
    return Fact(key=key, observed_at=utc_now(), blobs={"reply": digest})


def as_reply(recipe: Recipe) -> str:
    """Return a recipe as a model would write it that gives no reasons."""
    return json.dumps({**draft_of(recipe, recipe), "reasons": [], "give_up": None})


def tokens_in(request: Request) -> int:
    """Return the tokens of a request's messages, by estimate."""
    return sum(tokens_of(message.content) for message in request.messages)


def look(folder: Path, settings: Settings) -> list[Seen]:
    """Return what a model would be shown of the failing attempts that a folder knows."""
    facts, blobs = facts_in(folder), Aside(folder / "blobs")
    seen: list[Seen] = []
    for past in pasts(facts, blobs):
        more = list(measured(past, Shop(settings, blobs)))
        seen += more
        if more:
            print(f"{name_of(past.row)}: {len(more)} failing attempts", file=sys.stderr)
    return seen


def main() -> int:
    """Read the folders and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="folders", type=Path, nargs="+", required=True, metavar="FOLDER")
    parser.add_argument("-c", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    # After an environment that is not good the rung asks only where it is told that this is not enough.
    settings = load_settings(overrides=["measure.model.enough=1", *options.overrides])
    found = [look(folder, settings) for folder in options.folders]
    print(as_markdown([(heading(seen), column(seen, settings.prices)) for seen in found]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
