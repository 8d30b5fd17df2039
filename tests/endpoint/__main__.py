"""Serve a script by hand: `PYTHONPATH=tests python -m endpoint --script FILE`.

Then, for instance:

    OPENAI_BASE_URL=http://127.0.0.1:8901/v1 OPENAI_MODEL=a-model swe-miner doctor --model

Without a script every request is answered with the smallest value of the form that it asks for.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from endpoint.replies import fitting
from endpoint.script import constructors, last_again, load_script
from endpoint.server import Endpoint


def main(argv: list[str] | None = None) -> None:
    """Serve until Ctrl-C; print what is asked. The last behaviour of a script is repeated."""
    parser = argparse.ArgumentParser(prog="endpoint", description="A server of chat completions on loopback.")
    parser.add_argument("--script", type=Path, help="TOML or JSON (see endpoint/script.py)")
    parser.add_argument("--port", type=int, default=8901)
    parser.add_argument("--list", action="store_true", help="print what a script may name, and end")
    chosen = parser.parse_args(argv)
    if chosen.list:
        for name, made in sorted(constructors().items()):
            print(f"{name:34} {(made.__doc__ or '').splitlines()[0]}")
        return
    script = load_script(chosen.script) if chosen.script else [fitting(modes=["editable"])]
    with Endpoint(last_again(script), port=chosen.port) as endpoint:
        print(f"{endpoint.url} answers", flush=True)
        _follow(endpoint)


def _follow(endpoint: Endpoint) -> None:
    shown = 0
    try:
        while True:
            for asked, made in list(zip(endpoint.asked, endpoint.answered, strict=False))[shown:]:
                what = f"{len(asked.messages)} messages, {len(asked.tools)} tools"
                print(f"{made.status} {asked.model}: {what}; {made.length} bytes {made.wire}", flush=True)
                shown += 1
            time.sleep(0.2)
    except KeyboardInterrupt:
        print(f"{shown} requests")


if __name__ == "__main__":
    main()
