"""The ladder on small projects of our own: which mode is healthy, what is refused and why, and what is remembered."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import BACKEND, NORMAL_ONLY, PROJECT, Known, case_of, new_file_patch, recipe_of

from installers.attempt import ATTEMPT, PRODUCER, attempt_of, observation_of
from installers.ground import ground
from installers.health import needed_modules
from installers.image import ensure_image
from installers.interface import Attempt, Memory, Proposal
from installers.ladder import Installed, attempts_of, chosen, environment_of, install, refusal_of
from installers.memory import lesson_of
from installers.rungs import RUNGS
from installers.workshop import Workshop
from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError
from miner.core.records import BuildMode, Environment, Fact, FactKey, Layer
from miner.core.settings import Budget, Ladder, Settings
from miner.sandbox.interface import TestRequest
from miner.sandbox.outcomes import read_run
from miner.sandbox.profile import profile_of
from miner.sandbox.runner import run_tests

ENVIRONMENT = Environment(
    image="sha256:" + "1" * 64,
    base_digest="sha256:" + "2" * 64,
    layers=(Layer(diff_id="sha256:" + "3" * 64, size=1),),
    lock_sha256="4" * 64,
    mode=BuildMode.NORMAL,
    rebuild_cmd="/opt/build/reinstall",
)
BLOBS = BlobStore("memory://attempts")
TESTS = {"tests/test_demo.py": "import demo\n\ndef test_answer():\n    assert demo.answer == 42\n"}
GOLD = (
    b"diff --git a/src/demo/__init__.py b/src/demo/__init__.py\n--- a/src/demo/__init__.py\n"
    b"+++ b/src/demo/__init__.py\n@@ -1 +1 @@\n-answer = 41\n+answer = 42\n"
)


def fact(kind: str, result: str = "ok", ordinal: int = 0, **payload) -> Fact:
    key = FactKey(kind=kind, subject="x", input_hash=f"{ordinal}", producer="p", epoch=1)
    return Fact(key=key, observed_at=datetime(2023, 1, 1, tzinfo=UTC), outcome=result, payload=payload)


LOCK, ENV, PROJECT_FACT = fact("install.lock"), fact("install.env"), fact("install.project")
NO_EDITABLE = fact("install.project", "project-install-failed", detail="no build_editable")
UNSEEN = fact("install.health", "edit-not-seen", detail="x")


def attempt(number: int = 0, outcome: str = "ok", **fields) -> Fact:
    environment = ENVIRONMENT.model_copy(update={"lock_sha256": f"{number}" * 64}) if outcome == "ok" else None
    made = Attempt(
        repository="octo/demo",
        rung="declared",
        number=number,
        recipe=recipe_of(),
        cutoff=datetime(2023, 1, 1, tzinfo=UTC),
        outcome=outcome,
        environment=environment,
        **fields,
    )
    seen = observation_of(made, BLOBS)
    made_of = fact("install.attempt", outcome, number, **seen.payload)
    return made_of.model_copy(update={"measures": seen.measures})


def test_healthy_attempt_makes_the_environment_whatever_failed_before() -> None:
    trail = [fact("source.extract"), LOCK, ENV, NO_EDITABLE, attempt(0, "project-install-failed"), attempt(1)]
    assert environment_of(trail).lock_sha256 == "1" * 64
    assert refusal_of(trail) is None


def test_of_several_healthy_attempts_the_one_with_most_passing_tests_is_chosen_the_first_of_equals() -> None:
    trail = [attempt(0, share=0.4), attempt(1, share=0.9), attempt(2, share=0.9), attempt(3, "lock-failed")]
    assert chosen(attempts_of(trail)).number == 1
    assert chosen(attempts_of([attempt(0), attempt(1, share=0.1)])).number == 1
    assert chosen(attempts_of([attempt(0, share=0.9, broken=1), attempt(1, share=0.5)])).number == 1


def test_refusal_is_that_of_the_attempt_that_came_furthest() -> None:
    assert refusal_of([LOCK, ENV, LOCK, PROJECT_FACT, UNSEEN, LOCK, NO_EDITABLE]) == UNSEEN
    later = fact("install.project", "build-timeout", 1)
    assert refusal_of([LOCK, ENV, LOCK, NO_EDITABLE, LOCK, later]) == later


def test_refusals_of_other_stages_are_none_of_the_ladders() -> None:
    assert refusal_of([fact("source.extract", "no-sdist")]) is None
    assert environment_of([]) is None


class Tried:
    """Attempts without an engine: what came of a recipe is told by its Python."""

    def __init__(self, shares: dict[str, float | None], seconds: float = 1.0) -> None:
        self._shares = shares
        self._seconds = seconds
        self.made: list[Attempt] = []

    def __call__(self, help_, case, proposal, *, rung: str, past=()) -> Attempt:
        share = self._shares.get(proposal.recipe.python)
        made = Attempt(
            repository=case.repository,
            rung=rung,
            number=len(past),
            recipe=proposal.recipe,
            cutoff=case.created_at,
            outcome="lock-failed" if share is None else "ok",
            environment=None if share is None else ENVIRONMENT,
            share=share,
            good=share is not None and share >= 0.8,
            seconds=self._seconds,
        )
        seen = observation_of(made, BLOBS)
        known = help_.memo.measure(PRODUCER, ATTEMPT, case.instance_id, {"made": made}, lambda: seen)
        if made not in self.made:  # a climb that came to nothing is climbed once more, by what is known
            self.made.append(made)
        return attempt_of(known)


@pytest.fixture
def rungs(monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path):
    """Climb with rungs that propose one Python after the other; return (rung, Python) of each attempt."""

    def climb(proposals: dict[str, list[str]], tried: Tried, **ladder) -> list[tuple[str, str]]:
        def rung(name: str):
            def propose(question, help_) -> Proposal | None:
                mine = [one for one in question.past if one.rung == name]
                left = proposals[name][len(mine) :]
                return Proposal(recipe=recipe_of(python=left[0])) if left else None

            return propose

        for name in proposals:
            monkeypatch.setitem(RUNGS, name, rung(name))
        monkeypatch.setattr("installers.ladder.attempt", tried)
        bounds = Ladder(
            **{
                "order": tuple(proposals),
                "enough": 0.8,
                "budgets": dict.fromkeys(proposals, Budget(attempts=3, seconds=100.0)),
                **ladder,
            }
        )
        measure = settings.measure.model_copy(update={"ladder": bounds})
        ours = settings.model_copy(update={"measure": measure})
        case = case_of(PROJECT, tmp_path, TESTS)
        install(SimpleNamespace(settings=ours), Known().memo(), case)
        return [(one.rung, one.recipe.python) for one in tried.made]

    return climb


def test_rungs_are_climbed_in_order_until_enough_tests_pass(rungs) -> None:
    tried = Tried({"3.8": 0.5, "3.9": 0.8})
    found = rungs({"declared": ["3.7"], "ci": ["3.8"], "repair": ["3.9", "3.10"]}, tried)
    assert found == [("declared", "3.7"), ("ci", "3.8"), ("repair", "3.9")]
    assert [one.number for one in tried.made] == [0, 1, 2]


def test_another_order_is_a_setting(rungs) -> None:
    proposals = {"declared": ["3.7"], "ci": ["3.8"]}
    found = rungs(proposals, Tried({"3.7": 1.0, "3.8": 1.0}), order=("ci", "declared"))
    assert found == [("ci", "3.8")]


def test_a_rung_has_no_more_attempts_than_its_budget(rungs) -> None:
    budgets = {"declared": Budget(attempts=2, seconds=100.0), "ci": Budget(attempts=0, seconds=100.0)}
    found = rungs({"declared": ["3.6", "3.7", "3.8"], "ci": ["3.9"]}, Tried({"3.6": 0.1}), budgets=budgets)
    assert found == [("declared", "3.6"), ("declared", "3.7")]


def test_a_rung_begins_nothing_once_its_seconds_are_spent(rungs) -> None:
    budgets = dict.fromkeys(("declared", "ci"), Budget(attempts=9, seconds=150.0))
    tried = Tried({"3.6": 0.1}, seconds=100.0)
    found = rungs({"declared": ["3.6", "3.7", "3.8"], "ci": ["3.9"]}, tried, budgets=budgets)
    assert found == [("declared", "3.6"), ("declared", "3.7"), ("ci", "3.9")]


def test_a_rung_that_is_not_there_is_a_wrong_setting(rungs) -> None:
    with pytest.raises(ConfigError, match="no rung 'guess'"):
        rungs({"declared": []}, Tried({}), order=("declared", "guess"))


@pytest.mark.parametrize(
    ("distribution", "top_level", "there", "needed"),
    [
        ("Zope.Interface", ("zope.interface", "helper"), ("helper",), ("zope.interface",)),
        ("python-dateutil", ("dateutil", "gone", "_private"), ("dateutil", "_private"), ("dateutil",)),
        ("typing_extensions", ("typing_extensions",), (), ("typing_extensions",)),
    ],
)
def test_modules_that_must_be_importable(distribution: str, top_level, there, needed) -> None:
    assert needed_modules(distribution, top_level, there) == needed


@pytest.fixture(scope="session")
def one_rung(workshop: Workshop) -> Workshop:
    """A workshop whose ladder ends with what is declared."""
    measure = workshop.settings.measure
    budgets = {"declared": Budget(attempts=1, seconds=600.0)}
    ladder = measure.ladder.model_copy(update={"order": ("declared",), "budgets": budgets})
    settings = workshop.settings.model_copy(update={"measure": measure.model_copy(update={"ladder": ladder})})
    return replace(workshop, settings=settings)


@pytest.fixture
def climb(one_rung: Workshop, grounded: list[Fact], tmp_path: Path) -> Callable[..., Installed]:
    def climb(files=PROJECT, tests=TESTS, gold=GOLD, known=None, later=timedelta(), name="", **recipe) -> Installed:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        known = known if known is not None else Known()
        known.facts += [one for one in grounded if one not in known.facts]
        case = case_of(files, folder, tests, gold, **recipe)
        return install(one_rung, known.memo(later), replace(case, instance_id=name or case.instance_id))

    return climb


@pytest.fixture(scope="session")
def grounded(workshop: Workshop) -> list[Fact]:
    """The facts about the base's own interpreter and the tool chain: made once."""
    return list(ground(workshop, Known().memo(), recipe_of()).facts)


