"""Layered settings: the shipped files < a chosen file < the environment < `-c key=value`.

An unknown key is an error with a "did you mean". The shipped files are `defaults.toml`,
`measure.toml`, `policy.toml` and `models.toml` in `configs/`. Settings under `measure` steer measuring and enter input
hashes; settings under `policy` only judge and never do (law 1). Environment variables are `SWE_MINER_SECTION__KEY`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from miner.core.errors import ConfigError
from miner.core.hashing import canonical_json, hash_of
from miner.core.records import ReleasePair, Visibility

ENV_PREFIX = "SWE_MINER_"
_OF_MACHINE = {"repository_list", "optout", "git_pulls", "git_mirrors", "snapshot", "archive"}


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Place = Annotated[Path, AfterValidator(Path.absolute)]
"""A relative path starts where the program was started, also for what runs elsewhere."""


class Paths(_Section):
    """Where things are kept. Nothing of this enters the ledger.

    Attributes:
        pythons: a folder of interpreters (`3.8.18/bin/python3.8`), for what the base image lacks and uv cannot get.
    """

    work: Place = Field(default=Path("var"), validate_default=True)
    pythons: Place | None = None
    release: Place = Field(default=Path("out"), validate_default=True)
    ledger_url: str | None = None
    blobs_url: str | None = None

    @property
    def ledger(self) -> str:
        """SQLAlchemy URL of the ledger."""
        return self.ledger_url or f"sqlite:///{self.work / 'ledger.sqlite3'}"

    @property
    def blobs(self) -> str:
        """Fsspec URL of the blobs."""
        return self.blobs_url or str(self.work / "blobs")


class Index(_Section):
    """The Python package index: empty values mean what pip and uv would use.

    Attributes:
        canary: a project that the index surely has: its page says whether the index is well.
    """

    url: str | None = None
    ca_bundle: Path | None = None
    extra_hosts: tuple[str, ...] = ()
    timeout_s: float = 30.0
    tries: int = 4
    canary: str = "pip"


class Github(_Section):
    """The forge: GitHub, GitHub Enterprise Server, or a server of their shape. Tokens come from the environment alone.

    Attributes:
        url: where git finds repositories, `{url}/owner/name.git`.
        api_url: root of the REST API.
        graphql_url: the GraphQL endpoint; None: `graphql` beside the REST root.
        token_env: variables that may hold tokens, several in one separated by commas.
        max_wait_s: a limit that resets later than this ends the run instead of being waited for.
        git_timeout_s: how long one git command on a mirror may take.
    """

    url: str = "https://github.com"
    api_url: str = "https://api.github.com"
    graphql_url: str | None = None
    token_env: tuple[str, ...] = ("GITHUB_TOKEN", "GH_TOKEN")
    ca_bundle: Path | None = None
    timeout_s: float = Field(default=60.0, gt=0)
    tries: int = Field(default=6, ge=1)
    max_wait_s: float = Field(default=3900.0, ge=0)
    git_timeout_s: float = Field(default=1800.0, gt=0)

    @property
    def graphql(self) -> str:
        """The GraphQL endpoint (GitHub Enterprise Server has it at `/api/graphql`, its REST root is `/api/v3`)."""
        return self.graphql_url or self.api_url.removesuffix("/").removesuffix("/v3") + "/graphql"


class Docker(_Section):
    """The container engine and the base image."""

    host: str | None = None
    base_image: str | None = None
    suite: str = "bookworm"
    snapshot_epoch: int = 1735689600
    runtime: str | None = None


class Endpoint(_Section):
    """The endpoint of language models: any that speaks OpenAI's chat completions.

    Its address and its key come from the environment alone.

    Attributes:
        url_env: variable that holds its base URL ("https://host/v1"); unset: no model is asked.
        key_env: variable that holds the key; unset: an endpoint that asks for none.
        model_env: variable that names models, several separated by commas, where `measure.model.order` names none.
        timeout_s: one request may take so long.
        tries: of one request, until the endpoint counts as unreachable.
        max_wait_s: a limit that resets later than this is not waited for.
        private: candidates that are not public are shown to the endpoint as well.
        replay: a file of recorded replies, which answer instead of an endpoint.
    """

    url_env: str = "OPENAI_BASE_URL"
    key_env: str = "OPENAI_API_KEY"
    model_env: str = "OPENAI_MODEL"
    ca_bundle: Path | None = None
    timeout_s: float = Field(default=300.0, gt=0)
    tries: int = Field(default=5, ge=1)
    max_wait_s: float = Field(default=120.0, ge=0)
    private: bool = False
    replay: Place | None = None


class Price(_Section):
    """What a model costs, in US dollars for a million tokens.

    Attributes:
        context: tokens that it can read and write in one request; 0 where that is not known.
        as_of: when the price was read, and where.
    """

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    context: int = Field(default=0, ge=0)
    as_of: str = ""


class Run(_Section):
    """How a run uses this machine.

    Attributes:
        workers: candidates that are worked on at once.
        crawl_workers: repositories that are crawled at once.
        notify: command that is told what happened (stop, breaker, cap, finish): JSON on its standard input.
        max_points: a run stops before it spends more of the forge's points; None: no cap.
        max_hours: a run stops cleanly after this long; None: no cap.
        pause_max_s: a run waits so long for a service that is not well, and then ends.
        max_cost: what language models may cost in one run, in US dollars, the runs that it goes on with included; None:
            none is asked.
        max_cost_month: the same for a calendar month (UTC), over all runs of the ledger; None: no cap.
        max_cost_repository: the same for one repository in one run; None: no cap.
        max_disk_gb: how much layers, images and cached packages may take of the disk: beyond it goes what can be had
            again and was not used for longest; None: no bound.
    """

    workers: int = Field(default=2, ge=1)
    crawl_workers: int = Field(default=4, ge=1)
    engine: Literal["local"] = "local"
    notify: str | None = None
    max_points: int | None = None
    max_hours: float | None = None
    max_cost: float | None = Field(default=None, ge=0)
    max_cost_month: float | None = Field(default=None, ge=0)
    max_cost_repository: float | None = Field(default=1.0, ge=0)
    pause_max_s: float = Field(default=1800.0, ge=0)
    max_disk_gb: float | None = Field(default=100.0, gt=0)


def _a_month(text: str) -> str:
    if not re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", text):
        raise ValueError("a month is written 2025-05")
    return text


class Mine(_Section):
    """What is mined.

    Attributes:
        source: where candidates come from; None: `pypi` where there are pairs, `github` where there are none.
        month: of the merge, in UTC.
        repositories: full names of repositories.
        repository_list: a file with one full name a line.
        repository_search: qualifiers of GitHub's repository search ("language:python stars:>=50").
        optout: a file with the repositories and owners that are never mined.
        git_pulls: for the source `git`: a file of JSON lines, one pull request each.
        git_mirrors: for the source `git`: the folder of its repositories.
        git_incomplete: for the source `git`: take trees of which the folder lacks contents, without these files.
        snapshot: for the source `snapshot`: a folder that `swe-miner snapshot` wrote.
        archive: GH Archive hours, a folder or a base URL, as hints of where to look; None: not used.
        seed: of the order in which candidates are worked on, and of samples.
        pilot: take only a stratified sample of this many candidates through all stages.
    """

    source: Literal["pypi", "github", "git", "snapshot"] | None = None
    month: Annotated[str, AfterValidator(_a_month)] | None = None
    repositories: tuple[str, ...] = ()
    repository_list: Place | None = None
    repository_search: tuple[str, ...] = ()
    optout: Place | None = None
    git_pulls: Place | None = None
    git_mirrors: Place | None = None
    git_incomplete: bool = False
    snapshot: Place | None = None
    archive: str | None = None
    seed: int = 0
    pilot: int | None = Field(default=None, ge=1)


class Limits(_Section):
    """Bounds of one container."""

    memory_mb: int = Field(ge=64)
    cpus: float = Field(gt=0)
    pids: int = Field(ge=16)
    disk_mb: int = Field(ge=64)
    output_mb: int = Field(ge=1)
    timeout_s: float = Field(gt=0)


class ArchiveLimits(_Section):
    """Bounds of an unpacked source distribution."""

    max_bytes: int
    max_files: int
    max_file_bytes: int
    max_ratio: int


class Cutoff(_Section):
    """The package index as of a date.

    Attributes:
        days_after: the change was proposed, or the release was uploaded.
        era_days: changes of one era share one first cut-off, the beginning of the era, and with it their environments.
        fallback_days: later cut-offs, in days after the exact one, that are tried when the exact one leads nowhere.
        exempt: packages that are taken as of `exempt_before`, where that is later than the cut-off.
        exempt_links: the same for what links a project to its tree (PEP 660) and for nothing else.
        exempt_until_python: packages that are taken as of a month after the interpreter came out.
        exempt_builds: what builds, taken as of `exempt_builds_before`, where that is later than the cut-off.
    """

    days_after: float
    era_days: int = Field(ge=1)
    fallback_days: tuple[int, ...]
    exempt: tuple[str, ...]
    exempt_before: str
    exempt_links: tuple[str, ...] = ()
    exempt_until_python: tuple[str, ...] = ()
    exempt_builds: tuple[str, ...] = ()
    exempt_builds_before: str = "2019-02-10"


class Budget(_Section):
    """How much one rung of the ladder may spend on one candidate: attempts, and seconds of their steps together."""

    attempts: int = Field(ge=0)
    seconds: float = Field(ge=0)


class Ladder(_Section):
    """How environments are looked for.

    Attributes:
        order: names of rungs, the first one first.
        enough: an attempt in which this share of the candidate's tests passes at the base ends the climb.
        budgets: of each rung.
        learned: a file of repair rules as `swe-miner recipes learn --export` writes it, beside the shipped one.
    """

    order: tuple[str, ...]
    enough: float = Field(ge=0, le=1)
    budgets: dict[str, Budget]
    learned: Place | None = None


class Structured(_Section):
    """The rung that asks for a recipe by schema.

    Attributes:
        candidates: different first tries of one model, each with a hint of its own.
        rounds: refinements of each, from what its attempt failed with.
    """

    candidates: int = Field(ge=0)
    rounds: int = Field(ge=0)


class Agent(_Section):
    """The rung that lets a model look around in a throw-away container.

    Attributes:
        attempts: sessions of one model.
        steps: replies in one session.
        seconds: of one session.
        tokens: read and written in one session.
        money: that one session may cost, in US dollars.
        command_s: seconds of one command.
        output_chars: of one command that the model is shown.
        text: names of models that are spoken to in text, without native calls of tools.
    """

    attempts: int = Field(ge=0)
    steps: int = Field(ge=1)
    seconds: float = Field(gt=0)
    tokens: int = Field(ge=1)
    money: float = Field(ge=0)
    command_s: float = Field(gt=0)
    output_chars: int = Field(ge=200)
    text: tuple[str, ...] = ()


class ModelUse(_Section):
    """How language models are used.

    Attributes:
        order: names of models, the first one first, each with all of its attempts before the next one; empty: those
            that the environment names.
        enough: an earlier healthy attempt with this share of passing tests leaves nothing to ask a model for.
        prompt_tokens: of one prompt of the structured rung, at most, by estimate.
        max_tokens: of one reply.
        temperature: of sampling; None: the endpoint's own.
    """

    order: tuple[str, ...] = ()
    enough: float = Field(ge=0, le=1)
    prompt_tokens: int = Field(ge=500)
    max_tokens: int = Field(ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    structured: Structured
    agent: Agent


NO_MODELS = ModelUse(
    enough=0,
    prompt_tokens=500,
    max_tokens=1,
    structured=Structured(candidates=0, rounds=0),
    agent=Agent(attempts=0, steps=1, seconds=1, tokens=1, money=0, command_s=1, output_chars=200),
)
"""What releases were made with before there were models."""


class Crawl(_Section):
    """How the forge is crawled.

    Attributes:
        page_size: pull requests in a page, at most; it halves where the forge fails, and recovers.
        refresh_after_hours: a repository that was crawled longer ago than this is asked whether anything changed.
        close_after_days: a month is closed so many days after its end; what is found later goes to a point release.
    """

    page_size: int = Field(ge=1, le=100)
    refresh_after_hours: float = Field(ge=0)
    close_after_days: int = Field(ge=0)


class Measure(_Section):
    """Settings that steer measuring: part of input hashes.

    Attributes:
        lock_timeout_s: one resolution of dependencies may take so long: backtracking may have no end.
    """

    install: Limits
    test: Limits
    archive: ArchiveLimits
    crawl: Crawl
    pythons: tuple[str, ...] = ()
    cutoff: Cutoff
    ladder: Ladder
    model: ModelUse = NO_MODELS
    recheck_after_hours: float
    lock_timeout_s: float = Field(gt=0)
    hash_seed: int
    timezone: str
    locale: str


class Repositories(_Section):
    """Which repositories are taken.

    Attributes:
        min_python_share: of the bytes of its languages.
        licences: SPDX ids.
        max_disk_mb: size of the repository as the forge states it.
        active_within_days: of the last push, counted from the end of the month.
    """

    min_python_share: float = Field(ge=0, le=1)
    licences: tuple[str, ...]
    min_stars: int
    max_disk_mb: int
    active_within_days: int
    forks: bool
    archived: bool
    templates: bool


class Pulls(_Section):
    """Which pull requests are taken, by what the forge says of them.

    Attributes:
        min_files: changed files, tests included.
        max_files: changed files, tests included.
        min_link_confidence: of the surest link to an issue.
        bots: logins of authors that are programs, with `*` for any characters.
        gate_sample: share of the pull requests that pass each gate of this section all the same, so that its cost in
            tasks is known.
    """

    min_files: int
    max_files: int
    min_link_confidence: Literal["certain", "strong", "weak"]
    default_branch_only: bool
    bots: tuple[str, ...]
    reverts: bool
    dependency_bumps: bool
    gate_sample: float = Field(ge=0, le=1)


class Policy(_Section):
    """Settings that only judge: never part of an input hash."""

    repositories: Repositories
    pulls: Pulls
    min_suite_share: float = Field(ge=0, le=1)
    min_statement_chars: int
    max_gold_files: int
    max_patch_lines: int
    min_fail_to_pass: int
    max_pass_to_fail: int
    max_vanished: int


class Release(_Section):
    """What goes into a release.

    Attributes:
        visibility: of candidates whose pair says nothing; the ledger keeps the strictest that it was ever given.
    """

    name: str = "swe-miner"
    sources: tuple[Literal["github", "git", "pypi"], ...] = ("github",)
    visibility: Visibility = Visibility.PUBLIC


class Settings(_Section):
    """All settings of a run."""

    paths: Paths = Field(default_factory=Paths)
    index: Index = Index()
    github: Github = Github()
    docker: Docker = Docker()
    run: Run = Run()
    endpoint: Endpoint = Endpoint()
    prices: dict[str, Price] = Field(default_factory=dict)
    mine: Mine = Mine()
    measure: Measure
    policy: Policy
    release: Release = Release()
    pairs: tuple[ReleasePair, ...] = ()

    @property
    def source(self) -> Literal["pypi", "github", "git", "snapshot"]:
        """Where candidates come from."""
        return self.mine.source or ("pypi" if self.pairs else "github")

    @property
    def hash(self) -> str:
        """Hash of everything that can change a result; paths and hosts of this machine are left out."""
        return hash_of(self.portable())

    @property
    def policy_hash(self) -> str:
        """Hash of the policy, which stands on every decision."""
        return hash_of(self.policy)

    def portable(self) -> dict[str, Any]:
        """Return the settings without what is true of this machine only, and the shipped tables that steer results."""
        kept = self.model_dump(
            mode="json",
            exclude={
                "paths": True,
                "index": True,
                "github": True,
                "run": True,
                "endpoint": True,
                "prices": True,
                "mine": _OF_MACHINE,
                "docker": {"host"},
                "measure": {"ladder": {"learned"}},
            },
        )
        kept["mine"]["source"] = "github" if self.source == "snapshot" else self.source  # a replay is no other source
        tables = {"base_packages": list(base_packages()), "tool_chain": list(tool_chain_packages())}
        learned = [_steering(table) for _, table in learned_tables(self.measure.ladder.learned)]
        return {**kept, "pythons": python_entries(), "learned": hash_of(learned), **tables}


def configs_dir() -> Path:
    """Return the folder of shipped configuration, in a checkout or inside the installed wheel."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def python_entries() -> list[dict[str, Any]]:
    """Return the interpreters of the shipped `pythons.toml` as JSON values."""
    entries: list[dict[str, Any]] = json.loads(canonical_json(_read(configs_dir() / "pythons.toml").get("python", [])))
    return entries


