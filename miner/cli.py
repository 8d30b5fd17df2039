"""The command line: each verb builds its objects and calls one job."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Annotated, Any, NoReturn

import structlog
import typer
from pydantic import BaseModel

from exporters.schema import schema_docs
from installers import doctor as install_doctor
from installers.distrust.page import page as distrust_page
from installers.models import doctor as model_doctor
from installers.models.replay import record
from installers.pythons import chosen_among
from miner.core.blobs import BlobStore
from miner.core.errors import EXIT_CAPPED, EXIT_FAULTED, LedgerBusy, MachineError, SweMinerError
from miner.core.generated import reasons_page
from miner.core.ledger import Ledger
from miner.core.records import legible
from miner.core.settings import Settings, load_settings, run_flags
from miner.crawlers.github import doctor as forge_doctor
from miner.jobs import archive, audit, correction, learn, monthly, release, snapshot
from miner.jobs.funnel import Funnel, newest_intake
from miner.jobs.funnel import discovery as count_discovery
from miner.jobs.funnel import funnel as count_funnel
from miner.jobs.render import checks_text, correction_text, count, decision_line, funnel_text, summary_text
from miner.jobs.render_status import status_text
from miner.jobs.status import running_since
from miner.jobs.status import status as run_status
from miner.sandbox import doctor as machine_doctor
from miner.sandbox.doctor import Check
from validators.case import Reader

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
docs = typer.Typer(no_args_is_help=True, help="Print documents that are generated from the code.")
releases = typer.Typer(no_args_is_help=True, help="Regenerate a release.")
app.add_typer(docs, name="docs", hidden=True)
recipes = typer.Typer(no_args_is_help=True, help="What language models found out about installing.")
app.add_typer(releases, name="release")
app.add_typer(recipes, name="recipes")

Config = Annotated[Path | None, typer.Option("--config", help="A TOML file whose values win over configs/*.toml.")]
Overrides = Annotated[list[str] | None, typer.Option("-c", metavar="KEY=VALUE", help="One setting; may be repeated.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def _settings(config: Path | None, overrides: list[str] | None) -> Settings:
    return load_settings(config, overrides or ())


def _say(value: Any, text: str, *, as_json: bool) -> None:
    """Print a result for a program or for a person."""
    if as_json:
        typer.echo(json.dumps(_plain(value), indent=2))
    else:
        typer.echo(text)


def _print_log(data: bytes) -> None:
    """Print a log: byte for byte into a pipe, without what aims at a terminal on one."""
    if sys.stdout.isatty():
        typer.echo(legible(data.decode("utf-8", "surrogateescape")), nl=False)
    else:
        typer.echo(data, nl=False)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


@app.command()
def run(
    source: Annotated[str | None, typer.Option(help="pypi, github, git or snapshot.")] = None,
    month: Annotated[str | None, typer.Option(help="Month of the merges, as 2025-05.")] = None,
    forge_url: Annotated[str | None, typer.Option(help="A server of GitHub's shape instead of github.com.")] = None,
    pilot: Annotated[int | None, typer.Option(help="Take a sample of so many candidates, and extrapolate.")] = None,
    notify: Annotated[str | None, typer.Option(help="Command that is told of stop, breaker, cap and finish.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="US dollars that language models may cost; hard.")] = None,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Mine: find candidates, build environments, validate, and write a release."""
    flags = run_flags(source=source, month=month, forge_url=forge_url, pilot=pilot, notify=notify, max_cost=max_cost)
    try:
        summary = monthly.run(_settings(config, [*flags, *(overrides or ())]), quiet=as_json)
    except LedgerBusy:
        since = running_since(_settings(config, overrides))
        text = f"already running{since}: `swe-miner status` shows how far it is"
        _say({"running": True, "since": since.strip()}, text, as_json=as_json)
        return
    _say(summary, summary_text(summary), as_json=as_json)
    faulted = summary.faulted or summary.units_faulted
    raise typer.Exit(EXIT_CAPPED if summary.capped else EXIT_FAULTED if faulted else 0)


