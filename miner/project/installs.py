"""What a command installs: pip, uv, poetry, pdm, pipenv, conda, Debian's apt. Pure; words in, requirements out.

Formats: https://pip.pypa.io/en/stable/cli/pip_install/, https://docs.astral.sh/uv/reference/cli/,
https://python-poetry.org/docs/cli/, https://pdm-project.org/latest/reference/cli/,
https://pipenv.pypa.io/en/latest/cli.html, https://docs.conda.io/projects/conda/en/latest/commands/.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce

from packaging.requirements import InvalidRequirement

from miner.project.command_options import leading_options, split_options
from miner.project.shell_words import Word
from miner.project.versions import requirement_of


@dataclass(frozen=True)
class Installs:
    """What one command asks for.

    Attributes:
        requirements: PEP 508 texts and URLs.
        files: requirements files, as paths from the folder of the command.
        constraints: files that bound versions.
        projects: local projects, "." or a path, with extras.
        extras: of the project in the folder of the command.
        groups: dependency groups of it.
        without: groups that are left out of the default ones.
        defaults: the tool whose default groups are installed ("uv", "poetry", "pdm", "pipenv"), "" for none.
        everything: all extras and groups.
        conda: packages as conda names them.
        conda_files: environment files.
        system_packages: Debian packages.
        pythons: versions of Python.
        notes: what is left out and why.
    """

    requirements: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    everything: tuple[str, ...] = ()
    conda: tuple[str, ...] = ()
    conda_files: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __or__(self, other: Installs) -> Installs:
        """Return what both ask for, in order."""
        names = [item.name for item in fields(self)]
        return Installs(**{name: (*getattr(self, name), *getattr(other, name)) for name in names})

    def __bool__(self) -> bool:
        """Whether it asks for anything."""
        return any(getattr(self, item.name) for item in fields(self) if item.name != "notes")


_PIP_VALUED = frozenset(
    {
        *("-r", "--requirement", "-c", "--constraint", "-e", "--editable", "-i", "--index-url", "--extra-index-url"),
        *("-f", "--find-links", "-t", "--target", "--prefix", "--root", "--python-version", "--platform", "--abi"),
        *("--no-binary", "--only-binary", "--progress-bar", "--upgrade-strategy", "--timeout", "--retries", "--group"),
        *("--trusted-host", "--cache-dir", "--log", "--config-settings", "-C", "--global-option", "--install-option"),
        *(
            "--python",
            "-p",
            "--resolution",
            "--prerelease",
            "--exclude-newer",
            "--src",
            "--build",
            "--proxy",
            "--extra",
        ),
        *("--use-feature", "--use-deprecated", "--exists-action", "--report", "--override", "--overrides", "-b", "-d"),
        *("--index-strategy", "--torch-backend", "--requirements", "--constraints", "--build-constraint", "-P"),
        *(
            "--upgrade-package",
            "--no-binary-package",
            "--index",
            "--default-index",
            "--link-mode",
            "--reinstall-package",
        ),
    }
)
_EXTRAS = re.compile(r"(.*?)\[([^\[\]]*)\]\Z", re.DOTALL)
_URL = re.compile(r"(?:(?:git|hg|svn|bzr)\+|[a-z]+://)", re.I)
_ARCHIVE = re.compile(r"\.(?:whl|tar\.gz|zip|tar\.bz2)\Z")
_BUILT = re.compile(r"(?:^|/)(?:dist|wheelhouse|build|sdist)/|\$|`|\*")


def pip(words: Sequence[Word]) -> Installs:
    """Read the arguments of `pip install` (also `uv pip install`, `pip-sync`)."""
    found = Installs()
    extras: list[str] = []
    for name, held in split_options(words, _PIP_VALUED):
        if name in ("-r", "--requirement", "--requirements"):
            found |= _file(held, constraint=False)
        elif name in ("-c", "--constraint", "--constraints"):
            found |= _file(held, constraint=True)
        elif name in ("-e", "--editable", ""):
            found |= _target(held, editable=bool(name))
        elif name == "--group":
            found |= Installs(groups=(held.text.rpartition(":")[2],)) if held.known else _unknown(held)
        elif name == "--extra" and held.known:
            extras.append(held.text)
        elif name == "--all-extras":
            found |= Installs(everything=("extras",))
    return found | Installs(extras=tuple(extras))


def _unknown(word: Word) -> Installs:
    return Installs(notes=(f"{word.text!r} is not known before it runs",))


def _file(word: Word, *, constraint: bool) -> Installs:
    if not word.known:
        return _unknown(word)
    if not constraint and word.text.rpartition("/")[2] in ("pyproject.toml", "setup.py", "setup.cfg"):
        return Installs(projects=(word.text.rpartition("/")[0] or ".",))
    return Installs(constraints=(word.text,)) if constraint else Installs(files=(word.text,))


def _target(word: Word, *, editable: bool) -> Installs:
    """Sort one thing to install: a requirement, a URL, or a local project, which is never a requirement."""
    text = word.text.strip()
    if not word.known and not text.startswith((".", "-")):
        own = bool(_ARCHIVE.search(text)) or (text.startswith(("$(", "`")) and "dist" in text)
        return Installs(projects=(".",)) if own else _unknown(word)
    if _URL.match(text) or re.match(r"[\w.\[\],-]+\s*@\s*\S", text):
        if text.startswith("file:"):
            return Installs(projects=(text.removeprefix("file:").removeprefix("//"),))
        return Installs(requirements=(text,))
    path, _ = split_extras(text)
    if _ARCHIVE.search(path) or (_BUILT.search(path) and "/" in path):
        return Installs(projects=(f".{text[len(path) :]}",))
    if editable or path.startswith((".", "/", "~")) or ("/" in path and "@" not in path):
        return Installs(projects=(text,))
    return _requirement(text)


def split_extras(text: str) -> tuple[str, tuple[str, ...]]:
    """Part `path[a,b]` into path and extras."""
    match = _EXTRAS.match(text)
    if not match:
        return text, ()
    return match[1], tuple(extra.strip() for extra in match[2].split(",") if extra.strip())


def _requirement(text: str) -> Installs:
    try:
        requirement_of(text)
    except InvalidRequirement:
        return Installs(notes=(f"{text!r} is no requirement",))
    return Installs(requirements=(text,))


def pip_sync(words: Sequence[Word]) -> Installs:
    """Read the arguments of `pip-sync`: files."""
    found = Installs()
    for name, held in split_options(words, _PIP_VALUED):
        found |= Installs() if name else _file(held, constraint=False)
    return found


_PROJECT_VALUED = frozenset(
    {
        *("-E", "--extras", "--extra", "-G", "--group", "--with", "--without", "--only", "--only-group", "--no-group"),
        *(
            "--python",
            "-p",
            "--directory",
            "--project",
            "--package",
            "-P",
            "-C",
            "--with-requirements",
            "--with-editable",
        ),
        *("--dependency-groups", "--cache-dir", "--index", "--default-index", "--index-url", "--extra-index-url", "-L"),
        *(
            "--no-extra",
            "--from",
            "--env-file",
            "--resolution",
            "--link-mode",
            "--no-install-package",
            "--lockfile",
            "-i",
        ),
        *("--config-setting", "--categories", "--skip", "--exclude-newer", "-w", "--config-file", "--prerelease"),
    }
)


def uv_sync(words: Sequence[Word]) -> Installs:
    """Read the arguments of `uv sync`: the project with its default groups."""
    found = Installs(defaults=("uv",))
    for name, held in split_options(words, _PROJECT_VALUED):
        found |= _project_option(name, held)
    return found


def uv_run(words: Sequence[Word]) -> tuple[Installs, tuple[Word, ...]]:
    """Read the arguments of `uv run`: what it installs, and the command that it runs."""
    options, rest = leading_options(words, _PROJECT_VALUED, stop=("-m", "--module", "-c"))
    found = Installs() if "--no-project" in dict(options) else Installs(defaults=("uv",))
    for name, held in options:
        found |= _beside(name, held) or _project_option(name, held)
    return found, rest


def uvx(words: Sequence[Word]) -> tuple[Installs, tuple[Word, ...]]:
    """Read the arguments of `uvx` and `uv tool run`: what is installed beside the tool, and the tool."""
    options, rest = leading_options(words, _PROJECT_VALUED)
    found = Installs()
    for name, held in options:
        found |= _beside(name, held)
    return found, rest


def _beside(name: str, held: Word) -> Installs:
    """Read `--with`, by which uv installs something for one command."""
    if name == "--with" and held.known:
        parts = (_target(Word(part.strip()), editable=False) for part in held.text.split(","))
        return reduce(operator.or_, parts, Installs())
    return _file(held, constraint=False) if name == "--with-requirements" else Installs()


def _project_option(name: str, held: Word) -> Installs:
    """Read an option of the tools that install a whole project: names of groups and extras."""
    names = tuple(part for part in re.split(r"[\s,]+", held.text) if part) if held.known else ()
    if name in ("-E", "--extras", "--extra"):
        return Installs(extras=names)
    if name in ("-G", "--group", "--dependency-groups", "--only-group", "--only"):
        return Installs(groups=tuple(part for part in names if part not in ("main", ":all")))
    if name in ("--without", "--no-group"):
        return Installs(without=names)
    if name in ("--no-dev", "--prod", "--production", "--no-default"):
        return Installs(without=("dev",))
    if name in ("--all-extras", "--all-groups"):
        return Installs(everything=(name.removeprefix("--all-"),))
    if name in ("--dev", "-d"):
        return Installs(groups=("dev",))
    if name in ("--python", "-p") and held.known and held.text[:1].isdigit():
        return Installs(pythons=(held.text,))
    return _unknown(held) if not held.known else Installs()


def poetry_install(words: Sequence[Word]) -> Installs:
    """Read the arguments of `poetry install`; `--with` names groups here."""
    found = Installs(defaults=("poetry",))
    for name, held in split_options(words, _PROJECT_VALUED):
        found |= _project_option("--group" if name == "--with" else name, held)
    return found


def pdm_install(words: Sequence[Word]) -> Installs:
    """Read the arguments of `pdm install` and `pdm sync`; a group of `-G` may be an extra too."""
    found = Installs(defaults=("pdm",))
    for name, held in split_options(words, _PROJECT_VALUED):
        found |= _project_option(name, held)
        if name in ("-G", "--group") and held.text == ":all":
            found |= Installs(everything=("extras", "groups"))
    return found


def pipenv_install(words: Sequence[Word]) -> Installs:
    """Read the arguments of `pipenv install` and `pipenv sync`: the Pipfile, or packages."""
    found = Installs()
    dev = False
    for name, held in split_options(words, _PIP_VALUED):
        dev = dev or name in ("--dev", "-d")
        if name in ("", "-e", "--editable"):
            found |= _target(held, editable=bool(name))
        elif name in ("-r", "--requirement"):
            found |= _file(held, constraint=False)
    groups = ("packages", "dev-packages") if dev else ("packages",)
    return found or Installs(groups=groups)


_CONDA_VALUED = frozenset(
    {"-n", "--name", "-p", "--prefix", "-c", "--channel", "-f", "--file", "--solver", "--platform", "--subdir", "-r"}
)


def conda_install(words: Sequence[Word]) -> Installs:
    """Read the arguments of `conda install` and `conda create`."""
    found = Installs()
    for name, held in split_options(words, _CONDA_VALUED):
        if name in ("-f", "--file") and held.known:
            found |= _conda_file(held.text)
        elif not name and not held.known:
            found |= _unknown(held)
        elif not name:
            found |= _conda_spec(held.text)
    return found


def _conda_file(path: str) -> Installs:
    return Installs(conda_files=(path,)) if path.endswith((".yml", ".yaml")) else Installs(files=(path,))


def _conda_spec(text: str) -> Installs:
    if match := re.fullmatch(r"python\s*={1,2}\s*(\d+\.\d+).*", text):
        return Installs(pythons=(match[1],))
    return Installs() if re.match(r"python\b(?!-)", text) else Installs(conda=(text,))


def conda_env(words: Sequence[Word]) -> Installs:
    """Read the arguments of `conda env create` and `conda env update`."""
    found = Installs()
    for name, held in split_options(words, _CONDA_VALUED):
        if name in ("-f", "--file"):
            found |= _conda_file(held.text) if held.known else _unknown(held)
    return found or Installs(conda_files=("environment.yml",))


_APT_VALUED = frozenset({"-o", "-t", "--target-release", "-c", "--option"})
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+\Z")


def apt(words: Sequence[Word]) -> Installs:
    """Read the arguments of `apt-get install`; versions and architectures are left out, so are files."""
    names: list[str] = []
    notes: list[str] = []
    for name, held in split_options(words, _APT_VALUED):
        if name:
            continue
        package = held.text.partition("=")[0].partition(":")[0].partition("/")[0].removesuffix("+")
        if held.known and _PACKAGE.match(package):
            names.append(package)
        else:
            notes.append(f"{held.text!r} is no Debian package")
    return Installs(system_packages=tuple(names), notes=tuple(notes))


Reader = Callable[[Sequence[Word]], Installs]

# Tool and its words -> what reads the rest. The longest beginning wins.
READERS: Mapping[tuple[str, ...], Reader] = {
    ("pip", "install"): pip,
    ("uv", "pip", "install"): pip,
    ("uv", "pip", "sync"): pip_sync,
    ("pip-sync",): pip_sync,
    ("easy_install",): pip,
    ("uv", "sync"): uv_sync,
    ("poetry", "install"): poetry_install,
    ("poetry", "sync"): poetry_install,
    ("pdm", "install"): pdm_install,
    ("pdm", "sync"): pdm_install,
    ("pipenv", "install"): pipenv_install,
    ("pipenv", "sync"): pipenv_install,
    **{(tool, verb): conda_install for tool in ("conda", "mamba", "micromamba") for verb in ("install", "create")},
    **{(tool, "env", verb): conda_env for tool in ("conda", "mamba", "micromamba") for verb in ("create", "update")},
    **{(tool, "install"): apt for tool in ("apt-get", "apt", "aptitude")},
}
