"""Every row of the tables of bounds answers an error that its distribution's change makes, and no other error."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from installers.interface import Signature
from installers.repair import rules_build, rules_pytest
from installers.repair.bounds import BOUNDS, Bound
from installers.repair.context import Context
from installers.repair.rule import rule_of
from installers.repair.rules import answers
from installers.repair.signatures import signatures_of_log
from miner.core.records import Recipe

CUTOFF = datetime(2023, 4, 1, tzinfo=UTC)
RECIPE = Recipe(python="3.9", build_backend="setuptools.build_meta", build_requirements=("setuptools", "wheel"))
ROWS = (*BOUNDS, *rules_pytest.BOUNDS)


def no_name(name: str, module: str) -> str:
    return f"E   ImportError: cannot import name '{name}' from '{module}' (/opt/env/lib/x.py)"


def no_attribute(name: str, module: str) -> str:
    return f"E   AttributeError: module '{module}' has no attribute '{name}'"


def no_method(name: str, owner: str) -> str:
    return f"E   AttributeError: '{owner}' object has no attribute '{name}'"


def no_module(name: str) -> str:
    return f"E   ModuleNotFoundError: No module named '{name}'"


def no_argument(name: str, function: str) -> str:
    return f"E   TypeError: {function}() got an unexpected keyword argument '{name}'"


CASES: tuple[tuple[str, str], ...] = (
    ("jinja2<3.1", no_name("Markup", "jinja2")),
    ("jinja2<3.1", "    from jinja2 import contextfilter\nE   ImportError: cannot import name 'contextfilter'"),
    ("markupsafe<2.1", no_name("soft_unicode", "markupsafe")),
    ("werkzeug<1", no_module("werkzeug.contrib")),
    ("werkzeug<1", no_name("secure_filename", "werkzeug")),
    ("werkzeug<2.1", no_name("safe_str_cmp", "werkzeug.security")),
    ("werkzeug<2.1", no_argument("as_tuple", "EnvironBuilder.__init__")),
    ("werkzeug<2.2", no_name("parse_rule", "werkzeug.routing")),
    ("werkzeug<3", no_name("url_quote", "werkzeug.urls")),
    ("werkzeug<3.1", no_attribute("__version__", "werkzeug")),
    ("itsdangerous<2.1", no_name("json", "itsdangerous")),
    ("flask<1", no_module("flask.ext")),
    ("flask<2.1", no_name("safe_join", "flask")),
    ("flask<2.3", no_name("JSONEncoder", "flask.json")),
    ("flask<2.3", no_method("before_first_request", "Flask")),
    ("flask<3", no_name("escape", "flask")),
    ("urllib3<2", no_name("DEFAULT_CIPHERS", "urllib3.util.ssl_")),
    ("urllib3<2", no_method("version_string", "HTTPResponse")),
    ("urllib3<2", no_argument("method_whitelist", "Retry.__init__")),
    (
        "requests<2.32",
        "E   requests.exceptions.InvalidURL: Not supported URL scheme http+docker",
    ),
    ("httpx<0.28", no_argument("proxies", "Client.__init__")),
    ("click<8", no_module("click._bashcomplete")),
    ("click<8.1", no_name("get_terminal_size", "click")),
    ("click<8.2", no_argument("mix_stderr", "CliRunner.__init__")),
    ("starlette<0.21", no_argument("allow_redirects", "TestClient.get")),
    ("marshmallow<4", no_name("__version_info__", "marshmallow")),
    ("django<2", no_module("django.core.urlresolvers")),
    ("django<3", no_name("six", "django.utils")),
    ("django<4", no_name("ugettext_lazy", "django.utils.translation")),
    ("sqlalchemy<1.4", no_name("_ColumnEntity", "sqlalchemy.orm.query")),
    ("sqlalchemy<2", no_method("table_names", "Engine")),
    ("sqlalchemy<2", "E   sqlalchemy.exc.ObjectNotExecutableError: Not an executable object: 'select 1'"),
    ("sqlalchemy<2", "E   sqlalchemy.exc.MovedIn20Warning: Deprecated API features detected!"),
    ("numpy<1.24", no_attribute("float", "numpy")),
    (
        "numpy<1.20",
        "E   DeprecationWarning: `np.float` is a deprecated alias for the builtin `float`.",
    ),
    ("numpy<1.23", no_attribute("asscalar", "numpy")),
    ("numpy<2", no_attribute("ComplexWarning", "numpy")),
    ("numpy<2", no_method("newbyteorder", "numpy.ndarray")),
    ("numpy<2.4", no_attribute("trapz", "numpy")),
    ("numpy<2", "E   AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead."),
    ("numpy<2", "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.0.0 as it may crash."),
    ("numpy<1.25", no_module("numpy.testing.utils")),
    ("numpy<1.18", no_module("numpy.testing.decorators")),
    ("pandas<1", no_method("ix", "DataFrame")),
    ("pandas<2", no_method("append", "DataFrame")),
    ("pandas<2", no_module("pandas.util.testing")),
    ("pandas<3", no_method("applymap", "DataFrame")),
    ("scipy<1.2", no_name("imread", "scipy.misc")),
    ("scipy<1.3", no_name("comb", "scipy.misc")),
    ("scipy<1.13", no_attribute("gaussian", "scipy.signal")),
    ("scipy<1.14", no_name("simps", "scipy.integrate")),
    ("scikit-learn<0.20", no_module("sklearn.cross_validation")),
    ("scikit-learn<0.23", no_module("sklearn.externals.joblib")),
    ("protobuf<3.21", "E   TypeError: Descriptors cannot be created directly."),
    (
        "pydantic<2",
        "E   pydantic.errors.PydanticImportError: `BaseSettings` has been moved to the `pydantic-settings` package.",
    ),
    ("pydantic<2", no_name("ModelMetaclass", "pydantic.main")),
    ("pyyaml<6", "E   TypeError: load() missing 1 required positional argument: 'Loader'"),
    ("importlib-metadata<5", no_method("get", "EntryPoints")),
    ("attrs<19.2", no_argument("convert", "attrib")),
    ("setuptools<82", no_module("pkg_resources")),
    ("setuptools<81", "E   UserWarning: pkg_resources is deprecated as an API."),
    (
        "setuptools<81",
        "E   DeprecationWarning: Deprecated call to `pkg_resources.declare_namespace('demo')`.",
    ),
    ("lxml<5.2", "E   ImportError: lxml.html.clean module is now a separate project lxml_html_clean."),
    (
        "sphinxcontrib-applehelp<1.0.5",
        "The sphinxcontrib.applehelp extension used by this project needs at least Sphinx v5.0;",
    ),
    ("docutils<0.22", no_module("docutils.utils.error_reporting")),
    ("pyparsing<3", no_attribute("operatorPrecedence", "pyparsing")),
    ("pytest<4", "E   yield tests were removed in pytest 4.0 - {name} will be ignored"),
    (
        "pytest<4",
        "Failed: [pytest] section in setup.cfg files is no longer supported, change to [tool:pytest] instead.",
    ),
    ("pytest<4", "E   TypeError: object of type 'MarkDecorator' has no len()"),
    ("pytest<4", no_method("get_marker", "Function")),
    ("pytest<4", "PluginValidationError: unknown hook 'pytest_namespace' in plugin <module 'conftest'>"),
    ("pytest<5", no_attribute("config", "pytest")),
    ("pytest<5", "PluginValidationError: unknown hook 'pytest_logwarning' in plugin <module 'conftest'>"),
    ("pytest<6", no_method("funcargnames", "FixtureRequest")),
    ("pytest<7", "E   AttributeError: module pytest has no attribute collect"),
    ("pytest<7", "PluginValidationError: unknown hook 'pytest_warning_captured' in plugin <module 'conftest'>"),
    ("pytest<8", no_attribute("Instance", "pytest")),
    ("cryptography<39", no_attribute("OpenSSL_add_all_algorithms", "lib")),
    ("pytest<7", "E   pytest.PytestRemovedIn7Warning: direct construction is deprecated"),
    ("pytest<8", "PluginValidationError: unknown hook 'pytest_cmdline_preparse' in plugin <module 'conftest'>"),
    ("pytest<8", "E   pytest.PytestRemovedIn8Warning: Passing None has been deprecated."),
    ("pytest<9", "E   pytest.PytestRemovedIn9Warning: Marks applied to fixtures have no effect"),
    ("pytest>=6.2", no_attribute("MonkeyPatch", "pytest")),
    ("pytest>=7", no_name("StashKey", "pytest")),
    ("pytest-asyncio<1", "E       fixture 'event_loop' not found"),
)


def hit(text: str) -> list[tuple[Bound, Signature]]:
    found = signatures_of_log("suite", text)
    return [(row, one) for row in ROWS for one in found if one.kind in row.kinds and row.subject.fullmatch(one.subject)]


@pytest.mark.parametrize(("bound", "text"), CASES)
def test_an_error_of_another_era_is_answered_with_its_bound(bound: str, text: str) -> None:
    rows = [(row, signature) for row, signature in hit(text) if row.bound == bound]
    assert rows, f"no row answers {[str(one) for one in signatures_of_log('suite', text)]}"
    edited = rule_of(rows[0][0]).edit(RECIPE, rows[0][1], Context(cutoff=CUTOFF))
    assert edited is not None
    assert edited.constraints == (bound,)


def test_every_row_has_a_case() -> None:
    without = [
        f"{row.bound} {row.subject.pattern}"
        for row in ROWS
        if not any(row is one for _, text in CASES for one, _ in hit(text))
    ]
    assert without == []


@pytest.mark.parametrize(
    "text",
    [
        no_name("Markup", "demo"),
        no_attribute("float", "demo"),
        no_method("append", "Demo"),
        no_module("demo.contrib"),
        no_argument("convert", "demo"),
        "E   UserWarning: something else",
    ],
)
def test_the_same_name_elsewhere_is_answered_with_no_bound(text: str) -> None:
    assert hit(text) == []


BUILD_CASES: tuple[tuple[str, str], ...] = (
    ("setuptools<58", "error in demo setup command: use_2to3 is invalid."),
    ("setuptools<46", "  from setuptools import setup, Feature\nImportError: cannot import name 'Feature'"),
    ("setuptools<82", "ModuleNotFoundError: No module named 'pkg_resources'"),
    ("setuptools<72", "ModuleNotFoundError: No module named 'setuptools.command.test'"),
    ("setuptools<60", "ModuleNotFoundError: No module named 'distutils.msvccompiler'"),
    ("setuptools<61", "error: Multiple top-level packages discovered in a flat-layout: ['docs', 'demo']."),
    ("setuptools<66", "packaging.version.InvalidVersion: Invalid version: '1.0-demo-x'"),
    ("setuptools<78", "InvalidConfigError: Invalid dash-separated key 'description-file' in 'metadata'"),
    ("cython<3", "Error compiling Cython file:\n-------"),
    ("numpy<2", "AttributeError: module 'numpy' has no attribute 'get_include_old'"),
)


@pytest.mark.parametrize(("bound", "text"), BUILD_CASES)
@pytest.mark.parametrize("what", ["demo @ file:///w/demo", "demo==1.0"])
def test_a_build_of_another_era_is_answered_with_its_bound(bound: str, text: str, what: str) -> None:
    log = f"error: Failed to build `{what}`\n  cause: The build backend returned an error\n\n{text}\n"
    edits = [
        recipe.build_constraints
        for signature in signatures_of_log("project", log)
        for rule, recipe in answers(RECIPE, signature, Context(cutoff=CUTOFF))
        if rule.name == f"build bound {bound}"
    ]
    assert edits == [(bound,)]


def test_every_row_for_builds_has_a_case() -> None:
    assert {row.bound for row in rules_build.BOUNDS} == {bound for bound, _ in BUILD_CASES}
