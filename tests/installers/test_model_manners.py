"""What an endpoint does not take is left out, or said otherwise, and remembered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from desk_bench import asking
from tiny_endpoint import Said, TinyEndpoint, completion, error

from installers.models.interface import Form, RequestRefused, Tool, ToolsUnsupported, Trouble
from installers.models.openai_model import OpenAIModel
from miner.core.settings import Endpoint

FORM = Form(name="recipe", definition={"type": "object"})
TOOL = Tool(name="run", description="Run a command.")


@pytest.fixture
def server() -> Iterator[TinyEndpoint]:
    with TinyEndpoint() as server:
        yield server


def model_of(server: TinyEndpoint) -> OpenAIModel:
    return OpenAIModel(Endpoint(), server.environ)


def _refuses(name: str, message: str, status: int = 400, **more: Any) -> Any:
    """A script that refuses requests with a parameter."""

    def script(body: dict[str, Any]) -> Said:
        return Said(error(message, **more), status) if name in body else Said(completion())

    return script


def test_an_endpoint_that_wants_the_newer_name_of_a_bound_gets_it_from_then_on(server: TinyEndpoint) -> None:
    message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
    server.script = _refuses("max_tokens", message, param="max_tokens", code="unsupported_parameter")
    model = model_of(server)
    for _ in range(2):
        model.complete(asking())
    assert [sorted(body) for body in server.bodies] == [
        ["max_tokens", "messages", "model"],
        ["max_completion_tokens", "messages", "model"],
        ["max_completion_tokens", "messages", "model"],
    ]
    model.complete(asking().model_copy(update={"model": "another"}))
    assert "max_tokens" in server.bodies[3], "it is remembered by model"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (error("Invalid parameter: of type 'json_schema' is not supported", param="response_format"), 400),
        ({"detail": [{"loc": ["body", "response_format"], "msg": "extra fields not permitted"}]}, 422),
        ({"message": "This model does not support structured output"}, 400),
        ({"error": "json_schema is not supported"}, 400),
    ],
)  # fmt: skip
def test_an_endpoint_without_forms_is_asked_without(server: TinyEndpoint, body: Any, status: int) -> None:
    server.script = lambda sent: Said(body, status) if "response_format" in sent else Said(completion())
    assert model_of(server).complete(asking(form=FORM)).text == "hello"


def test_a_model_that_takes_no_temperature_is_asked_without_and_several_refusals_add_up(server: TinyEndpoint) -> None:
    def script(body: dict[str, Any]) -> Said:
        if "max_tokens" in body:
            return Said(error("use max_completion_tokens", param="max_tokens"), 400)
        if "temperature" in body:
            return Said(error("'temperature' does not support 0.7", param="temperature"), 400)
        return (
            Said(error("response_format?", param="response_format"), 400)
            if "response_format" in body
            else Said(completion())
        )

    server.script = script
    assert model_of(server).complete(asking(form=FORM, temperature=0.7)).text == "hello"
    assert sorted(server.bodies[-1]) == ["max_completion_tokens", "messages", "model"]
    assert len(server.bodies) == 4


def test_a_refusal_that_leaving_out_does_not_end_is_a_refusal(server: TinyEndpoint) -> None:
    server.script = lambda _: Said(error("max_tokens is too large: 100", param="max_tokens"), 400)
    with pytest.raises(RequestRefused, match="max_tokens is too large"):
        model_of(server).complete(asking())
    assert len(server.bodies) == 2
    with pytest.raises(RequestRefused):
        model_of(server).complete(asking())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (error("`tools` is not supported with this model", param="tools"), 400),
        (error("registry/small does not support tools"), 400),
        (error('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'), 400),
        (error("No endpoints found that support tool use.", code=404), 404),
        (error("tools param requires --jinja flag", code=500), 500),
        ({"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]}, 422),
    ],
)
def test_an_endpoint_without_tools_says_so(server: TinyEndpoint, body: Any, status: int) -> None:
    server.script = lambda _: Said(body, status)
    with pytest.raises(ToolsUnsupported):
        model_of(server).complete(asking(tools=(TOOL,)))
    with pytest.raises((RequestRefused, Trouble)) as other:
        model_of(server).complete(asking())
    assert not isinstance(other.value, ToolsUnsupported)


def test_what_is_wrong_with_a_message_of_a_tool_is_no_lack_of_tools(server: TinyEndpoint) -> None:
    message = "messages with role 'tool' must be a response to a preceding message, which is not supported here"
    server.script = lambda _: Said(error(message, param="messages.[3].role"), 400)
    with pytest.raises(RequestRefused) as refused:
        model_of(server).complete(asking(tools=(TOOL,)))
    assert not isinstance(refused.value, ToolsUnsupported)