def outcomes(found: Installed) -> list[tuple[str, str]]:
    return [(fact.key.kind, fact.outcome) for fact in found.facts]


def last(found: Installed, kind: str) -> Fact:
    return [fact for fact in found.facts if fact.key.kind == kind][-1]


@pytest.mark.docker
@pytest.mark.index
def test_editable_is_healthy_and_everything_is_remembered(
    climb, one_rung: Workshop, workshop: Workshop, tmp_path: Path
) -> None:
    known = Known()
    found = climb(known=known)
    assert found.environment is not None
    assert (found.environment.mode, found.environment.rebuild_cmd) == (BuildMode.EDITABLE, None)
    assert found.environment.layers[: len(workshop.base.layers)] == workshop.base.layers
    locked = workshop.blobs.get_text(found.environment.lock_sha256)
    assert "pytest==7.3.0" in locked  # as of the beginning of the era
    assert "demo" not in locked
    nobody = replace(one_rung, room=lambda: pytest.fail("an engine was asked for"))
    again = install(nobody, known.memo(), case_of(PROJECT, tmp_path / "again", TESTS, GOLD))
    assert again == found


@pytest.mark.docker
@pytest.mark.index
def test_back_end_without_pep_660_falls_back_to_a_normal_install_with_a_reinstall(climb, workshop: Workshop) -> None:
    found = climb(NORMAL_ONLY)
    assert ("install.project", "project-install-failed") in outcomes(found)
    environment = found.environment
    assert environment is not None
    assert (environment.mode, environment.rebuild_cmd) == (BuildMode.NORMAL, "/opt/build/reinstall")
    health = last(found, "install.health").payload["modules"]["demo"]
    assert health["file"].startswith("/opt/env/")
    assert {"before": results(workshop, environment, None), "after": results(workshop, environment, GOLD)} == {
        "before": {"tests/test_demo.py::test_answer": "failed"},
        "after": {"tests/test_demo.py::test_answer": "passed"},
    }


