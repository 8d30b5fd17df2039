"""What a request can cost at most, and what it has cost, in nano-dollars: rounded up, without floats. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Decimal

from installers.models.interface import Request, Usage
from miner.core.errors import ConfigError
from miner.core.hashing import canonical_json
from miner.core.settings import Price
from miner.core.spending import MOST, NANO

_PER_MILLION = Decimal(NANO) / 1_000_000
_BYTES_IN_A_TOKEN = 4


def prices_of(models: Iterable[str], prices: Mapping[str, Price]) -> dict[str, Price]:
    """Return the prices of models.

    Raises:
        ConfigError: one has none, so that no cap could be kept.
    """
    missing = [name for name in models if name not in prices]
    if missing:
        raise ConfigError(
            f"there is no price for the model {missing[0]}: no cap on money could be kept",
            next_step=f'add [prices."{missing[0]}"] with input and output (US dollars for a million tokens) to a file '
            "of settings, as configs/models.toml does",
        )
    return {name: prices[name] for name in models}


def upper_bound(request: Request, price: Price) -> int:
    """Return what a request can cost at most: a token is at least one byte of what is sent."""
    return _money(sent_bytes(request), request.max_tokens, price)


def cost(usage: Usage, price: Price) -> int:
    """Return what the reported tokens cost."""
    return _money(usage.input_tokens, usage.output_tokens, price)


def sent_bytes(request: Request) -> int:
    """Return the bytes of everything that is sent."""
    return len(canonical_json(request).encode())


def misfit(request: Request, price: Price) -> str:
    """Return why a request surely does not fit into its model's context, "" where it may, or where that is not known.

    Its tokens are estimated, with no more of them than there usually are: what is wrongly let through, the endpoint
    refuses.
    """
    text = sum(
        len(message.content.encode()) + sum(len(one.arguments) for one in message.calls) for message in request.messages
    )
    tokens = text // _BYTES_IN_A_TOKEN
    if not price.context or tokens + request.max_tokens <= price.context:
        return ""
    return (
        f"about {tokens} tokens and a reply of up to {request.max_tokens} do not fit into the {price.context} tokens "
        f"of {request.model}: lower measure.model.prompt_tokens or measure.model.max_tokens"
    )


def _money(read: int, written: int, price: Price) -> int:
    exact = (Decimal(str(price.input)) * read + Decimal(str(price.output)) * written) * _PER_MILLION
    return MOST if exact >= MOST else int(exact.to_integral_value(ROUND_CEILING))
