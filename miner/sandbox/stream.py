"""The output of a command: taken out of the engine's frames, and bounded in memory."""

from __future__ import annotations

from collections import deque

_HEADER = 8


class Frames:
    """Takes the payload out of the engine's multiplexed stream, whatever the size of the chunks it arrives in.

    Format: <https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach>: one
    byte for the stream, three zero bytes, four bytes for the size (big endian), then the payload.
    """

    def __init__(self) -> None:
        self._header = b""
        self._left = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the pieces of payload that a chunk holds."""
        pieces: list[bytes] = []
        at = 0
        while at < len(chunk):
            if self._left == 0:
                taken = chunk[at : at + _HEADER - len(self._header)]
                self._header += taken
                at += len(taken)
                if len(self._header) == _HEADER:
                    self._left = int.from_bytes(self._header[4:], "big")
                    self._header = b""
                continue
            piece = chunk[at : at + self._left]
            self._left -= len(piece)
            at += len(piece)
            pieces.append(piece)
        return pieces


class Capture:
    """Keeps the head and the tail of a stream of any length, each up to half of `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._half = max_bytes // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail_size - len(self._tail[0]) >= self._half:
                self._tail_size -= len(self._tail.popleft())

    @property
    def truncated(self) -> bool:
        """Whether the middle is left out."""
        return self.total > 2 * self._half

    def output(self) -> bytes:
        """Return what was kept, with a line that says how much is left out."""
        tail = b"".join(self._tail)[-self._half :] if self._half else b""
        if not self.truncated:
            return bytes(self._head) + tail
        left_out = self.total - len(self._head) - len(tail)
        return bytes(self._head) + b"\n[... %d bytes left out ...]\n" % left_out + tail