def results(workshop: Workshop, environment: Environment, gold: bytes | None) -> dict[str, str]:
    """Run the tests in the image, offline, as the validators do."""
    request = TestRequest(
        test_files=tuple(TESTS),
        test_patch=new_file_patch(TESTS),
        gold_patch=gold,
        rebuild_cmd=environment.rebuild_cmd,
        collections=0,
    )
    image = ensure_image(workshop, environment, "pypi__demo-1.1")
    profile = profile_of(workshop.settings, workshop.settings.measure.test, owner=workshop.owner)
    seen = run_tests(workshop.client, image, request, profile, workshop.blobs)
    report = workshop.blobs.get({**seen.blobs, **seen.logs}["events.jsonl"])
    return {result.nodeid: result.status.value for result in read_run(report).results}


@pytest.mark.docker
@pytest.mark.index
def test_refusal_that_a_later_attempt_made_good_is_not_asked_for_again(climb, one_rung: Workshop, tmp_path) -> None:
    known = Known()
    found = climb(NORMAL_ONLY, known=known)
    refused = [fact for fact in known.facts if not fact.ok]
    assert [(fact.outcome, fact.network) for fact in refused] == [("project-install-failed", False)]
    known.facts = [fact.model_copy(update={"network": True}) for fact in known.facts]  # as if the index had said no
    before = len(known.facts)
    nobody = replace(one_rung, room=lambda: pytest.fail("an engine was asked for"))
    again = install(nobody, known.memo(timedelta(hours=7)), case_of(NORMAL_ONLY, tmp_path / "again", TESTS, GOLD))
    assert [fact.key for fact in again.facts] == [fact.key for fact in found.facts]
    assert again.environment == found.environment
    assert len(known.facts) == before


