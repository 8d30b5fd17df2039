"""What requests cost is exact, never rounded down, and never more than their bound if they keep to it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from desk_bench import PRICE, Bench, asking
from endpoint import Endpoint, faults, repeated, replies
from hypothesis import given
from hypothesis import strategies as st

from installers.models.billing import cost, misfit, prices_of, sent_bytes, upper_bound
from installers.models.interface import Form, Tool, Trouble, Usage
from installers.models.openai_model import OpenAIModel
from miner.core.errors import ConfigError
from miner.core.settings import Endpoint as EndpointSettings
from miner.core.settings import Price
from miner.core.spending import MOST, Caps

prices = st.builds(
    Price,
    input=st.decimals(0, 1000, places=6).map(float),
    output=st.decimals(0, 1000, places=6).map(float),
)


def exact(read: int, written: int, price: Price) -> Fraction:
    """Nano-dollars, from the prices as they are written."""
    return (read * Fraction(str(price.input)) + written * Fraction(str(price.output))) * 1000


@given(st.integers(0, 10**8), st.integers(0, 10**8), prices)
def test_a_cost_is_the_next_whole_nano_dollar(read: int, written: int, price: Price) -> None:
    found = cost(Usage(input_tokens=read, output_tokens=written), price)
    assert 0 <= found - exact(read, written, price) < 1


@given(st.text(max_size=200), st.integers(1, 10_000), prices)
def test_no_request_that_keeps_to_its_bound_costs_more(text: str, most: int, price: Price) -> None:
    request = asking(text.encode("utf-8", "replace").decode(), max_tokens=most)
    read = len(request.messages[0].content.encode())  # a token is a byte at least
    bound = upper_bound(request, price)
    assert bound >= cost(Usage(input_tokens=read, output_tokens=most), price)
    assert bound == cost(Usage(input_tokens=sent_bytes(request), output_tokens=most), price)


def test_everything_that_is_sent_counts() -> None:
    plain = sent_bytes(asking())
    tool = Tool(name="run", description="d" * 500, parameters={"type": "object"})
    assert sent_bytes(asking(tools=(tool,))) > plain + 500
    assert sent_bytes(asking(form=Form(name="f", definition={"description": "e" * 700}))) > plain + 700


def test_floats_make_no_difference() -> None:
    assert cost(Usage(input_tokens=3_000_000, output_tokens=0), Price(input=0.1, output=0)) == 300_000_000
    assert cost(Usage(input_tokens=1, output_tokens=0), Price(input=1e-9, output=0)) == 1
    assert cost(Usage(input_tokens=1, output_tokens=1), Price(input=0, output=0)) == 0


@pytest.mark.parametrize("price", [1e300, float("inf")])
def test_an_absurd_price_is_over_every_cap_and_breaks_nothing(price: float) -> None:
    assert upper_bound(asking(), Price(input=price, output=price)) == MOST


def test_a_model_without_a_price_is_an_error_of_the_configuration() -> None:
    price = Price(input=1, output=2)
    assert prices_of(["a"], {"a": price, "b": price}) == {"a": price}
    with pytest.raises(ConfigError, match="no price for the model b"):
        prices_of(["a", "b"], {"a": price})


def test_what_fits_is_no_misfit() -> None:
    for context, fits in ((0, True), (1100, True), (1099, False), (50, False)):
        assert (misfit(asking("x" * 4000), Price(input=1, output=1, context=context)) == "") is fits


@pytest.mark.loopback
def test_an_outage_of_a_gateway_leaves_the_cap_to_what_comes_after_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with Endpoint(repeated(faults.overloaded(), 2, replies.text("hello"))) as endpoint:
        model = OpenAIModel(EndpointSettings(), {"OPENAI_BASE_URL": endpoint.url})
        desk = bench.desk(model, caps=Caps(run=upper_bound(asking(), PRICE)), tries=2)
        with pytest.raises(Trouble, match="503"):
            bench.ask(desk)
        assert bench.ask(desk).reply.text == "hello"
