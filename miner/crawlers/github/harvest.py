"""From the pages of a repository to the items of a month: lists completed, numbers looked up, links computed.

Pull requests are read page by page, so that no more than a page is held; what waits for look-ups is read once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from miner.core.records import Fact
from miner.crawlers.github.answers import Crawled, parse_pull, whole, with_references
from miner.crawlers.github.completion import LINKING, OTHERS, Completion, closing_nodes, look_up, referenced
from miner.crawlers.github.coverage import Sight
from miner.crawlers.github.items import PullItem, coordinates_of
from miner.crawlers.github.linking import closing_links, named_numbers
from miner.crawlers.github.model import Repository
from miner.crawlers.github.month import Month
from miner.crawlers.github.pages import DECODED, Node, listed, nodes, nonsense
from miner.crawlers.github.walk import Desk


@dataclass(frozen=True)
class Subject:
    """The repository that is looked at.

    Attributes:
        repo: its name at first sight.
        answer: digest of what the forge says of it.
    """

    repository: Repository
    repo: str
    answer: str
    month: Month


@dataclass
class Harvest:
    """What a month holds of a repository."""

    items: list[PullItem] = field(default_factory=list)
    unlinked: int = 0
    notes: list[str] = field(default_factory=list)


def subject_from(fact: Fact, repository: Repository, repo: str, month: Month) -> Subject:
    """Return the subject that a fact `crawl.repository` is about."""
    return Subject(repository, repo, fact.blobs["repository"], month)


def harvest(desk: Desk, subject: Subject, sights: Iterable[Sight]) -> Harvest:
    """Return the items that pull requests make, by number, and how many have no link at all."""
    made = Harvest()
    waiting: list[tuple[Sight, Completion, tuple[int, ...]]] = []
    for sight in sorted(sights, key=lambda sight: (sight.at, sight.number)):
        completion = Completion(desk, subject.repository)
        named = _complete(desk, subject.repository, sight, completion)
        if named:
            waiting.append((sight, completion, named))
        else:
            _add(made, desk, subject, sight, completion, {})
    answers = look_up(desk, subject.repository, {number for *_, named in waiting for number in named})
    for sight, completion, named in waiting:
        _add(made, desk, subject, sight, completion, {number: answers[number] for number in named})
    made.items.sort(key=lambda item: item.number)
    return made


def named_on(desk: Desk, repository: Repository, sights: Iterable[Sight]) -> set[int]:
    """Return the numbers that pull requests name, as far as their pages alone say."""
    pulls = (parse_pull(_node(desk, repository, sight)) for sight in sights)
    return {number for pull in pulls for number in named_numbers(pull, repository)}


def _complete(desk: Desk, repository: Repository, sight: Sight, completion: Completion) -> tuple[int, ...]:
    """Complete what has to be for the links of a pull request, and return the numbers that its texts name."""
    node = _node(desk, repository, sight)
    completion.pull(node, LINKING)
    rest = completion.rest
    issues = list(closing_nodes(node, rest))
    named = named_numbers(parse_pull(whole(node, rest)), repository)
    if issues or named:
        completion.pull(node, OTHERS)
        for issue in issues:
            completion.issue(issue)
    return named


def _add(
    made: Harvest, desk: Desk, subject: Subject, sight: Sight, completion: Completion, answers: dict[int, str]
) -> None:
    """Add a pull request: as an item where it has a link of any kind."""
    repository = subject.repository
    for number, digest in answers.items():
        issue = referenced(desk, digest, number)
        if issue is not None:
            completion.issue(issue)
    rest, looked = completion.rest, sorted(set(answers.values()))
    pull = parse_pull(whole(_node(desk, repository, sight), rest))
    pull = with_references(pull, repository, [DECODED.read(digest, desk.blobs) for digest in looked], rest)
    made.notes.extend(completion.notes)
    if not closing_links(Crawled(repository=repository, pull=pull)):
        made.unlinked += 1
        return
    made.items.append(
        PullItem(
            repository_id=repository.forge_id,
            repo=subject.repo,
            full_name=repository.full_name,
            number=pull.number,
            month=subject.month.name,
            coordinates=coordinates_of(pull, repository),
            answers={
                "repository": subject.answer,
                "page": sight.page,
                **{f"more-{i}": digest for i, digest in enumerate(completion.digests)},
                **{f"issues-{i}": digest for i, digest in enumerate(looked)},
            },
        )
    )


def _node(desk: Desk, repository: Repository, sight: Sight) -> Node:
    for node in nodes(listed(DECODED.read(sight.page, desk.blobs))):
        own = (node.get("repository") or {}).get("databaseId")
        if node.get("number") == sight.number and own == repository.forge_id:
            return node
    raise nonsense(f"a page of {repository.full_name} does not hold pull request {sight.number}")
