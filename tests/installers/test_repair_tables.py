"""The tables of knowledge tell the truth: about this Python's standard library, about plug-ins on the real index."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from datetime import UTC, datetime
from functools import cache

import pytest
from packaging.version import Version
from repair_index import workshop_of

from installers.repair import plugins
from installers.repair.modules import Index
from installers.repair.pythons import (
    ADDED_MODULES,
    ADDED_NAMES,
    REMOVED_MODULES,
    REMOVED_NAMES,
    first_python,
    last_python,
)
from miner.core.memo import Memo
from miner.core.settings import Settings

HERE = Version(f"{sys.version_info[0]}.{sys.version_info[1]}")
CLASSES = re.compile(r"[A-Z]\w*|zipimporter|str|array\.array")


def has_module(name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(name)
        except ImportError:
            return False
    return True


def has_name(subject: str) -> bool:
    module, _, name = subject.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return has_module(module) and hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("module", REMOVED_MODULES)
def test_a_module_that_was_removed_is_here_or_not(module: str) -> None:
    if module in ("nis", "spwd", "ossaudiodev", "crypt", "distutils", "audioop", "lib2to3"):
        pytest.skip("distributions of Python may leave it out")
    assert has_module(module) is (Version(REMOVED_MODULES[module]) >= HERE)


@pytest.mark.parametrize("subject", [one for one in REMOVED_NAMES if not CLASSES.fullmatch(one.partition(":")[0])])
def test_a_name_that_was_removed_is_here_or_not(subject: str) -> None:
    assert has_name(subject) is (Version(REMOVED_NAMES[subject]) >= HERE)


@pytest.mark.parametrize("subject", [*ADDED_MODULES, *(one for one in ADDED_NAMES if not one.startswith("str:"))])
def test_what_was_added_is_here_or_not(subject: str) -> None:
    here = has_name(subject) if ":" in subject else has_module(subject)
    assert here is (Version({**ADDED_MODULES, **ADDED_NAMES}[subject]) <= HERE)


@pytest.mark.parametrize(
    ("subject", "last"),
    [
        ("imp", "3.11"),
        ("distutils.util", "3.11"),
        ("collections:Mapping", "3.9"),
        ("TestDemo:assertEquals", "3.11"),
        ("xml.sax.HTMLParser:unescape", "3.8"),
        ("__init__:loop", "3.9"),
        ("demo", None),
        ("demo:Mapping", None),
    ],
)
def test_the_last_python_that_has_it(subject: str, last: str | None) -> None:
    assert last_python(subject) == last


@pytest.mark.parametrize(("subject", "first"), [("zoneinfo", "3.9"), ("typing:Self", "3.11"), ("demo:Self", None)])
def test_the_first_python_that_has_it(subject: str, first: str | None) -> None:
    assert first_python(subject) == first


@pytest.mark.index
class TestOnTheRealIndex:
    @pytest.fixture(scope="class")
    def index(self, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Index:
        folder = tmp_path_factory.mktemp("index")
        ours = settings.model_copy(update={"paths": settings.paths.model_copy(update={"work": folder})})
        memo = Memo(lambda _key: [], lambda _fact: None)
        return Index(workshop_of(ours, folder), memo, datetime(2025, 6, 1, tzinfo=UTC), "3.12")

    @pytest.mark.parametrize(
        ("module", "distribution"),
        [
            ("yaml", "pyyaml"),
            ("dateutil", "python-dateutil"),
            ("google.cloud.storage", "google-cloud-storage"),
            ("zope.interface", "zope-interface"),
            ("trustme", "trustme"),
            ("xdist", "pytest-xdist"),
        ],
    )
    def test_a_module_has_its_provider(self, index: Index, module: str, distribution: str) -> None:
        assert index.provider(module) == distribution

    def test_a_name_has_the_last_version_that_had_it(self, index: Index) -> None:
        assert index.last_with("jinja2", "jinja2", "contextfilter") == "3.0.3"
        assert index.last_with("tornado", "tornado.web", "asynchronous") == "5.1.1"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("table", "form"),
        [
            ("FIXTURES", r"def {0}\(|name=['\"]{0}['\"]|^{0} = |{0} = pytest\.\w*fixture"),
            ("OPTIONS", r"['\"]{0}['\"]"),
            ("MARKS", r"['\"]{0}\b|\.{0}\b"),
            ("SETTINGS", r"{0}\b"),
            ("HOOKS", r"def {0}\w*"),
        ],
    )
    def test_plugins_bring_what_the_tables_say(self, index: Index, table: str, form: str) -> None:
        @cache
        def source(name: str) -> str:
            versions = [one for one in index._versions(name) if not one[0].is_prerelease]
            inside = [index._inside(files) for _, files in (versions[-1], versions[len(versions) // 2], versions[0])]
            return "\n".join(one.text(path) for one in inside if one for path in one.names() if path.endswith(".py"))

        rows = [
            (key, name)
            for key, value in getattr(plugins, table).items()
            for name in (value if isinstance(value, tuple) else (value,))
        ]
        wrong = [row for row in rows if not re.search(form.format(re.escape(row[0])), source(row[1]), re.MULTILINE)]
        assert wrong == []
