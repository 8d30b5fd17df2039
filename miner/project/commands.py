"""What one command of a CI file is about: it installs something, runs tests, or starts something else. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from miner.project.command_options import leading_options, split_options
from miner.project.installs import READERS, Installs, uv_run, uvx
from miner.project.shell_words import Variables, Word

SCRIPT = "(script)"
"""The tool of a command that is a script itself, or that a shell is given; no command has such a name."""
TEXT = "(text)"
"""The tool of a shell that is given its commands as a text."""


@dataclass(frozen=True)
class Meaning:
    """What a command is about.

    Attributes:
        tool: its name without prefixes ("pytest", "tox"), `SCRIPT` or `TEXT`, "" where there is none.
        arguments: of the tool; of a script its path comes first.
        tests: it runs tests by itself; where it starts something that can be followed, that says more.
        variables: what `env` sets for it.
    """

    tool: str = ""
    arguments: tuple[Word, ...] = ()
    installs: Installs = field(default_factory=Installs)
    tests: bool = False
    variables: Variables = field(default_factory=dict)


class _Prefix(NamedTuple):
    """A command that starts another one: options of its own that take a value, and positional words that it takes."""

    valued: frozenset[str] = frozenset()
    positional: int = 0


_PREFIXES: Mapping[tuple[str, ...], _Prefix] = {
    **dict.fromkeys(((name,) for name in ("time", "nohup", "exec", "command", "builtin", "travis_retry")), _Prefix()),
    **dict.fromkeys(((name,) for name in ("unbuffer", "chronic", "catchsegv", "fakeroot", "eatmydata")), _Prefix()),
    **dict.fromkeys(((name,) for name in ("dbus-run-session", "dbus-launch", "retry", "winpty", "linux32")), _Prefix()),
    ("sudo",): _Prefix(frozenset({"-u", "-g", "-C", "-p", "-h"})),
    ("env",): _Prefix(frozenset({"-u", "-C", "-S"})),
    ("nice",): _Prefix(frozenset({"-n"})),
    ("ionice",): _Prefix(frozenset({"-c", "-n"})),
    ("stdbuf",): _Prefix(frozenset({"-o", "-i", "-e"})),
    ("travis_wait",): _Prefix(),
    ("timeout",): _Prefix(frozenset({"-k", "-s", "--signal", "--kill-after"}), positional=1),
    ("xvfb-run",): _Prefix(frozenset({"-s", "-n", "-e", "-f", "-w", "--server-args", "--server-num", "--error-file"})),
    ("xargs",): _Prefix(frozenset({"-n", "-L", "-P", "-I", "-d", "-s"})),
    ("conda", "run"): _Prefix(frozenset({"-n", "-p", "--name", "--prefix", "--cwd"})),
    ("mamba", "run"): _Prefix(frozenset({"-n", "-p", "--name", "--prefix", "--cwd"})),
    ("micromamba", "run"): _Prefix(frozenset({"-n", "-p", "--name", "--prefix", "--cwd"})),
    ("poetry", "run"): _Prefix(),
    ("pipenv", "run"): _Prefix(),
    ("pdm", "run"): _Prefix(frozenset({"-p", "--project"})),
    ("rye", "run"): _Prefix(),
    ("pixi", "run"): _Prefix(frozenset({"-e", "--environment"})),
}
_RUNNERS = frozenset(
    {
        *("pytest", "py.test", "pytest-3", "nosetests", "nosetests3", "nose2", "unittest", "unit2", "trial", "stestr"),
        *("testr", "green", "ward", "zope-testrunner", "ptr", "subunit.run", "behave", "twisted.trial", "nose"),
    }
)
_TASKS = frozenset(
    {"invoke", "inv", "doit", "task", "just", "poe", "duty", "hatch", "pdm", "rye", "spin", "paver", "ant", "npm"}
)
_STARTERS = frozenset({"tox", "nox", "make", "gmake", "detox"})
_MODULES = {"pip": "pip", "nose": "nosetests", "twisted.trial": "trial", "zope.testrunner": "zope-testrunner"}
_NO_RUN = frozenset({"--version", "--help", "-h", "--collect-only", "--co", "--fixtures", "--markers"})
_PYTHON = re.compile(r"(?:python|pypy)(?:\d(?:\.\d+)?t?)?(?:\.exe)?\Z|py\Z")
_VARIABLE = re.compile(r"\$\{?\w*(?:PY(?:THON|BIN)?|PIP)\w*\}?\Z|\$\((?:which|command -v) (?:python|pip)3?\)\Z")
_PYTHON_VALUED = frozenset({"-W", "-X", "-m", "-c", "-Q"})
_COVERAGE_VALUED = frozenset(
    {"--source", "--omit", "--include", "--rcfile", "--concurrency", "--context", "-m", "--data-file"}
)
_TEST_WORD = re.compile(r"(?:\A|[-_:./ ])(?:unit|run|py)?-?_?tests?(?:\Z|[-_:. /])|pytest|unittest", re.I)
_OTHER_WORD = re.compile(
    r"lint|style|docs?(?:\Z|[-_:])|mypy|typ(?:es|ing)|bench|install|deps|clean|upload|coverage-report", re.I
)
_TEST_CODE = re.compile(r"\.test\(|pytest\.main|unittest\.")
_TEST_SCRIPT = re.compile(
    r"(?:\A|/)(?:(?:run_?|all_?)?tests?(?:[_-]?\w+)?\.py|tests?/(?:run|main|__main__|all)\w*\.py|runtests|tests?/?)\Z",
    re.I,
)
_MAX_PREFIXES = 12


def meaning(words: Sequence[Word]) -> Meaning:
    """Return what a command is about, commands that only start it taken off."""
    variables: dict[str, str | None] = {}
    found = Installs()
    rest = tuple(words)
    for _ in range(_MAX_PREFIXES):
        rest = _assignments(rest, variables)
        if not rest:
            break
        started = _without_prefix(rest)
        if started is None:
            result = _read(rest)
            return replace(result, installs=found | result.installs, variables=variables)
        beside, rest = started
        found |= beside
    return Meaning(installs=found, variables=variables)


def sounds_like_tests(name: str) -> bool:
    """Whether a name of a target, session or task says that it runs tests."""
    return bool(_TEST_WORD.search(name)) and not _OTHER_WORD.search(name)


def _assignments(words: tuple[Word, ...], variables: dict[str, str | None]) -> tuple[Word, ...]:
    """Take `NAME=value` off, which stands behind `env` and `sudo`."""
    while words and re.match(r"[A-Za-z_]\w*=", words[0].text):
        name, _, text = words[0].text.partition("=")
        variables[name] = text if words[0].known else None
        words = words[1:]
    return words


def _name(word: Word) -> str:
    if not word.known and (match := _VARIABLE.match(word.text)):
        return "pip" if "PIP" in match[0].upper() else "python"
    name = posixpath.basename(word.text)
    return "python" if _PYTHON.match(name) else re.sub(r"\A(pip)(?:\d(?:\.\d+)?)?\Z", r"\1", name)


def _without_prefix(words: tuple[Word, ...]) -> tuple[Installs, tuple[Word, ...]] | None:
    """Return what a command installs beside the one that it starts, and that one; None where it starts none."""
    name = _name(words[0])
    second = words[1].text if len(words) > 1 else ""
    if name == "uv" and second == "run":
        found, rest = uv_run(words[2:])
        return found, (Word("python"), *rest) if rest and rest[0].text.startswith("-") else rest
    if name == "uvx" or (name == "uv" and second == "tool" and len(words) > 2 and words[2].text == "run"):
        return uvx(words[1 if name == "uvx" else 3 :])
    if name == "python":
        return _module(words[1:])
    if name in ("coverage", "slipcover"):
        return _covered(words[1:], runs=name == "coverage")
    prefix = _PREFIXES.get((name, second)) or _PREFIXES.get((name,))
    if prefix is None or (name == "command" and second in ("-v", "-V")) or _is_task(name, words[2:]):
        return None
    length = 2 if (name, second) in _PREFIXES else 1
    _, rest = leading_options(words[length:], prefix.valued)
    if name == "travis_wait":
        rest = rest[1:] if rest and rest[0].text.isdigit() else rest
    return Installs(), rest[prefix.positional :]


def _is_task(name: str, words: Sequence[Word]) -> bool:
    """Whether `pdm run name` and its like start a task that the project declares, rather than a tool."""
    tool = next((_name(word) for word in words if not word.text.startswith("-")), "")
    return (
        name in ("pdm", "rye") and bool(tool) and tool != "python" and tool not in _RUNNERS | _STARTERS | {"coverage"}
    )


def _module(words: tuple[Word, ...]) -> tuple[Installs, tuple[Word, ...]] | None:
    """`python -m name ...` is the tool of that name; None for other calls of Python."""
    _, rest = leading_options(words, _PYTHON_VALUED, stop=("-m", "-c"))
    name, held = next(split_options(rest[:2], _PYTHON_VALUED), ("", Word("")))
    if name != "-m":
        return None
    tail = rest[2:] if len(rest) > 1 and held is rest[1] else rest[1:]
    tool = _MODULES.get(held.text, held.text)
    named = tool if tool in _RUNNERS | _STARTERS | _TASKS or "." not in tool else f"python:{tool}"
    return Installs(), (Word(named, held.known), *tail)


def _covered(words: tuple[Word, ...], *, runs: bool) -> tuple[Installs, tuple[Word, ...]] | None:
    """`coverage run -m name` and `coverage run file` start Python."""
    if runs:
        if not words or words[0].text != "run":
            return None
        words = words[1:]
    _, rest = leading_options(words, _COVERAGE_VALUED, stop=("-m",))
    return Installs(), (Word("python"), *rest)


def _read(words: tuple[Word, ...]) -> Meaning:
    name = _name(words[0])
    arguments = words[1:]
    texts = [word.text for word in arguments]
    if name in _RUNNERS:
        return Meaning(name, arguments, tests=not _NO_RUN.intersection(texts))
    if name == "python":
        return _script_of_python(arguments)
    if name in ("bash", "sh", "dash", "zsh"):
        return _shell(arguments)
    if name in _STARTERS:
        return Meaning(name, arguments, tests=name != "make" or any(map(sounds_like_tests, texts)))
    if (reader := _reader(name, arguments)) is not None:
        read, length = reader
        return Meaning(name, arguments, read(arguments[length:]))
    if name in _TASKS:
        return Meaning(name, arguments, tests=any(map(sounds_like_tests, texts)))
    if name in ("manage.py", "django-admin", "django-admin.py", "setup.py"):
        return _script_of_python(words)
    if words[0].text.endswith(".py"):
        return _script_of_python(words)
    if words[0].text.startswith("python:"):
        return Meaning("(module)", words, tests=bool(_TEST_WORD.search(words[0].text)))
    script = "/" in words[0].text or name.endswith((".sh", ".bash"))
    return Meaning(SCRIPT if script else name, words if script else arguments, tests=sounds_like_tests(name))


def _reader(name: str, arguments: tuple[Word, ...]) -> tuple[Callable[[Sequence[Word]], Installs], int] | None:
    """Return what reads a tool's arguments, and the number of words that named it; its options may come first."""
    verbs = [word.text for word in arguments]
    for length in (2, 1, 0):
        if (read := READERS.get((name, *verbs[:length]))) is not None:
            return read, length
    positional = [place for place, text in enumerate(verbs) if not text.startswith("-")]
    if positional and (read := READERS.get((name, verbs[positional[0]]))) is not None:
        return read, positional[0] + 1
    return None


