"""What a tree's CI installs and runs, read statically: one module for each format.

A file that is broken, too large or too strange becomes a note, never an error; nothing of it is executed.
"""

from __future__ import annotations

from miner.project.ci.paths import is_ci

__all__ = ["is_ci"]
