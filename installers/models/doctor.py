"""What language models need, each need looked at on its own: variables, prices, the endpoint, and one tiny talk.

It asks each model twice, within a cap of its own, reserved like all money; it touches no ledger.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from installers.models.address import address_of, shown
from installers.models.billing import prices_of
from installers.models.desk import Desk, desk_of, model_names
from installers.models.doctor_talk import talks
from installers.models.listing import names_listed
from installers.models.replay import read
from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError, SweMinerError
from miner.core.ledger import Ledger
from miner.core.settings import Settings
from miner.core.spending import Spending
from miner.sandbox.doctor import Check

CAP = 0.01
_TRIES = 2
_RUN = "doctor"
_LIST_S = 30.0
_SHOWN = 5


def checks(settings: Settings, environ: Mapping[str, str], *, cap: float = CAP) -> tuple[Check, ...]:
    """Look at everything, in order; what a failed check makes pointless is left out.

    Args:
        settings: where the endpoint is told of, and what models cost.
        environ: holds address, key and names of models.
        cap: US dollars that the check may cost.
    """
    found = [check_variables(settings, environ)]
    if not found[-1].ok or settings.endpoint.replay is not None:
        return tuple(found)
    found.append(check_models(settings, environ))
    found.append(check_reached(settings, environ))
    if not all(check.ok for check in found):
        return tuple(found)
    try:
        with _desk(settings, environ, cap) as desk:
            found += talks(desk, settings.measure.model.agent.text, cap)
    except SweMinerError as error:
        found.append(Check(name="models", ok=False, detail=str(error), next_step=error.next_step))
    return tuple(found)


def check_variables(settings: Settings, environ: Mapping[str, str]) -> Check:
    """Whether the environment names an endpoint; of its key nothing is shown but whether it is there."""
    said = settings.endpoint
    if said.replay is not None:
        return _check_replay(said.replay)
    if not environ.get(said.url_env, "").strip():
        how = (
            f"export {said.url_env}=https://HOST/v1 {said.key_env}=KEY {said.model_env}=NAME; without it none is asked"
        )
        return Check(name="endpoint", ok=False, detail=f"{said.url_env} is not set", next_step=how)
    try:
        url, key = address_of(said, environ)
    except ConfigError as error:
        return Check(name="endpoint", ok=False, detail=str(error), next_step=error.next_step)
    return Check(name="endpoint", ok=True, detail=f"{shown(url)}; {said.key_env} is {'set' if key else 'not set'}")


def _check_replay(file: Path) -> Check:
    try:
        count = sum(1 for _ in read(file))
    except ConfigError as error:
        return Check(name="endpoint", ok=False, detail=str(error), next_step=error.next_step)
    return Check(name="endpoint", ok=True, detail=f"{count} recorded replies of {file.name} stand for one")


def check_models(settings: Settings, environ: Mapping[str, str]) -> Check:
    """Whether models are named, and what they cost is known."""
    names = model_names(settings, environ)
    if not names:
        how = f'export {settings.endpoint.model_env}=NAME, or set measure.model.order=["NAME"]'
        return Check(name="models", ok=False, detail="none is named", next_step=how)
    try:
        prices = prices_of(names, settings.prices)
    except ConfigError as error:
        return Check(name="models", ok=False, detail=str(error), next_step=error.next_step)
    said = [f"{name} (${price.input:g} read, ${price.output:g} written, a million)" for name, price in prices.items()]
    return Check(name="models", ok=True, detail="; ".join(said))


def check_reached(settings: Settings, environ: Mapping[str, str]) -> Check:
    """Whether the endpoint is well, and has the models, by its list of them (no tokens are read or written)."""
    said, name = settings.endpoint, "endpoint answers"
    try:
        listed = names_listed(said, environ, min(_LIST_S, said.timeout_s))
    except SweMinerError as error:
        return Check(name=name, ok=False, detail=str(error), next_step=error.next_step)
    if listed is None:
        return Check(name=name, ok=True, detail="yes; it has no list of models")
    missing = [one for one in model_names(settings, environ) if listed and one not in listed]
    detail = f"yes; its list has {len(listed)} models{f', and no {missing[0]}' if missing else ''}"
    some = ", ".join(sorted(listed)[:_SHOWN])
    return Check(name=name, ok=not missing, detail=detail, next_step=f"name one of {some}" if missing else "")


@contextmanager
def _desk(settings: Settings, environ: Mapping[str, str], cap: float) -> Iterator[Desk]:
    """Return a desk with a purse of its own, which is thrown away: a check is no run."""
    run = settings.run.model_copy(update={"max_cost": cap, "max_cost_month": None, "max_cost_repository": None})
    brief = settings.endpoint.model_copy(update={"tries": min(_TRIES, settings.endpoint.tries), "max_wait_s": 5.0})
    ours = settings.model_copy(update={"run": run, "endpoint": brief})
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"sqlite:///{folder}/ledger.sqlite3")
        try:
            ledger.begin_run(_RUN, _RUN, settings, {})
            desk = desk_of(ours, Spending(ledger), _RUN, blobs=BlobStore(folder), environ=environ)
            if desk is None:
                raise ConfigError("no language model is asked", next_step="give the check a cap above nothing")
            yield desk
        finally:
            ledger.close()