def _script_of_python(words: tuple[Word, ...]) -> Meaning:
    """Read `python file ...` and `python -c code`."""
    options, rest = leading_options(words, _PYTHON_VALUED)
    code = next((held.text for name, held in options if name == "-c"), None)
    if code is not None:
        return Meaning("python", words, tests=bool(_TEST_CODE.search(code)))
    if not rest:
        return Meaning()
    name, texts = posixpath.basename(rest[0].text), [word.text for word in rest[1:]]
    if name == "setup.py":
        installs = any(text in ("develop", "install", "build_ext", "test") for text in texts)
        tests = any(text in ("test", "nosetests", "pytest", "ptr", "trial") for text in texts)
        return Meaning("setup.py", rest[1:], Installs(projects=(".",) if installs else ()), tests)
    if name in ("manage.py", "django-admin", "django-admin.py"):
        return Meaning(name, rest[1:], tests="test" in texts)
    return Meaning("python", rest, tests=bool(_TEST_SCRIPT.search(rest[0].text)))


def _shell(words: tuple[Word, ...]) -> Meaning:
    """Read `bash -c text` and `bash file`."""
    options, rest = leading_options(words, {"-o", "-O", "--rcfile", "--init-file"})
    if any("c" in name and not name.startswith("--") for name, _ in options) and rest:
        return Meaning(TEXT, rest)
    return Meaning(SCRIPT, rest) if rest else Meaning()
