"""Language models in a run: who is shown to them, and what they came to."""

from __future__ import annotations

import os

from installers.models.desk import off_because
from miner.jobs.context import Context


def models_line(context: Context) -> str:
    """Return one sentence: what language models cost in a run, or why none is asked."""
    because = off_because(context.settings, os.environ)
    if because:
        return f"language models: none is asked ({because})"
    spent, cap = context.money(), context.settings.run.max_cost
    return f"language models: ${spent:.4f} of ${cap:.2f} spent"
