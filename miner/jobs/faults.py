"""What an error that one candidate met means: a fault of the infrastructure, a bug, or the end of the run."""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path

from miner.core.errors import DiskFull, InfrastructureFault, SweMinerError, is_disk_full
from miner.core.reasons import Reason, Stage
from miner.core.records import Evidence
from miner.core.settings import Settings, configs_dir
from validators.interface import Fault


def infrastructure_fault(caught: Exception) -> InfrastructureFault | None:
    """Return the fault of the infrastructure that an error is, or None for a bug.

    Raises:
        SweMinerError: it concerns the whole run: a stop, the configuration, the ledger, this machine.
    """
    if isinstance(caught, OSError) and is_disk_full(caught):
        return DiskFull(f"no space left: {caught}")
    if isinstance(caught, InfrastructureFault):
        return caught
    if isinstance(caught, SweMinerError):
        raise caught
    return None


def fault_from(caught: Exception, stage: Stage, settings: Settings) -> Fault:
    """Return an error as it is kept; that of a bug has its traceback as evidence."""
    if isinstance(known := infrastructure_fault(caught), InfrastructureFault):
        return Fault(code=known.reason, stage=stage, detail=_portable(str(known), settings))
    last = traceback.format_exception_only(caught)[-1].strip()
    whole = "".join(traceback.format_exception(caught))
    evidence = Evidence(excerpt=_portable(whole, settings))
    return Fault(code=Reason.INTERNAL_ERROR, stage=stage, detail=_portable(last, settings), evidence=(evidence,))


def _portable(text: str, settings: Settings) -> str:
    """Return text without the folders of this machine: a ledger can be handed over."""
    places = (settings.paths.work.resolve(), configs_dir().parent, Path.cwd(), Path.home())
    folders = {str(place) for place in (*places, Path(sys.prefix), Path(tempfile.gettempdir()))} - {"/"}
    for folder in sorted(folders, key=len, reverse=True):
        text = text.replace(f"{folder}/", "")
    return text
