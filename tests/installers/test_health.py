"""Health in real containers: what refuses an environment, with which reason, and what the patches explain."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bench import Known
from tiny import environment_of, patch_of, recipe_of

from installers.health import TestSide, health, health_request, needs_build, run_of_health
from installers.reports import log_of
from installers.workshop import Workshop
from miner.core.records import BuildMode, Fact

BASE = {"src/shop.py": "def double(x):\n    return x + x + 1\n", "tests/test_a.py": "def test_one(): pass\n"}
NEW_TEST = {"tests/test_new.py": "from shop import new\n\ndef test_new(): assert new\n"}
NEW_CODE = {"src/shop.py": BASE["src/shop.py"] + "new = True\n"}


def changed(before, after) -> bytes:
    return patch_of(before, {**before, **after})


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (("src/shop.py", "docs/index.rst", "CHANGES.md"), False),
        (("src/shop.py", "src/speed.pyx"), True),
        (("setup.py",), True),
        (("pyproject.toml",), True),
        (("src/a b.c",), True),
        ((), False),
    ],
)
def test_compiled_project_is_built_again_only_for_what_may_be_compiled(paths, expected: bool) -> None:
    patches = [patch_of({path: "x\n"}, {path: "y\n"}) for path in paths]
    assert needs_build(*patches) == expected
    assert needs_build(*(b"diff --git a/%s b/%s\nGIT binary patch\n" % ((p.encode(),) * 2) for p in paths)) == expected


@pytest.fixture
def examine(workshop: Workshop) -> Callable[..., Fact]:
    def examine(files=BASE, tests=None, gold=None, names=(), mode=BuildMode.EDITABLE, rebuild=None, **recipe) -> Fact:
        names = names or tuple(path for path in {**files, **(tests or {})} if "/test_" in path)
        test_patch = changed(files, tests) if tests else b""
        side = TestSide(names, test_patch, changed({**files, **(tests or {})}, gold) if gold else b"")
        request = health_request(workshop, recipe_of(**recipe), environment_of(workshop, files, mode, rebuild), side)
        return health(workshop, Known().memo(), "test-health", request, side)

    return examine


def reason(fact: Fact) -> tuple[str, str]:
    return fact.outcome, fact.payload.get("detail", "")


@pytest.mark.docker
def test_what_only_the_gold_patch_makes_collectable_takes_one_pytest(examine, workshop: Workshop) -> None:
    fact = examine(tests=NEW_TEST, gold=NEW_CODE)
    assert fact.ok, fact.payload
    assert [step["name"] for step in fact.payload["steps"]] == ["apply-test", "apply-gold", "edit", "events"]
    seen = run_of_health(fact, workshop.blobs)
    assert seen.collected == (frozenset({"tests/test_a.py::test_one", "tests/test_new.py::test_new"}),)
    assert seen.collect_errors == {}
    assert "2 tests collected" in log_of(fact, workshop.blobs)


@pytest.mark.docker
def test_file_that_the_environment_cannot_import_is_told_and_no_refusal_while_others_are_collected(
    examine, workshop: Workshop
) -> None:
    fact = examine(tests={"tests/test_new.py": "import no_such_module\n"}, gold=NEW_CODE)
    assert fact.ok
    errors = run_of_health(fact, workshop.blobs).collect_errors
    assert "No module named 'no_such_module'" in errors["tests/test_new.py"]


@pytest.mark.docker
def test_nothing_can_be_imported_with_both_patches(examine) -> None:
    outcome, detail = reason(examine(names=("tests/test_new.py",), tests={"tests/test_new.py": "import no_such\n"}))
    assert outcome == "collection-broken"
    assert "tests/test_new.py: ModuleNotFoundError: No module named 'no_such'" in detail


@pytest.mark.docker
@pytest.mark.parametrize("text", ["def helper(): pass\n", "def test_x(:\n"])
def test_nothing_is_collected_for_another_reason(examine, text: str) -> None:
    assert examine(names=("tests/test_new.py",), tests={"tests/test_new.py": text}).outcome == "nothing-collected"


@pytest.mark.docker
def test_dependency_that_only_the_gold_patch_asks_for_is_missed(examine) -> None:
    outcome, detail = reason(examine(gold={"src/shop.py": "import no_such_dependency\n"}))
    assert outcome == "import-failed"
    assert "no_such_dependency" in detail


@pytest.mark.docker
def test_module_that_the_gold_patch_moves_is_looked_for_without_it(examine) -> None:
    moved = changed(BASE, {}) + patch_of({"src/shop.py": BASE["src/shop.py"]}, {"src/store.py": "double = 2\n"})
    assert b"deleted file" in moved
    fact = examine(gold={"src/shop.py": None, "src/store.py": "double = 2\n"})
    assert fact.ok, fact.payload
    assert [step["name"] for step in fact.payload["steps"]] == ["edit", "events"]


@pytest.mark.docker
def test_module_that_puts_another_object_in_its_place_is_seen_by_its_file(examine) -> None:
    lazy = "import sys, types\nmade = types.SimpleNamespace(__file__=__file__)\nsys.modules[__name__] = made\n"
    assert examine({**BASE, "src/shop.py": lazy}).ok


@pytest.mark.docker
def test_copy_elsewhere_is_not_the_edited_file(examine) -> None:
    outcome, detail = reason(examine({**BASE, "lib/shop.py": ""}, source_root="lib"))
    assert outcome == "edit-not-seen"
    assert "shop is imported from /testbed/src/shop.py" in detail


@pytest.mark.docker
@pytest.mark.parametrize("file", ["tests/conftest.py", "pytest.ini"])
def test_pytest_that_does_not_start_says_why(examine, workshop: Workshop, file: str) -> None:
    text = {
        "tests/conftest.py": "import no_such_plugin\n",
        "pytest.ini": "[pytest]\nrequired_plugins = no-such-plugin\n",
    }
    fact = examine({**BASE, file: text[file]})
    assert fact.outcome == "pytest-unusable"
    assert "no" in fact.payload["detail"]
    assert "such" in log_of(fact, workshop.blobs)
    assert not run_of_health(fact, workshop.blobs).started


@pytest.mark.docker
def test_patch_that_does_not_apply_names_the_step(examine, workshop: Workshop) -> None:
    side = TestSide(("tests/test_a.py",), b"", changed({"src/shop.py": "other\n"}, {"src/shop.py": "x\n"}))
    request = health_request(workshop, recipe_of(), environment_of(workshop, BASE), side)
    fact = health(workshop, Known().memo(), "test-health", request, side)
    assert (fact.outcome, fact.payload["ended"]) == ("patch-does-not-apply", "apply-gold")
    assert "src/shop.py" in log_of(fact, workshop.blobs)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("gold", "rebuild", "expected"),
    [
        (NEW_CODE, "exit 1", "ok"),
        ({"src/speed.c": "int y;\n"}, "true", "ok"),
        ({"src/speed.c": "int y;\n"}, "echo broken; exit 1", "rebuild-failed"),
        (
            {"src/speed.c": "int y;\n"},
            "python -c 'import urllib.request as u; u.urlopen(\"http://example.invalid\")'",
            "rebuild-needs-network",
        ),
    ],
)
def test_compiled_project_shows_python_at_once_and_builds_the_rest_offline(examine, gold, rebuild, expected) -> None:
    files = {**BASE, "src/speed.c": "int x;\n"}
    fact = examine(files, gold=gold, mode=BuildMode.COMPILED, rebuild=rebuild)
    assert fact.outcome == expected, fact.payload
    rebuilt = "rebuild" in [step["name"] for step in fact.payload["steps"]]
    assert rebuilt == ("src/speed.c" in gold)


@pytest.mark.docker
def test_options_that_pytest_refuses_are_dropped_and_the_others_stay(examine) -> None:
    fact = examine(addopts=("--strict-markers", "--no-such-option"))
    assert fact.payload["environment"]["addopts"] == ["--strict-markers"]


@pytest.mark.docker
def test_bare_package_is_collected_by_its_folders(examine, workshop: Workshop) -> None:
    fact = examine(
        {**BASE, "tests/conftest.py": "collect_ignore = ['test_py2.py']\n", "tests/test_py2.py": "print 1\n"}
    )
    assert fact.ok
    assert run_of_health(fact, workshop.blobs).collect_errors == {}
