"""From the pages of a repository to the items of a month: lists completed, numbers looked up, links computed.

Pull requests are read page by page, so that no more than a page is held; what waits for look-ups is read once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from miner.core.hashing import canonical_json
from miner.core.records import Fact
from miner.crawlers.github.answers import ISSUE_LISTS, Crawled, as_renewed, gather, parse_pull, whole, with_references
from miner.crawlers.github.completion import (
    LINKING,
    OTHERS,
    Completion,
    OpenList,
    closing_nodes,
    complete_together,
    is_gone,
    look_up,
    open_lists,
    referenced,
)
from miner.crawlers.github.coverage import Sight
from miner.crawlers.github.items import PullItem, coordinates_of
from miner.crawlers.github.keywords import may_close
from miner.crawlers.github.linking import closing_links, named_numbers
from miner.crawlers.github.model import Repository
from miner.crawlers.github.month import Month
from miner.crawlers.github.pages import DECODED, Node, listed, nodes, nonsense
from miner.crawlers.github.renewal import Renewals, Versions, renewals_of
from miner.crawlers.github.walk import Desk


@dataclass(frozen=True)
class Subject:
    """The repository that is looked at.

    Attributes:
        repo: its name at first sight.
        answer: what the forge says of it.
    """

    repository: Repository
    repo: str
    answer: Node
    month: Month


@dataclass
class Harvest:
    """What a month holds of a repository."""

    items: list[PullItem] = field(default_factory=list)
    unlinked: int = 0
    notes: list[str] = field(default_factory=list)


def subject_from(fact: Fact, repository: Repository, repo: str, month: Month) -> Subject:
    """Return the subject that a fact `crawl.repository` is about."""
    return Subject(repository, repo, fact.payload["repository"], month)


def harvest(desk: Desk, subject: Subject, sights: Iterable[Sight]) -> Harvest:
    """Return the items that pull requests make, by number, and how many have no link at all."""
    made = Harvest()
    waiting: list[tuple[Sight, Completion, tuple[int, ...]]] = []
    renewals = renewals_of(desk, subject.repository)
    sights = _page_by_page(sights)
    complete_together(desk, [(subject.repository, _longer_on(desk, subject.repository, sights))])
    for sight in sights:
        if not _may_link(_node(desk, subject.repository, sight)):
            made.unlinked += 1
            continue
        completion = Completion(desk, subject.repository)
        named = _complete(desk, subject.repository, sight, completion, renewals)
        if named:
            waiting.append((sight, completion, named))
        else:
            _add(made, desk, subject, sight, completion, {}, renewals)
    answers = look_up(desk, subject.repository, {number for *_, named in waiting for number in named})
    for sight, completion, named in waiting:
        _add(made, desk, subject, sight, completion, {number: answers[number] for number in named}, renewals)
    made.items.sort(key=lambda item: item.number)
    return made


def linked(desk: Desk, repository: Repository, sights: Iterable[Sight]) -> Versions:
    """Return the issues of a repository that pull requests close or name, in the oldest versions that one rests on.

    A number that was not there is None: that it is not is asked for twice (law 2).
    """
    versions: Versions = {}
    named: set[int] = set()
    renewals = renewals_of(desk, repository)

    def note(issue: Node) -> None:
        versions[issue["number"]] = min(versions.get(issue["number"]) or issue["updatedAt"], issue["updatedAt"])

    for sight in _page_by_page(sights):
        completion = Completion(desk, repository)
        named.update(_complete(desk, repository, sight, completion, renewals))
        for issue in _closing(_node(desk, repository, sight), repository, completion):
            note(issue)
    for number, digest in look_up(desk, repository, named).items():
        if (found := referenced(desk, digest, number)) is not None:
            note(found)
        elif is_gone(desk, digest, number):  # as one answer says
            versions.setdefault(number, None)
    return {number: renewals.version(number, at) for number, at in versions.items()}


@dataclass
class Missing:
    """What pages leave out, as far as they say so themselves: numbers that are named, and lists that are longer."""

    numbers: set[int] = field(default_factory=set)
    lists: list[OpenList] = field(default_factory=list)


def missing_on(desk: Desk, repository: Repository, sights: Iterable[Sight]) -> Missing:
    """Return what will have to be asked for about pull requests beside their pages."""
    missing = Missing()
    for sight in _page_by_page(sights):
        node = _node(desk, repository, sight)
        if _may_link(node):
            named = named_numbers(parse_pull(node), repository)
            missing.numbers.update(named)
            missing.lists.extend(_longer(node, linked=bool(named) or _closes(node)))
    return missing


def _longer_on(desk: Desk, repository: Repository, sights: Iterable[Sight]) -> Iterator[OpenList]:
    """Yield the lists of `missing_on`; a pull request without a long list, as nearly all are, is not parsed."""
    for sight in sights:
        node = _node(desk, repository, sight)
        if any(_longer(node, linked=True)) and _may_link(node):
            linked = _closes(node) or bool(named_numbers(parse_pull(node), repository))
            yield from _longer(node, linked=linked)


def _longer(node: Node, *, linked: bool) -> Iterator[OpenList]:
    """Yield the lists of a pull request that are longer than they stand on its page, as far as they matter."""
    yield from open_lists("PullRequest", node, LINKING)
    if linked:
        yield from open_lists("PullRequest", node, OTHERS)
        for issue in nodes(node.get("closingIssuesReferences")):
            yield from open_lists("Issue", issue, ISSUE_LISTS)


def _closes(node: Node) -> bool:
    """Whether the forge lists an issue as closed by a pull request."""
    return next(nodes(node.get("closingIssuesReferences")), None) is not None


def _may_link(node: Node) -> bool:
    """Whether a pull request may close an issue: a quick look at its page, before it is parsed."""
    return _closes(node) or any(map(may_close, _texts(node))) or any(open_lists("PullRequest", node, LINKING))


def _texts(node: Node) -> Iterator[str]:
    """Yield the texts that may name issues."""
    yield from (node.get("title") or "", node.get("body") or "")
    yield (node.get("mergeCommit") or {}).get("message") or ""
    for one in nodes(node.get("commits")):
        yield (one.get("commit") or {}).get("message") or ""


def _page_by_page(sights: Iterable[Sight]) -> list[Sight]:
    return sorted(sights, key=lambda sight: (sight.at, sight.number))


def _complete(
    desk: Desk, repository: Repository, sight: Sight, completion: Completion, renewals: Renewals
) -> tuple[int, ...]:
    """Complete what has to be for the links of a pull request, and return the numbers that its texts name."""
    node = _node(desk, repository, sight)
    completion.pull(node, LINKING)
    rest = completion.rest
    issues = list(closing_nodes(node, rest))
    named = named_numbers(parse_pull(whole(node, rest)), repository)
    if issues or named:
        completion.pull(node, OTHERS)
        for issue in issues:
            now = renewals.now(issue) if _is_of(issue, repository) else issue
            if now is not None:
                completion.issue(now)
    return named


def _closing(node: Node, repository: Repository, completion: Completion) -> list[Node]:
    """Return the issues of the repository itself that the forge lists as closed."""
    return [issue for issue in closing_nodes(node, completion.rest) if _is_of(issue, repository)]


def _is_of(issue: Node, repository: Repository) -> bool:
    return (issue.get("repository") or {}).get("databaseId") == repository.forge_id


def _add(
    made: Harvest,
    desk: Desk,
    subject: Subject,
    sight: Sight,
    completion: Completion,
    answers: dict[int, str],
    renewals: Renewals,
) -> None:
    """Add a pull request: as an item where it has a link of any kind."""
    repository, node = subject.repository, _node(desk, subject.repository, sight)
    named = [issue for number, digest in answers.items() if (issue := referenced(desk, digest, number)) is not None]
    for issue in named:
        if (now := renewals.now(issue)) is not None:
            completion.issue(now)
    back = renewals.back(number for number, digest in answers.items() if is_gone(desk, digest, number))
    for issue in back.values():
        completion.issue(issue)
    renewed = renewals.digests([*_closing(node, repository, completion), *named], back)
    rest, looked = completion.rest, sorted(set(answers.values()))
    looked_answers, later = ([DECODED.read(one, desk.blobs) for one in digests] for digests in (looked, renewed))
    pull = parse_pull(whole(node, rest))
    pull = as_renewed(with_references(pull, repository, looked_answers, rest), repository, later, rest)
    is_linked = bool(closing_links(Crawled(repository=repository, pull=pull)))
    if is_linked:
        completion.pull(node, OTHERS)  # not yet done for links to other repositories alone
    made.notes.extend(completion.notes)
    if not is_linked:
        made.unlinked += 1
        return
    gathered = gather(subject.answer, node, looked_answers, later, completion.rest)
    made.items.append(
        PullItem(
            repository_id=repository.forge_id,
            repo=subject.repo,
            full_name=repository.full_name,
            number=pull.number,
            month=subject.month.name,
            coordinates=coordinates_of(pull, repository),
            answers=desk.blobs.put_text(canonical_json(gathered)),
            raw={
                "page": sight.page,
                **{f"more-{i}": digest for i, digest in enumerate(completion.digests)},
                **{f"issues-{i}": digest for i, digest in enumerate(looked)},
                **{f"renewed-{i}": digest for i, digest in enumerate(renewed)},
            },
        )
    )


def _node(desk: Desk, repository: Repository, sight: Sight) -> Node:
    for node in nodes(listed(DECODED.read(sight.page, desk.blobs))):
        own = (node.get("repository") or {}).get("databaseId")
        if node.get("number") == sight.number and own == repository.forge_id:
            return node
    raise nonsense(f"a page of {repository.full_name} does not hold pull request {sight.number}")