@app.command()
def status(config: Config = None, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Show how far the newest run is, what it spends, and the command to type next: one screen."""
    options = [
        *(("--config", str(config)) if config else ()),
        *(part for one in overrides or () for part in ("-c", one)),
    ]
    found = run_status(_settings(config, overrides), options)
    _say(found, status_text(found), as_json=as_json)


@app.command("archive")
def show_archive(
    month: Annotated[str | None, typer.Option(help="Month of the merges, as 2025-05.")] = None,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Show what GH Archive had of a month: hours, events, and the share of the true merges."""
    found = archive.of_month(_settings(config, overrides), month)
    _say(found, found.text(), as_json=as_json)


@app.command()
def why(
    instance_id: str,
    log: Annotated[str | None, typer.Option(help="Print a whole log or blob by the beginning of its digest.")] = None,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Explain one candidate: every finding in order, with evidence."""
    settings = _settings(config, overrides)
    ledger, blobs = Ledger(settings.paths.ledger, create=False), BlobStore(settings.paths.blobs)
    account = audit.why(ledger, Reader(blobs, chosen_among(settings)), instance_id)
    if log is not None:
        _print_log(audit.open_log(account, blobs, log))
        return
    _say(account, audit.account_text(account), as_json=as_json)


@app.command()
def funnel(
    ids: Annotated[bool, typer.Option("--ids", help="List every candidate with its decision.")] = False,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Show where candidates stopped, in counts that add up."""
    ledger = Ledger(_settings(config, overrides).paths.ledger, create=False)
    decisions = audit.decisions(ledger)
    if ids:
        _say(decisions, "\n".join(map(decision_line, decisions)), as_json=as_json)
        return
    counted = Funnel(discovery=count_discovery(newest_intake(ledger), len(decisions)), stages=count_funnel(decisions))
    _say(counted, funnel_text(counted.stages, counted.discovery), as_json=as_json)


@app.command()
def doctor(
    github: Annotated[bool, typer.Option("--github", help="Check the forge: tokens, limits, what is assumed.")] = False,
    model: Annotated[bool, typer.Option("--model", help="Check the language models; asks each one twice.")] = False,
    max_cost: Annotated[float, typer.Option(min=0, help="US dollars that --model may cost.")] = model_doctor.CAP,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Check this machine, the forge, or the language models: each thing ok or not, and what to do about it."""
    settings, checks = _settings(config, overrides), list[Check]()
    if github:
        checks += forge_doctor.checks(settings.github, os.environ)
    if model:
        checks += model_doctor.checks(settings, os.environ, cap=max_cost)
    if not checks:
        checks += [*machine_doctor.checks(settings), *install_doctor.checks(settings)]
    _say(checks, checks_text(checks), as_json=as_json)
    raise typer.Exit(0 if all(check.ok for check in checks) else MachineError.exit_code)


@app.command()
def invalidate(
    producer: str,
    why: Annotated[str, typer.Option(help="What was wrong; stands in the ledger.")],
    epoch: Annotated[int | None, typer.Option(help="Only facts of this epoch.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only facts of this kind.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only facts about this subject.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Take a producer's facts out of use; nothing is deleted, and `remeasure` measures them again."""
    settings = _settings(config, overrides)
    facts = correction.invalidate(
        settings, why=why, producer=producer, epoch=epoch, kind=kind, subject=subject, dry_run=dry_run
    )
    _say(facts, f"{count(len(facts), 'fact')} {'would go' if dry_run else 'went'} out of use", as_json=as_json)


@app.command()
def remeasure(config: Config = None, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Measure what was invalidated again, and compare old against new."""
    corrected = correction.remeasure(_settings(config, overrides), quiet=as_json)
    _say(corrected, correction_text(corrected), as_json=as_json)
    raise typer.Exit(EXIT_FAULTED if corrected.faulted else 0)


@app.command("snapshot")
def write_snapshot(
    folder: Annotated[Path, typer.Argument(help="Becomes the snapshot; one that is there is replaced.")],
    month: Annotated[str | None, typer.Option(help="Month of the merges, as 2025-05.")] = None,
    not_public: Annotated[bool, typer.Option("--not-public", help="With what is private or held out, too.")] = False,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Write what was crawled of a month to a folder, from which it can be mined again with no network."""
    made = snapshot.write(_settings(config, overrides), folder, month=month, not_public=not_public)
    _say(made, snapshot.snapshot_text(made), as_json=as_json)


@releases.command("rebuild")
def rebuild(
    lock: Annotated[Path, typer.Argument(help="The release.lock of the release to rebuild.")],
    out: Annotated[Path, typer.Option(help="Folder for the rebuilt release.")],
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Build a release again, to the byte, from its release.lock and the ledger."""
    built = release.rebuild(_settings(config, overrides), lock, out)
    text = f"{built.folder}: {built.accepted} tasks, {built.rejected} rejected, every byte as {lock.name} names it"
    _say({"folder": str(built.folder), "tasks": built.accepted, "rejected": built.rejected}, text, as_json=as_json)


@recipes.command("learn")
def learn_recipes(
    export: Annotated[Path | None, typer.Option(help="Write rules to this file; its other rules stay.")] = None,
    min_repositories: Annotated[int, typer.Option(min=1, help="In which a fix must have worked to become a rule.")] = 2,
    not_public: Annotated[bool, typer.Option("--not-public", help="From what is private or held out, too.")] = False,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """List the fixes that language models found, and export them as repair rules."""
    paths = _settings(config, overrides).paths
    ledger, blobs = Ledger(paths.ledger, create=False), BlobStore(paths.blobs)
    found = learn.learn(ledger, blobs, min_repositories=min_repositories, not_public=not_public, export=export)
    _say(found, learn.learned_text(found), as_json=as_json)


@recipes.command("record")
def record_replies(
    file: Annotated[Path, typer.Argument(help="Becomes the file that `endpoint.replay` reads.")],
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Write the replies of language models to a file, which answers instead of an endpoint."""
    paths = _settings(config, overrides).paths
    written = record(Ledger(paths.ledger, create=False), BlobStore(paths.blobs), file)
    text = f"{count(written, 'answered request')} in {file}; -c endpoint.replay={file} reads them"
    note = "it quotes what the models were shown: it is as private as the least public candidate of this ledger"
    _say({"replies": written, "file": str(file), "note": note}, f"{text}\n{note}", as_json=as_json)


@docs.command("schema")
def docs_schema() -> None:
    """Print docs/schema.md."""
    typer.echo(schema_docs(), nl=False)


@docs.command("reasons")
def docs_reasons() -> None:
    """Print docs/reasons.md."""
    typer.echo(reasons_page(), nl=False)


@docs.command("distrust")
def docs_distrust() -> None:
    """Print docs/distrust.md."""
    typer.echo(distrust_page(), nl=False)


def _refuse_clash() -> None:
    """Refuse to start where another package took one of our import names."""
    clash = machine_doctor.import_clash()
    if clash is not None:
        raise MachineError(clash, next_step="install swe-miner into an environment of its own: `make setup`")


def _leave(status: int) -> NoReturn:
    """End the program, without waiting for workers that still wait for the network: they have nothing to lose."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def main() -> None:
    """Run the command line; the one place where an error becomes a message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character still gets the rest
            stream.reconfigure(errors="backslashreplace")
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
    try:
        _refuse_clash()
        app()
    except SweMinerError as error:
        typer.echo(legible(f"error: {error}\nnext: {error.next_step}"), err=True)
        _leave(error.exit_code)
    except BrokenPipeError:
        sys.exit(0)
    except Exception:  # noqa: BLE001 - the last handler: a bug is shown whole, with its own exit code
        typer.echo(legible(traceback.format_exc()), err=True)
        typer.echo("error: a bug in swe-miner; the ledger keeps everything that was completed", err=True)
        _leave(SweMinerError.exit_code)
