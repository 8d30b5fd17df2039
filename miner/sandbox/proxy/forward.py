"""Inside a box: hands connections to 127.0.0.1 on to the proxy's UNIX socket.

`python3 forward.py SOCKET LANE PORT` serves (LANE is one argument, `name tag`); `python3 forward.py PORT` waits until
that is so. It guards nothing: a program in the box may as well talk to the socket itself, and gets the same answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time

MAX_CONNECTIONS = 128  # as many as the proxy serves for a lane
CHUNK = 65536


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction up to its end, and tell the other side that it has ended."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.write_eof()


async def main(path: str, lane: str, port: int) -> None:
    """Serve until the end of the process."""
    free = asyncio.Semaphore(MAX_CONNECTIONS)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with free:
            with contextlib.suppress(OSError):
                there_reader, there_writer = await asyncio.open_unix_connection(path, limit=CHUNK)
                there_writer.write(f"LANE {lane}\n".encode())
                await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer))
                there_writer.close()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=CHUNK, backlog=MAX_CONNECTIONS)
    async with server:
        await server.serve_forever()


def wait(port: int, seconds: float = 20.0) -> int:
    """Return 0 as soon as the port accepts a connection, 1 if it does not in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return 0
        time.sleep(0.05)
    return 1


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.exit(wait(int(sys.argv[1])))
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
