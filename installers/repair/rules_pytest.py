"""Rules for pytest: its own age, the plug-ins that tests take for granted, options and warnings that became errors."""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from installers.repair.bounds import Bound
from installers.repair.context import Context
from installers.repair.edits import asked, bounded, exempted, name_of, required, with_options
from installers.repair.kinds import Kind
from installers.repair.plugins import ASYNC, FIXTURES, HOOKS, MARKS, OPTIONS, SETTINGS
from installers.repair.rule import Rule, rule, rule_of
from installers.reporting import FLOOR, NEEDS
from installers.requirements import satisfiable
from miner.core.records import Recipe

_GONE = (Kind.MISSING_NAME, Kind.MISSING_ATTRIBUTE, Kind.MISSING_MODULE)
_CATEGORIES = frozenset(
    {
        *("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning", "ImportWarning", "SyntaxWarning"),
        *("ResourceWarning", "RuntimeWarning", "EncodingWarning"),
    }
)
_LITERAL = re.compile(r"[\w .`'()/-]+")
_STRICT = {Kind.UNKNOWN_MARK: ("--strict-markers", "--strict"), Kind.UNKNOWN_INI: ("--strict-config",)}


def _row(bound: str, subject: str, why: str, *kinds: Kind) -> Bound:
    return Bound(bound, re.compile(subject), why, kinds or _GONE)


BOUNDS: tuple[Bound, ...] = (
    _row(
        "pytest<4",
        r"yield-tests|fixture-called|setup-cfg-section|marked-parameters|pytest-removed-in-4",
        "pytest 4 took these away",
        Kind.TEXT,
    ),
    _row("pytest<4", r"\w+:get_marker|(?:_pytest\.mark|\?):MarkInfo", "pytest 4 took these names away"),
    _row("pytest<4", r"pytest_namespace", "pytest 4 took the hook away", Kind.UNKNOWN_HOOK),
    _row("pytest<5", r"pytest_logwarning", "pytest 5 took the hook away", Kind.UNKNOWN_HOOK),
    _row("pytest<6", r"\w+:funcargnames", "pytest 6 took funcargnames away"),
    _row("pytest<5", r"pytest:config", "pytest 5 took pytest.config away"),
    _row("pytest<7", r"pytest:(?:_fillfuncargs|collect)", "pytest 7 took these names away"),
    _row("pytest<7", r"pytest-removed-in-[67]", "pytest 7 took away what it warned about", Kind.TEXT),
    _row(
        "pytest<8",
        r"pytest_cmdline_preparse",
        "pytest 8 took the hook away",
        Kind.UNKNOWN_HOOK,
    ),
    _row("pytest<8", r"pytest-removed-in-8", "pytest 8 takes away what it warns about", Kind.TEXT),
    _row("pytest<9", r"pytest-removed-in-9", "pytest 9 takes away what it warns about", Kind.TEXT),
    _row("pytest<7", r"pytest_warning_captured", "pytest 7 took the hook away", Kind.UNKNOWN_HOOK),
    _row("pytest<8", r"(?:pytest|_pytest\.python|\?):Instance", "pytest 8 took Instance away"),
    _row(
        "pytest>=6.2",
        r"(?:pytest|\?):(?:Pytester|MonkeyPatch|FixtureRequest|LogCaptureFixture|CaptureFixture|TempPathFactory)",
        "pytest has these names since 6.2",
    ),
    _row(
        "pytest>=7",
        r"(?:pytest|\?):(?:StashKey|Stash|Config|Parser|CallInfo|ExceptionInfo|TestReport|CollectReport|version_tuple)",
        "pytest has these names since 7.0",
    ),
    _row("pytest-asyncio<1", r"event_loop", "pytest-asyncio 1.0 took event_loop away", Kind.MISSING_FIXTURE),
)
_OF_RUNNER = frozenset({"--rootdir", "--continue-on-collection-errors"})
"""Options that the runner itself gives to pytest (`miner.sandbox.runner`): none of before 3.5 knows the first one."""
_AGES = ("9", "8", "7", "6", "5.4", "5", "4")


