"""Serve a world by hand: `PYTHONPATH=tests python -m forge FOLDER`.

A folder without `world.json` gets one, with sample projects in it. Then, for instance:

    GITHUB_TOKEN=any swe-miner run --source github --month 2025-05 --forge-url http://127.0.0.1:8900 \
        -c mine.repository_list=FOLDER/repositories.txt
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from forge.limits import Limits
from forge.samples import sample_project
from forge.scale import Scale, big_world
from forge.server import Forge
from forge.storage import FILE, load_world, save_world
from forge.world import World

LIST = "repositories.txt"


def main(argv: list[str] | None = None) -> None:
    """Serve until Ctrl-C; print the log."""
    parser = argparse.ArgumentParser(prog="forge", description="A GitHub-shaped server on loopback.")
    parser.add_argument("folder", type=Path, help=f"where {FILE} and the bare repositories lie, or are made")
    parser.add_argument("--port", type=int, default=8900)
    parser.add_argument("--no-limits", action="store_true", help="count what is spent, but refuse nothing")
    parser.add_argument("--scale", type=int, metavar="PULLS", help="no folder is read: so many pull requests, no git")
    chosen = parser.parse_args(argv)
    world = _world(chosen.folder, chosen.scale)
    with Forge(world, port=chosen.port, limits=Limits.none() if chosen.no_limits else None) as forge:
        print(f"{forge.url} serves {len(world.by_id)} repositories; names in {chosen.folder / LIST}", flush=True)
        _follow(forge)


def _world(folder: Path, pulls: int | None) -> World:
    folder.mkdir(parents=True, exist_ok=True)
    if pulls is not None:
        world = big_world(Scale(repositories=max(1, pulls // 20), pulls=pulls))
    elif (folder / FILE).exists():
        world = load_world(folder)
    else:
        world = World(folder)
        for name in ("octo/calc", "octo/parts"):
            sample_project(world, name)
        save_world(world, folder)
    names = [repo.full_name for repo in world if repo.parent is None]
    (folder / LIST).write_text("\n".join([*names, ""]), encoding="utf-8")
    return world


def _follow(forge: Forge) -> None:
    shown = 0
    try:
        while True:
            for entry in forge.log.entries[shown:]:
                what = entry.document or f"{entry.path}{'?' if entry.query else ''}{entry.query}"
                print(
                    f"{entry.status} {entry.points:>4} points  token {entry.token}  {entry.method} {what}", flush=True
                )
                shown += 1
            time.sleep(0.2)
    except KeyboardInterrupt:
        print(f"{forge.log.requests} requests, {forge.log.points} points")


if __name__ == "__main__":
    main()