@pytest.mark.docker
@pytest.mark.index
def test_refusal_of_the_index_without_an_environment_is_asked_for_once_more(climb) -> None:
    known = Known()
    for hours, ordinals in ((0, [0]), (1, [0]), (7, [0, 1]), (14, [0, 1])):
        climb(known=known, later=timedelta(hours=hours), requirements=("pytest==99",))
        assert [fact.key.ordinal for fact in known.facts if fact.key.kind == "install.lock"] == ordinals


@pytest.mark.docker
@pytest.mark.index
def test_helper_that_imports_does_not_make_up_for_a_broken_main_package(climb) -> None:
    files = {**PROJECT, "src/demo/__init__.py": "import no_such_dependency\n", "src/helper.py": "one = 1\n"}
    tests = {"tests/test_helper.py": "import helper\n\ndef test_one():\n    assert helper.one\n"}
    found = climb(files, tests, b"", top_level=("demo", "helper"))
    assert found.refusal is not None
    assert found.refusal.outcome == "import-failed"
    assert "no_such_dependency" in found.refusal.payload["detail"]
    assert "helper" not in found.refusal.payload["detail"]


@pytest.mark.docker
@pytest.mark.index
def test_editable_install_that_copies_is_not_taken_for_healthy(climb) -> None:
    copying = BACKEND + "\nbuild_editable = build_wheel\n"
    found = climb({**PROJECT, "backend.py": copying})
    assert ("install.health", "edit-not-seen") in outcomes(found)
    assert found.environment is not None
    assert found.environment.mode is BuildMode.NORMAL


@pytest.mark.docker
@pytest.mark.index
def test_edit_that_no_mode_shows_is_refused_with_the_place_of_the_import(climb, workshop: Workshop) -> None:
    frozen = BACKEND.replace("path.read_text()", "'answer = 41'")
    found = climb({**NORMAL_ONLY, "backend.py": frozen}, name="pypi__frozen-1")
    assert found.environment is None
    assert found.refusal is not None
    assert found.refusal.outcome == "edit-not-seen"
    assert "/opt/env/lib/python3.11/site-packages/demo/__init__.py" in found.refusal.payload["detail"]
    assert not [tag for image in workshop.client.images.list("swe-miner/pypi__frozen-1") for tag in image.tags]


@pytest.mark.docker
@pytest.mark.index
def test_tree_that_needs_no_installation(climb) -> None:
    files = {"demo.py": "answer = 41\n"}
    found = climb(files, gold=b"", modes=(BuildMode.NONE,), source_root="", build_backend="")
    assert found.environment is not None
    assert found.environment.mode is BuildMode.NONE


@pytest.mark.docker
@pytest.mark.index
def test_project_that_pytest_itself_needs_is_the_one_of_the_tree(climb, workshop: Workshop) -> None:
    files = {
        "pyproject.toml": PROJECT["pyproject.toml"],
        "backend.py": PROJECT["backend.py"].replace("demo", "iniconfig").replace("1.0", "1.1.1"),
        "src/iniconfig/__init__.py": "class IniConfig:\n    ours = True\n\nParseError = SectionWrapper = ValueError\n",
    }
    tests = {"tests/test_ini.py": "import iniconfig\n\ndef test_ours():\n    assert iniconfig.IniConfig.ours\n"}
    found = climb(files, tests, b"", distribution="iniconfig", version_hint="1.1.1", top_level=("iniconfig",))
    assert found.environment is not None, found.facts[-1].payload
    assert "iniconfig" not in workshop.blobs.get_text(found.environment.lock_sha256)
    assert last(found, "install.health").payload["modules"]["iniconfig"]["file"] == "/testbed/src/iniconfig/__init__.py"