def older_pytest(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Take the next older pytest, where something reaches into its inside."""
    module = subject.partition(":")[0]
    if module != "pytest" and not module.startswith("_pytest"):
        return None
    known = [Requirement(text).specifier for text in recipe.constraints if name_of(text) == "pytest"]
    known += [one.specifier for one in asked(recipe, "pytest")]
    below = [age for age in _AGES if all(satisfiable(one & SpecifierSet(f">={age},<{_next(age)}")) for one in known)]
    return bounded(recipe, f"pytest<{below[0]}") if below else None


def _next(age: str) -> str:
    ages = ("99", *_AGES)
    return ages[ages.index(age) - 1]


def reporting_pytest(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Take a pytest of the time that the runner can use, and what it needs, without the cut-off."""
    if subject not in _OF_RUNNER:
        return None
    changed = bounded(recipe, FLOOR) or recipe
    return exempted(changed, *NEEDS)


def fixture(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Ask for the first plug-in that defines a fixture and that is not asked for yet."""
    plugins = FIXTURES.get(subject, ())
    if any(asked(recipe, name) for name in plugins):
        return None
    return required(recipe, plugins[0]) if plugins else None


def own_plugin(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Load pytest's own plug-in for tests of plug-ins, which is not loaded by itself."""
    return with_options(recipe, "-p", "pytester") if subject in ("testdir", "pytester") else None


def other_fixture(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Ask for another plug-in that defines the fixture."""
    plugins = FIXTURES.get(subject, ())
    left = [name for name in plugins if not asked(recipe, name)]
    return required(recipe, left[0]) if left and len(left) < len(plugins) else None


def option(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Ask for the plug-in that knows an option which says what a test is."""
    return required(recipe, OPTIONS[subject]) if subject in OPTIONS else None


def mark(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Ask for the plug-in that gives a mark its meaning."""
    return required(recipe, MARKS[subject]) if subject in MARKS else None


def setting(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Ask for the plug-in that declares a setting."""
    return required(recipe, SETTINGS[subject]) if subject in SETTINGS else None


def hook(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Ask for the plug-in that declares a hook."""
    found = next((plugin for prefix, plugin in HOOKS.items() if subject.startswith(prefix)), None)
    return None if found is None else required(recipe, found)


def async_plugin(recipe: Recipe, _subject: str, _context: Context) -> Recipe | None:
    """Ask for the plug-in that runs asynchronous tests: of the library that the project asks for, else of asyncio."""
    names = {name_of(text) for text in recipe.requirements}
    chosen = next((plugin for plugin, libraries in reversed(ASYNC) if names & set(libraries)), ASYNC[0][0])
    return None if asked(recipe, chosen) else required(recipe, chosen)


def asyncio_auto(recipe: Recipe, _subject: str, _context: Context) -> Recipe | None:
    """Run unmarked asynchronous tests, too, as pytest-asyncio did before 0.17."""
    return with_options(recipe, "-o", "asyncio_mode=auto") if asked(recipe, "pytest-asyncio") else None


def not_strict(kind: Kind) -> Rule:
    """Return the rule that takes the option away which makes an error of what is unknown."""
    options = _STRICT[kind]

    def change(recipe: Recipe, _subject: str, _context: Context) -> Recipe | None:
        kept = tuple(word for word in recipe.addopts if word not in options)
        return recipe.model_copy(update={"addopts": kept}) if kept != recipe.addopts else None

    return rule(f"without {options[0]}", change, "no plug-in is known that has {subject}", kind)


def take_back_warning(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Take a warning back that the project's configuration turns into an error, by its exact beginning."""
    category, _, text = subject.partition(": ")
    literal = _LITERAL.match(text)
    if category not in _CATEGORIES or literal is None or len(literal[0].strip()) < 8:
        return None
    return with_options(recipe, "-W", f"ignore:{literal[0].strip()}:{category}")


def py_library(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Ask for the library `py`, which pytest asked for up to 7.1, and of which it holds a part since."""
    return required(recipe, "py") if re.fullmatch(r"py(?:[.:]\w+)*", subject) else None


RULES: tuple[Rule, ...] = (
    rule(
        "py-library",
        py_library,
        "pytest 7.2 asks for the library `py` no more",
        Kind.MISSING_MODULE,
        Kind.MISSING_ATTRIBUTE,
    ),
    *(rule_of(row) for row in BOUNDS),
    rule("fixture", fixture, "a plug-in defines the fixture {subject}", Kind.MISSING_FIXTURE),
    rule("own-plugin", own_plugin, "a plug-in of pytest itself defines {subject}", Kind.MISSING_FIXTURE),
    rule("other-fixture", other_fixture, "another plug-in defines the fixture {subject}", Kind.MISSING_FIXTURE),
    rule(
        "reporting-pytest",
        reporting_pytest,
        "pytest is too old for the runner, which gives it {subject}",
        Kind.UNKNOWN_OPTION,
    ),
    rule("option", option, "a plug-in knows the option {subject}", Kind.UNKNOWN_OPTION),
    rule("mark", mark, "a plug-in gives the mark {subject} its meaning", Kind.UNKNOWN_MARK),
    rule("setting", setting, "a plug-in declares the setting {subject}", Kind.UNKNOWN_INI),
    rule("hook", hook, "a plug-in declares the hook {subject}", Kind.UNKNOWN_HOOK),
    rule("async-plugin", async_plugin, "tests are asynchronous, and nothing runs them", Kind.ASYNC_PLUGIN),
    rule("asyncio-auto", asyncio_auto, "tests are asynchronous without a mark", Kind.ASYNC_PLUGIN),
    not_strict(Kind.UNKNOWN_MARK),
    not_strict(Kind.UNKNOWN_INI),
    rule("older-pytest", older_pytest, "{subject} is of an older pytest", Kind.MISSING_NAME, Kind.MISSING_ATTRIBUTE),
    rule(
        "take-back-warning",
        take_back_warning,
        "the project turns warnings into errors, and this one is of a dependency of another age",
        Kind.WARNING_AS_ERROR,
    ),
)