@cache
def learned_tables(own: Path | None) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the repair rules as data, file by file: the shipped ones, then a user's own; read once in a process."""
    files = [configs_dir() / "learned.toml", *([] if own is None else [own])]
    return tuple((file.name, _read(file)) for file in files)


def _steering(table: dict[str, Any]) -> dict[str, Any]:
    """Return what of learned rules steers measuring: not how often they have worked before."""
    rules = table.get("rule")
    if not isinstance(rules, list):
        return table
    kept = [{k: v for k, v in one.items() if k != "provenance"} if isinstance(one, dict) else one for one in rules]
    return {**table, "rule": kept}


def base_packages() -> tuple[str, ...]:
    """Return the Debian packages that the base image is asked to hold."""
    return _names("packages.txt")


def tool_chain_packages() -> tuple[str, ...]:
    """Return the Debian packages of the tool chain: what builds packages from source."""
    return _names("toolchain.txt")


def _names(file: str) -> tuple[str, ...]:
    lines = (configs_dir() / "base" / file).read_text(encoding="utf-8").splitlines()
    return tuple(sorted(line.strip() for line in lines if line.strip() and not line.startswith("#")))


def load_settings(
    chosen: Path | None = None, overrides: Iterable[str] = (), environ: Mapping[str, str] | None = None
) -> Settings:
    """Read and layer all settings.

    Args:
        chosen: a file whose values win over the shipped ones; its `pairs` is a list of tables.
        overrides: `key=value` texts, the key dotted, the value TOML or plain text.
        environ: the environment; the process's own by default.

    Raises:
        ConfigError: unreadable file, unknown key or wrong type; names where it stood.
    """
    merged: dict[str, Any] = {}
    for name in ("defaults", "measure", "policy", "models"):
        _merge(merged, _read(configs_dir() / f"{name}.toml"))
    if chosen is not None:
        _merge(merged, _read(chosen))
    for key, value in (os.environ if environ is None else environ).items():
        if key.startswith(ENV_PREFIX):
            _assign(merged, key.removeprefix(ENV_PREFIX).lower().split("__"), value, where=key)
    for text in overrides:
        key, sep, value = text.partition("=")
        if not sep:
            raise ConfigError(f"-c {text}: expected key=value")
        _assign(merged, _parts(key), value, where=f"-c {text}")
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(item) for item in error.errors())) from error


