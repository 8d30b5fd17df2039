"""What happened in a session, in order: JSON lines that a person can read, one event each.

Events are `message` (what the model was told), `reply` (what it said, and what that cost), `call` (what is done),
`result` (what came of it, cut as the model was shown it), `refused` (why nothing was done) and `end`.
"""

from __future__ import annotations

import json
from typing import Any

from installers.models.interface import Message


class Transcript:
    """The events of one session."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def note(self, event: str, **values: Any) -> None:
        """Add an event."""
        self.events.append({"event": event, **values})

    def told(self, message: Message) -> None:
        """Add a message to the model."""
        self.note("message", role=message.role, content=message.content)

    def text(self) -> str:
        """Return all events; characters beyond ASCII are escaped, so that whatever a box printed can be kept."""
        return "".join(f"{json.dumps(event)}\n" for event in self.events)
