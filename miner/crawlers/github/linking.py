"""Links between a pull request and the issues that it closes: where each was found, and how sure it is.

The forge itself says it in two ways, both certain: the closing references of the pull request, and closed-events whose
closer is the pull request or one of its commits. Texts say it by closing keywords: the body, the title, the messages of
the commits and of the merge. The forge takes keywords for a pull request into the default branch only, and does not
list issues that only a commit message names
(https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from miner.core.reasons import Reason
from miner.core.records import IssueLink, Record
from miner.crawlers.github.keywords import NEGATED, Mention, may_close, mentions
from miner.crawlers.github.markdown import plain, prose
from miner.crawlers.github.model import Closer, Issue, Pull, Repository

if TYPE_CHECKING:  # which asks here for the numbers that it has to look up
    from miner.crawlers.github.answers import Crawled

_TEXTS = 256
_RANKS = ("certain", "strong", "weak")
_Key = tuple[str | None, int]
_Target = Issue | Literal["pull", "gone", "moved", "elsewhere", "not looked up"]
_REASONS = {
    "pull": (Reason.ISSUE_IS_PULL, "is a pull request"),
    "gone": (Reason.ISSUE_GONE, "does not exist, or not any more"),
    "moved": (Reason.ISSUE_GONE, "is in another repository now"),
    "elsewhere": (Reason.ISSUE_ELSEWHERE, "is an issue of another repository"),
    "not looked up": (Reason.NO_LINKED_ISSUE, "was never looked up"),
}


class Judged(Record):
    """What the links of a pull request come to.

    Attributes:
        links: all of them, also those to what is no issue, or one of another repository.
        issues: the issues of this repository that make the statement: those with a certain or strong link, or those
            with a weak one where there is no better; the surest first, then in the order in which the texts name them
            (body, title, commits), then by number.
        disagreements: where forge and texts say different things, one sentence each.
        reason: why there is no issue; None where there is one.
        detail: the same as a sentence.
    """

    links: tuple[IssueLink, ...]
    issues: tuple[Issue, ...] = ()
    disagreements: tuple[str, ...] = ()
    reason: Reason | None = None
    detail: str = ""


def named_numbers(pull: Pull, repository: Repository) -> tuple[int, ...]:
    """Return the numbers of this repository that the texts of a pull request say are closed, beside `pull.closing`.

    What they are is not known from the text: they have to be looked up.
    """
    known = {pull.number, *(issue.number for issue in pull.closing if _repository_of(issue, pull) is None)}
    named = {link.number for link, _ in _said(pull, repository) if link.repository is None}
    return tuple(sorted(named - known))


def closing_links(crawled: Crawled) -> tuple[IssueLink, ...]:
    """Return the links of a pull request, each place once: the forge's own, then those of the texts in their order.

    What a text says is weak evidence if its words leave a doubt, if the pull request was merged into another branch
    than the default one, or if the forge lists closing references, but not this one, nor a closed-event for it.
    """
    pull, default = crawled.pull, crawled.repository.default_branch
    listed, closed = _listed(pull), _closed(pull)
    sure = {_key(link) for link in (*listed, *closed)}
    ignored = default is not None and pull.base_branch != default
    said = (
        link.model_copy(update={"confidence": "weak"})
        if doubt or ignored or (listed and _key(link) not in sure)
        else link
        for link, doubt in _said(pull, crawled.repository)
    )
    return tuple(dict.fromkeys((*listed, *closed, *said)))


def judge_links(crawled: Crawled) -> Judged:
    """Return what the links of a pull request come to."""
    links = closing_links(crawled)
    ordered = sorted(links, key=lambda link: _RANKS.index(link.confidence))
    targets = [(link, _target(link, crawled.pull)) for link in ordered]
    found = [(link, target) for link, target in targets if isinstance(target, Issue)]
    if any(link.confidence != "weak" for link, _ in found):
        found = [(link, target) for link, target in found if link.confidence != "weak"]
    reason, detail = _why_none(targets) if not found else (None, "")
    return Judged(
        links=links,
        issues=_in_order(found, links),
        disagreements=tuple(_disagreements(crawled)),
        reason=reason,
        detail=detail,
    )


def usable_issues(crawled: Crawled) -> tuple[Issue, ...]:
    """Return the issues that make the statement, in the order of `Judged.issues`."""
    return judge_links(crawled).issues


def disagreements(crawled: Crawled) -> tuple[str, ...]:
    """Return where forge and texts say different things about what is closed, one sentence each."""
    return judge_links(crawled).disagreements


def _listed(pull: Pull) -> list[IssueLink]:
    return [
        IssueLink(
            number=issue.number,
            provenance="closing-reference",
            where="closingIssuesReferences",
            text=issue.url,
            confidence="certain",
            repository=_repository_of(issue, pull),
        )
        for issue in pull.closing
    ]


def _closed(pull: Pull) -> list[IssueLink]:
    """Return the links that closed-events of the known issues make."""
    commits = {pull.merge_commit, *(commit.oid for commit in pull.commits)} - {None}
    return [
        IssueLink(
            number=issue.number,
            provenance="timeline",
            where="timeline",
            text=f"closed by {_name(closer)}",
            confidence="certain",
            repository=_repository_of(issue, pull),
        )
        for issue in _known_issues(pull)
        for closer in issue.closers
        if closer.repository_id == pull.repository_id and (closer.pull == pull.number or closer.commit in commits)
    ]


def _name(closer: Closer) -> str:
    return f"commit {closer.commit}" if closer.commit else f"pull request {closer.pull}"


def _known_issues(pull: Pull) -> Iterator[Issue]:
    yield from pull.closing
    listed = {issue.node_id for issue in pull.closing}
    looked_up = (issue for issue in pull.references.values() if isinstance(issue, Issue))
    yield from (issue for issue in looked_up if issue.node_id not in listed)


def _said(pull: Pull, repository: Repository) -> Iterator[tuple[IssueLink, str]]:
    """Yield the links that the texts make, strong ones, each with the doubt that its words leave."""
    names = {repository.full_name.lower(), pull.repository.lower()}
    names |= {issue.repository.lower() for issue in pull.closing if issue.repository_id == pull.repository_id}
    host = urlsplit(pull.url).netloc.lower().removeprefix("www.")
    highest = max(repository.newest_number, pull.number)
    for provenance, where, mention in _mentions(pull):
        own = mention.repository is None or mention.repository.lower() in names
        if (mention.host and mention.host != host) or (own and mention.number > highest):
            continue
        link = IssueLink(
            number=mention.number,
            provenance=provenance,
            where=where,
            text=mention.text,
            repository=None if own else mention.repository,
        )
        yield link, mention.doubt


def _mentions(pull: Pull) -> Iterator[tuple[Literal["text", "title", "commit-message"], str, Mention]]:
    """Yield what the texts say is closed, and where."""
    yield from (("text", f"body:{mention.line}", mention) for mention in _in_body(pull.body))
    yield from (("title", "title", mention) for mention in _in_plain(pull.title))
    for commit in pull.commits:
        said = _in_plain(commit.message)
        yield from (("commit-message", f"commit {commit.oid[:7]}:{mention.line}", mention) for mention in said)
    if pull.merge_commit not in {commit.oid for commit in pull.commits}:
        said = _in_plain(pull.merge_message)
        yield from (("commit-message", f"merge commit:{mention.line}", mention) for mention in said)


@lru_cache(_TEXTS)
def _in_body(body: str) -> tuple[Mention, ...]:
    """Return what a body says: it is asked for by everything that judges links."""
    return tuple(mention for passage in prose(body) for mention in mentions(passage)) if may_close(body) else ()


@lru_cache(_TEXTS)
def _in_plain(text: str) -> tuple[Mention, ...]:
    return tuple(mentions(plain(text))) if may_close(text) else ()


def _repository_of(issue: Issue, pull: Pull) -> str | None:
    return None if issue.repository_id == pull.repository_id else issue.repository


def _key(link: IssueLink) -> _Key:
    return link.repository and link.repository.lower(), link.number


def _key_of(issue: Issue, pull: Pull) -> _Key:
    return None if issue.repository_id == pull.repository_id else issue.repository.lower(), issue.number


def _target(link: IssueLink, pull: Pull) -> _Target:
    """Return what a link leads to."""
    if link.repository is not None:
        return "elsewhere"
    if link.number == pull.number:
        return "pull"
    for issue in pull.closing:
        if issue.number == link.number and issue.repository_id == pull.repository_id:
            return issue
    target = pull.references.get(link.number)
    if target is None:
        return "not looked up"
    return "moved" if isinstance(target, Issue) and target.repository_id != pull.repository_id else target


def _in_order(found: Iterable[tuple[IssueLink, Issue]], links: tuple[IssueLink, ...]) -> tuple[Issue, ...]:
    """Return the issues of some links, each once: the surest first, then as the texts name them, then by number."""
    texts = [_key(link) for link in links if link.confidence != "certain"]
    ranks: dict[int, tuple[int, int, int]] = {}
    issues: dict[int, Issue] = {}
    for link, issue in found:
        named = texts.index(_key(link)) if _key(link) in texts else len(texts)
        rank = (_RANKS.index(link.confidence), named, issue.number)
        ranks[issue.number] = min(rank, ranks.get(issue.number, rank))
        issues[issue.number] = issue
    return tuple(issues[number] for number in sorted(issues, key=lambda number: ranks[number]))


def _why_none(targets: list[tuple[IssueLink, _Target]]) -> tuple[Reason, str]:
    """Return why links lead to no issue: what the surest of them leads to."""
    if not targets:
        return Reason.NO_LINKED_ISSUE, "neither the forge nor a text says that an issue is closed"
    link, target = targets[0]
    reason, words = _REASONS[str(target)]
    return reason, f"{link.where}: {link.text!r}; {_number(_key(link))} {words}"


def _number(key: _Key) -> str:
    return f"{key[0] or ''}#{key[1]}"


def _disagreements(crawled: Crawled) -> Iterator[str]:
    pull = crawled.pull
    listed, closed = ({_key(link) for link in links} for links in (_listed(pull), _closed(pull)))
    said: dict[_Key, list[tuple[IssueLink, str]]] = {}
    for link, doubt in _said(pull, crawled.repository):
        said.setdefault(_key(link), []).append((link, doubt))
    if crawled.repository.default_branch in (None, pull.base_branch):
        yield from _unconfirmed(said, listed, closed, pull)
    for key in (key for key in said if key in listed | closed):
        if all(doubt == NEGATED for _, doubt in said[key]):
            yield f"{said[key][0][0].where} says that {_number(key)} is not closed, the forge that it is"
    for key in _sorted(listed - set(said)):
        yield f"the forge lists {_number(key)} as closed, but no text of the pull request says so"
    for issue in pull.closing:
        key = _key_of(issue, pull)
        if issue.closers and key not in closed:
            by = ", ".join(map(_name, issue.closers))
            yield f"the forge lists {_number(key)} as closed by this pull request, but its closed-events name {by}"


def _unconfirmed(
    said: Mapping[_Key, list[tuple[IssueLink, str]]], listed: set[_Key], closed: set[_Key], pull: Pull
) -> Iterator[str]:
    """Yield what texts say plainly of an issue of this repository, and the forge in no way."""
    others = ", ".join(map(_number, _sorted(listed))) or "nothing"
    for key in (key for key in said if key not in listed | closed):
        plainly = next((link for link, doubt in said[key] if not doubt), None)
        if plainly and isinstance(_target(plainly, pull), Issue):
            yield (
                f"{plainly.where} says {plainly.text!r}, but the forge lists {others} as closed, and no closed-event "
                f"of {_number(key)} names this pull request or a commit of it"
            )


def _sorted(keys: Iterable[_Key]) -> list[_Key]:
    return sorted(keys, key=lambda key: (key[0] or "", key[1]))