def run_flags(
    *,
    source: str | None = None,
    month: str | None = None,
    forge_url: str | None = None,
    pilot: int | None = None,
    notify: str | None = None,
    max_cost: float | None = None,
) -> list[str]:
    """Return the flags of a run as `key=value` texts; a forge has REST and GraphQL where GitHub Enterprise has them."""
    values: dict[str, str | int | float | None] = {
        "mine.source": source,
        "mine.month": month,
        "mine.pilot": pilot,
    }
    values |= {"run.notify": notify, "run.max_cost": max_cost}
    if forge_url is not None:
        root = forge_url.removesuffix("/")
        values |= {"github.url": root, "github.api_url": f"{root}/api/v3", "github.graphql_url": f"{root}/api/graphql"}
    return [f"{key}={json.dumps(value)}" for key, value in values.items() if value is not None]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _parts(key: str) -> list[str]:
    """Return the parts of a dotted key; one with dots of its own stands in quotes, as in TOML."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^."]+)', key.strip())]


def _assign(into: dict[str, Any], path: list[str], text: str, *, where: str) -> None:
    for part in path[:-1]:
        into = into.setdefault(part, {})
        if not isinstance(into, dict):
            raise ConfigError(f"{where}: {part} is a value, not a section")
    into[path[-1]] = _value(text)


def _value(text: str) -> Any:
    """Read a value as TOML where it is one ("3", "true", "[...]"), as plain text otherwise."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def _explain(item: Any) -> str:
    dotted = ".".join(str(part) for part in item["loc"])
    if item["type"] != "extra_forbidden":
        return f"{dotted}: {item['msg']} (got {json.dumps(item['input'], default=str)})"
    near = difflib.get_close_matches(dotted, known_keys(), n=1, cutoff=0.5)
    return f"{dotted}: unknown key" + (f"; did you mean {near[0]}?" if near else "")


def known_keys(model: type[BaseModel] = Settings, prefix: str = "") -> list[str]:
    """Return every dotted key that a configuration may hold."""
    keys: list[str] = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, _Section):
                keys.extend(known_keys(kind, f"{prefix}{name}."))
    return keys