@pytest.mark.docker
@pytest.mark.index
def test_options_that_pytest_does_not_know_are_dropped_with_a_reason(climb) -> None:
    found = climb(addopts=("--strict-markers", "--cov=demo", "--no-such-option", "-p", "no_such_plugin"))
    assert found.environment is not None
    assert found.environment.addopts == ("--strict-markers",)
    dropped = dict(item.split(": ") for item in found.environment.dropped_addopts)
    assert set(dropped) == {"--cov=demo", "--no-such-option", "-p no_such_plugin"}


@pytest.mark.docker
@pytest.mark.index
def test_module_that_cannot_be_collected_before_the_fix_is_normal(climb) -> None:
    tests = {"tests/test_new.py": "from demo import new\n\ndef test_new():\n    assert new\n"}
    gold = b"".join((GOLD[:-1].replace(b"+1 @@", b"+1,2 @@"), b"\n+new = True\n"))
    found = climb(PROJECT, tests, gold)
    assert found.environment is not None
    assert last(found, "install.health").payload["collected"] == 1


@pytest.mark.docker
@pytest.mark.index
def test_tests_that_never_collect_are_refused_with_pytests_own_error(climb) -> None:
    found = climb(PROJECT, {"tests/test_x.py": "import no_such_module\n"})
    assert found.refusal is not None
    assert found.refusal.outcome == "collection-broken"
    assert "ModuleNotFoundError: No module named 'no_such_module'" in found.refusal.payload["detail"]
    assert outcomes(found).count(("install.project", "ok")) == 1  # another mode would not change it


@pytest.mark.docker
@pytest.mark.index
def test_package_that_cannot_be_imported_is_refused_with_its_error(climb) -> None:
    found = climb({**PROJECT, "src/demo/__init__.py": "import no_such_dependency\n"}, gold=b"")
    assert found.refusal is not None
    assert found.refusal.outcome == "import-failed"
    assert "no_such_dependency" in found.refusal.payload["detail"]


@pytest.mark.docker
@pytest.mark.index
def test_conftest_that_fails_is_pytest_unusable_with_its_error(climb) -> None:
    found = climb({**PROJECT, "tests/conftest.py": "import no_such_plugin_of_ours\n"})
    assert found.refusal is not None
    assert found.refusal.outcome == "pytest-unusable"
    assert "no_such_plugin_of_ours" in found.refusal.payload["detail"]


@pytest.mark.docker
@pytest.mark.index
def test_requirements_without_a_solution_end_the_climb(climb) -> None:
    found = climb(requirements=("pytest==99",))
    assert [kind for kind, outcome in outcomes(found) if outcome == "lock-failed"] == [
        "install.lock",
        "install.attempt",
    ]
    assert "install.env" not in dict(outcomes(found))
    assert found.refusal == last(found, "install.lock")


@pytest.mark.docker
@pytest.mark.index
def test_what_no_file_declares_is_found_by_what_the_tests_miss_and_remembered(
    workshop: Workshop, grounded: list[Fact], tmp_path: Path
) -> None:
    tests = {"tests/test_yaml.py": "import yaml\n\ndef test_yaml():\n    assert yaml.safe_load('a: 1') == {'a': 1}\n"}
    known = Known(list(grounded))
    found = install(workshop, known.memo(), case_of(PROJECT, tmp_path / "first", tests))
    assert found.environment is not None, found.attempts
    first, *_, repaired = found.attempts
    assert (first.rung, first.outcome) == ("declared", "collection-broken")
    assert repaired.rung == "repair"
    assert [(str(edit.signature), bool(edit.why)) for edit in repaired.edits] == [("missing-module: yaml", True)]
    assert any(line.lower().startswith("pyyaml") for line in repaired.recipe.requirements)

    lesson = lesson_of(last(found, ATTEMPT))
    next_one = replace(case_of(PROJECT, tmp_path / "again", tests), instance_id="pypi__demo-1.2")
    again = install(workshop, Known(list(grounded)).memo(), next_one, Memory(lessons=(lesson,)))
    assert [(one.rung, one.outcome) for one in again.attempts] == [("declared", "collection-broken"), ("memory", "ok")]
