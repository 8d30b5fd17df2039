"""What a session stands on: as much of the furthest attempt as there is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from agent_bench import gave_up, ran
from bench import NORMAL_ONLY, PROJECT, Known, case_of

from installers.ladder import Installed, install
from installers.models.desk import Desk
from installers.models.scripted import ScriptedModel
from installers.workshop import Workshop
from miner.core.records import Fact
from miner.core.settings import Budget, Price

pytestmark = [pytest.mark.docker, pytest.mark.index]
TESTS = {"tests/test_demo.py": "import demo, nowhere\n\ndef test_answer():\n    assert demo.answer == 42\n"}
LOOK = (
    "python -m pytest --version; python -c 'import demo; print(demo.__file__)'; ls /testbed /opt/build; gcc --version"
)

Climb = Callable[..., tuple[Installed, str]]


@pytest.fixture
def climb(workshop: Workshop, tmp_path: Path) -> Climb:
    """Climb with the declared recipe and one session that looks around; return what the session saw."""
    measure = workshop.settings.measure
    budgets = {**measure.ladder.budgets, "declared": Budget(attempts=1, seconds=900.0)}
    ladder = measure.ladder.model_copy(update={"order": ("declared", "agent"), "budgets": budgets})
    agent = measure.model.agent.model_copy(update={"attempts": 1})
    use = measure.model.model_copy(update={"agent": agent, "enough": 1.0})
    changed = measure.model_copy(update={"ladder": ladder, "model": use})
    shop = replace(workshop, settings=workshop.settings.model_copy(update={"measure": changed}))

    def run(files, **recipe) -> tuple[Installed, str]:
        known, model = Known(), ScriptedModel([ran(LOOK), gave_up()])
        desk = Desk({"m": model}, {"m": Price(input=0, output=0)}, None, shop.blobs, shop.settings.endpoint)
        found = install(shop, known.memo(), case_of(files, tmp_path, TESTS, **recipe), models=desk)
        session = next(fact for fact in known.facts if fact.key.kind == "install.agent")
        return found, _output(shop, session)

    return run


def _output(shop: Workshop, session: Fact) -> str:
    events = [json.loads(line) for line in shop.blobs.get_text(session.logs["transcript"]).splitlines()]
    return next(event["output"] for event in events if event["event"] == "result")


def outcomes(found: Installed) -> list[str]:
    return [attempt.outcome for attempt in found.attempts]


def test_the_ground_where_there_is_no_environment(climb: Climb) -> None:
    found, told = climb(PROJECT, requirements=("pytest==99",))
    assert outcomes(found)[0] == "lock-failed"
    assert "No module named pytest" in told
    assert "No module named 'demo'" in told
    assert "pyproject.toml" in told
    assert "gcc (" in told


def test_the_environment_where_the_project_could_not_be_installed(climb: Climb) -> None:
    found, told = climb({**PROJECT, "backend.py": "raise SystemExit('broken')\n"})
    assert outcomes(found)[0] == "project-install-failed"
    assert "pytest 7" in told
    assert "No module named 'demo'" in told
    assert "gcc (" in told


def test_the_project_where_its_tests_cannot_be_collected(climb: Climb) -> None:
    found, told = climb(PROJECT)
    assert outcomes(found)[0] not in ("ok", "project-install-failed")
    assert "pytest 7" in told
    assert "/testbed/src/demo/__init__.py" in told


def test_the_project_that_is_built_anew_after_changes(climb: Climb) -> None:
    _, told = climb(NORMAL_ONLY)
    assert "site-packages/demo/__init__.py" in told
    assert "reinstall" in told


def test_the_ground_without_a_debian_package_that_does_not_exist(climb: Climb) -> None:
    found, told = climb(PROJECT, system_packages=("no-such-package-of-debian",))
    assert outcomes(found)[0] == "system-package-unknown"
    assert "gcc (" in told
