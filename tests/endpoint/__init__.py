"""A server of chat completions for tests, that answers from a script, in every way that endpoints and models do.

from endpoint import Endpoint, faults, hostile, malformed, replies
"""

from __future__ import annotations

from endpoint import faults, hostile, malformed, replies
from endpoint.exchange import Answer, Asked, Behaviour
from endpoint.script import constructors, last_again, load_script, repeated
from endpoint.server import Endpoint

__all__ = [
    "Answer",
    "Asked",
    "Behaviour",
    "Endpoint",
    "constructors",
    "faults",
    "hostile",
    "last_again",
    "load_script",
    "malformed",
    "repeated",
    "replies",
]
