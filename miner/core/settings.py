"""Layered settings: the shipped files < a chosen file < the environment < `-c key=value`.

An unknown key is an error with a "did you mean". The shipped files are `defaults.toml`,
`measure.toml` and `policy.toml` in `configs/`. Settings under `measure` steer measuring and enter input hashes;
settings under `policy` only judge and never do (law 1). Environment variables are `SWE_MINER_SECTION__KEY`.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from miner.core.errors import ConfigError
from miner.core.hashing import canonical_json, hash_of
from miner.core.records import ReleasePair, Visibility

ENV_PREFIX = "SWE_MINER_"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Paths(_Section):
    """Where things are kept; relative paths start where the program was started. Nothing of this enters the ledger."""

    work: Annotated[Path, AfterValidator(Path.absolute)] = Field(default=Path("var"), validate_default=True)
    release: Annotated[Path, AfterValidator(Path.absolute)] = Field(default=Path("out"), validate_default=True)
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
    """The Python package index: empty values mean what pip and uv would use."""

    url: str | None = None
    ca_bundle: Path | None = None
    extra_hosts: tuple[str, ...] = ()
    timeout_s: float = 30.0
    tries: int = 4


class Docker(_Section):
    """The container engine and the base image."""

    host: str | None = None
    base_image: str | None = None
    suite: str = "bookworm"
    snapshot_epoch: int = 1735689600
    runtime: str | None = None


class Run(_Section):
    """How a run uses this machine."""

    workers: int = Field(default=2, ge=1)
    engine: Literal["local"] = "local"


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
    """The package index as of a date."""

    days_after: float
    exempt: tuple[str, ...]
    exempt_before: str
    exempt_until_python: tuple[str, ...] = ()


class Measure(_Section):
    """Settings that steer measuring: part of input hashes."""

    install: Limits
    test: Limits
    archive: ArchiveLimits
    cutoff: Cutoff
    recheck_after_hours: float
    hash_seed: int
    timezone: str
    locale: str


class Policy(_Section):
    """Settings that only judge: never part of an input hash."""

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
    sources: tuple[Literal["github", "pypi"], ...] = ("github",)
    visibility: Visibility = Visibility.PUBLIC


class Settings(_Section):
    """All settings of a run."""

    paths: Paths = Field(default_factory=Paths)
    index: Index = Index()
    docker: Docker = Docker()
    run: Run = Run()
    measure: Measure
    policy: Policy
    release: Release = Release()
    pairs: tuple[ReleasePair, ...] = ()

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
        kept = self.model_dump(mode="json", exclude={"paths": True, "index": True, "run": True, "docker": {"host"}})
        return {**kept, "pythons": python_entries(), "base_packages": list(base_packages())}


def configs_dir() -> Path:
    """Return the folder of shipped configuration, in a checkout or inside the installed wheel."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def python_entries() -> list[dict[str, Any]]:
    """Return the interpreters of the shipped `pythons.toml` as JSON values."""
    entries: list[dict[str, Any]] = json.loads(canonical_json(_read(configs_dir() / "pythons.toml").get("python", [])))
    return entries


def base_packages() -> tuple[str, ...]:
    """Return the Debian packages that the base image is asked to hold."""
    lines = (configs_dir() / "base" / "packages.txt").read_text(encoding="utf-8").splitlines()
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
    for name in ("defaults", "measure", "policy"):
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
        _assign(merged, key.strip().split("."), value, where=f"-c {text}")
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(item) for item in error.errors())) from error


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
