"""The table of what language models are shown of failures: shares, lengths and money. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from installers.interface import Signature
from installers.models.billing import cost
from installers.models.interface import Usage
from miner.core.records import Record
from miner.core.settings import Price
from miner.core.spending import NANO

BUDGETS = (700, 1200, 2500)
"""Characters of an excerpt."""
FIRST = 4
"""Signatures that a model is told of an attempt (`installers.brief.history`)."""
REPLY_TOKENS = 500


class Read(Record):
    """What can be read again of an attempt's signatures from some texts.

    Attributes:
        excerpts: budget -> signatures that the excerpt shows.
        ends: budget -> signatures that the end of the log shows.
        whole: signatures that the whole log shows.
    """

    signatures: tuple[Signature, ...]
    excerpts: dict[int, frozenset[Signature]]
    ends: dict[int, frozenset[Signature]]
    whole: frozenset[Signature]


class Sizes(Record):
    """What is sent, in tokens by estimate.

    Attributes:
        first: the messages of a first question.
        refinement: those of its refinement, in which the first question and its reply come again.
        own: of these the last one, which is new.
        form: the schema of the reply, sent with each.
    """

    first: int
    refinement: int
    own: int
    form: int


class Seen(Record):
    """What was measured of a failing attempt.

    Attributes:
        read: None where the attempt shows no signature.
        sizes: None where no model would be asked after it.
        seconds: of the processor, for each excerpt.
    """

    package: str
    half: str
    installed: bool
    read: Read | None = None
    sizes: Sizes | None = None
    seconds: tuple[float, ...] = ()


def share_of_first(read: Iterable[tuple[Sequence[Signature], frozenset[Signature]]], first: int) -> str:
    """Return the share of the first few signatures of each attempt that were found."""
    pairs = [(one, found) for some, found in read for one in some[:first]]
    return f"{sum(one in found for one, found in pairs) / len(pairs):.0%}".replace("%", " %") if pairs else "-"


def spread(values: Sequence[float], form: str = ",.0f") -> str:
    """Return median, 90th percentile (nearest rank) and maximum."""
    if not values:
        return "-"
    ranked = sorted(values)
    return ", ".join(
        format(one, form) for one in (median(ranked), ranked[math.ceil(0.9 * len(ranked)) - 1], ranked[-1])
    )


def money(tokens: Sequence[int], price: Price) -> str:
    """Return what a question of median and of greatest length costs with its reply, in US dollars."""
    if not tokens:
        return "-"
    amounts = [cost(Usage(input_tokens=int(one), output_tokens=REPLY_TOKENS), price) / NANO for one in spanned(tokens)]
    fits = not price.context or median(tokens) + REPLY_TOKENS <= price.context
    return ", ".join(f"{one:.5f}" for one in amounts) + ("" if fits else " (too long for its context)")


def spanned(tokens: Sequence[int]) -> tuple[float, int]:
    """Return the median and the greatest."""
    return median(tokens), max(tokens)


def column(seen: Sequence[Seen], prices: Mapping[str, Price]) -> dict[str, str]:
    """Return what there is to say about the failing attempts of one folder: label -> numbers."""
    read = [one.read for one in seen if one.read is not None]
    sizes = [one.sizes for one in seen if one.sizes is not None]
    installed = sum(one.installed for one in seen)
    count = sum(len(one.signatures[:FIRST]) for one in read)
    found = {
        "failing attempts; packages": f"{len(seen)}; {len({one.package for one in seen})}",
        "of these refused; installed, but not well enough": f"{len(seen) - installed}; {installed}",
        f"that show a signature; their first {FIRST} signatures": f"{len(read)}; {count}",
    }
    for first, label in ((1, "first signature"), (FIRST, f"first {FIRST} signatures")):
        for budget in BUDGETS:
            shown = share_of_first(((one.signatures, one.excerpts[budget]) for one in read), first)
            blind = share_of_first(((one.signatures, one.ends[budget]) for one in read), first)
            found[f"{label}: from an excerpt of {budget:,} characters; from the blind end"] = f"{shown}; {blind}"
        found[f"{label}: from the whole log"] = share_of_first(((one.signatures, one.whole) for one in read), first)
    found |= {
        "attempts after which a model would be asked": str(len(sizes)),
        "tokens of a first question, all messages: median, p90, maximum": spread([one.first for one in sizes]),
        "tokens of a refinement, all messages: median, p90, maximum": spread([one.refinement for one in sizes]),
        "of these its own message: median, p90, maximum": spread([one.own for one in sizes]),
        "tokens of the schema, sent with each: median, p90, maximum": spread([one.form for one in sizes]),
        "processor seconds of an excerpt: median, p90, maximum": spread(
            [s for one in seen for s in one.seconds], ".3f"
        ),
    }
    sent = [one.first + one.form for one in sizes]
    for name, price in prices.items():
        found[f"$ for a first question and {REPLY_TOKENS} tokens of reply, `{name}`: median, maximum"] = money(
            sent, price
        )
    return found


def heading(seen: Sequence[Seen]) -> str:
    """Return which half of the corpus was measured."""
    halves = sorted({one.half for one in seen})
    return f"{halves[0]} half" if len(halves) == 1 else "both halves" if halves else "nothing"


def as_markdown(columns: Sequence[tuple[str, Mapping[str, str]]]) -> str:
    """Return the one table: a column for each folder."""
    rows = [["figure", *(name for name, _ in columns)], ["---"] * (len(columns) + 1)]
    rows += [[label, *(values[label] for _, values in columns)] for label in columns[0][1]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows).replace("| --- |", "|---|").replace(" --- |", "---|")
