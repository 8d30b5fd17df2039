"""Answers with status 200 that are no completion, or one that no documentation knows."""

from __future__ import annotations

import json
import zlib
from typing import Any

from endpoint.completion import call, completion
from endpoint.exchange import Answer, Asked, Behaviour, answer
from endpoint.faults import PAGE
from endpoint.replies import smallest, text

MEGABYTE = 1_000_000
_GZIP = 31


def html() -> Behaviour:
    """A web page: the base URL is that of the site. https://github.com/Ikaros-521/AI-Vtuber/issues/635"""
    return lambda _: Answer(200, ((PAGE, 1),), {"content-type": "text/html; charset=utf-8"})


def not_json() -> Behaviour:
    """Half of a completion, announced as if it were all of it. https://www.rfc-editor.org/rfc/rfc8259"""

    def behave(asked: Asked) -> Answer:
        whole = text("hello")(asked)
        return Answer(200, ((whole.body[: whole.length // 2], 1),), whole.headers)

    return behave


def no_body() -> Behaviour:
    """Nothing at all. https://www.rfc-editor.org/rfc/rfc9110#section-15.3.1"""
    return lambda _: Answer(200, (), {"content-type": "application/json"})


def body(value: Any) -> Behaviour:
    """Any JSON value where a completion is expected: a list, a number, null.

    https://platform.openai.com/docs/api-reference/chat/object
    """
    return lambda _: answer(value)


def no_choices() -> Behaviour:
    """An empty list of choices. https://github.com/AstrBotDevs/AstrBot/pull/6313"""
    return changed(choices=[])


def choices_null() -> Behaviour:
    """No list of choices. https://github.com/langchain-ai/langchain/issues/32252"""
    return changed(choices=None)


def message_missing() -> Behaviour:
    """A choice without a message. https://github.com/maximhq/bifrost/issues/5425"""
    return changed(choices=[{"index": 0, "finish_reason": "error"}])


def content_parts() -> Behaviour:
    """Content as a list of parts. https://docs.mistral.ai/capabilities/reasoning"""
    parts = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "hello"}]
    return changed(choices=[{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": parts}}])


def finish_unknown() -> Behaviour:
    """A reason to end that the documentation does not list. https://github.com/genkit-ai/genkit/pull/6259"""

    def behave(asked: Asked) -> Answer:
        return answer(completion(asked, {"content": "hello"}, "insufficient_system_resource"))

    return behave


def usage_missing() -> Behaviour:
    """No usage. https://github.com/LostRuins/koboldcpp/issues/603"""

    def behave(asked: Asked) -> Answer:
        made = completion(asked, {"content": "hello"})
        return answer({name: value for name, value in made.items() if name != "usage"})

    return behave


def usage(prompt: Any, reply: Any) -> Behaviour:
    """Usage as it is given: null, negative, text, more than can be.

    https://github.com/maximhq/bifrost/issues/5425
    """
    return changed(usage={"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": 0})


def usage_shape(value: Any) -> Behaviour:
    """Usage that is no object. https://github.com/open-webui/open-webui/issues/10682"""
    return changed(usage=value)


def other_model(name: str = "a-smaller-model") -> Behaviour:
    """Another model than the one that was asked answers. https://openrouter.ai/docs/guides/routing/model-fallbacks"""
    return changed(model=name)


def event_stream() -> Behaviour:
    """A stream of events, although none was asked for. https://github.com/decolua/9router/issues/3492"""

    def behave(asked: Asked) -> Answer:
        made = completion(asked, {"content": "hello"})
        delta = {"index": 0, "delta": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
        chunk = {**made, "object": "chat.completion.chunk", "choices": [delta]}
        sent = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        return Answer(200, ((sent, 1),), {"content-type": "text/event-stream"}, "chunked")

    return behave


def huge(megabytes: int = 100) -> Behaviour:
    """A reply of so many megabytes. https://cwe.mitre.org/data/definitions/770.html"""

    def behave(asked: Asked) -> Answer:
        before, _, after = json.dumps(completion(asked, {"content": "@"})).encode().partition(b"@")
        return Answer(
            200,
            ((before, 1), (b"a" * 50_000, megabytes * MEGABYTE // 50_000), (after, 1)),
            {"content-type": "application/json"},
        )

    return behave


def huge_chunks(megabytes: int = 100) -> Behaviour:
    """The same without a length that would tell. https://cwe.mitre.org/data/definitions/770.html"""

    def behave(asked: Asked) -> Answer:
        made = huge(megabytes)(asked)
        return Answer(made.status, made.parts, made.headers, "chunked")

    return behave


def huge_error(megabytes: int = 100) -> Behaviour:
    """An error of so many megabytes. https://cwe.mitre.org/data/definitions/770.html"""

    def behave(asked: Asked) -> Answer:
        made = huge(megabytes)(asked)
        return Answer(500, made.parts, made.headers, made.wire)

    return behave


def bomb(megabytes: int = 100) -> Behaviour:
    """A small body that unpacks to so many megabytes. https://cwe.mitre.org/data/definitions/409.html"""

    def behave(asked: Asked) -> Answer:
        before, _, after = json.dumps(completion(asked, {"content": "@"})).encode().partition(b"@")
        packer = zlib.compressobj(6, wbits=_GZIP)
        packed = [packer.compress(part) for part in (before, *[b"a" * MEGABYTE] * megabytes, after)]
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        return Answer(200, ((b"".join([*packed, packer.flush()]), 1),), headers)

    return behave


def not_gzip() -> Behaviour:
    """A body that is not what its Content-Encoding says. https://www.rfc-editor.org/rfc/rfc9110#section-8.4"""
    return lambda _: Answer(
        200, ((b"not packed", 1),), {"content-type": "application/json", "content-encoding": "gzip"}
    )


def deep_body(levels: int = 100_000) -> Behaviour:
    """JSON nested so deep that a parser gives up. https://cwe.mitre.org/data/definitions/674.html"""
    return lambda _: Answer(200, ((b"[", levels), (b"]", levels)), {"content-type": "application/json"})


def not_utf8() -> Behaviour:
    """Bytes that are not UTF-8. https://www.rfc-editor.org/rfc/rfc8259#section-8.1"""

    def behave(asked: Asked) -> Answer:
        sent = text("@")(asked).body.replace(b"@", b"\xff\xfe")
        return Answer(200, ((sent, 1),), {"content-type": "application/json"})

    return behave


def odd_calls(*calls: Any) -> Behaviour:
    """Calls of tools as they are given, whatever their shape. https://github.com/earendil-works/pi/issues/4854"""

    def behave(asked: Asked) -> Answer:
        return answer(completion(asked, {"tool_calls": list(calls)}, "tool_calls"))

    return behave


def same_ids() -> Behaviour:
    """Two calls with one id. https://github.com/can1357/oh-my-pi/issues/2055"""

    def behave(asked: Asked) -> Answer:
        name = next(iter(asked.tools), "run")
        return odd_calls(*[call(name, smallest(asked), "call_same")] * 2)(asked)

    return behave


def no_id() -> Behaviour:
    """A call without an id. https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/830"""

    def behave(asked: Asked) -> Answer:
        return odd_calls(call(next(iter(asked.tools), "run"), smallest(asked), ""))(asked)

    return behave


def changed(**members: Any) -> Behaviour:
    """A completion with some members as they are given. https://platform.openai.com/docs/api-reference/chat/object"""
    return lambda asked: answer({**completion(asked, {"content": "hello"}), **members})
