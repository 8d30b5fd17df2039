"""What a change adds to the dependencies is installed; what the base declares stays the base's."""

from __future__ import annotations

from installers.interface import Refusal
from installers.target import with_target
from miner.core.reasons import Reason
from miner.core.records import Recipe


def recipe(*requirements: str, name: str = "demo") -> Recipe:
    return Recipe(python="3.11", build_backend="flit_core.buildapi", distribution=name, requirements=requirements)


def test_a_test_dependency_that_only_the_target_declares_is_added_and_its_source_said() -> None:
    joined = with_target(recipe("pytest"), recipe("pytest", "pretend>=1"))
    assert joined.requirements == ("pytest", "pretend>=1")
    assert joined.sources == ("pretend>=1 <- the change itself",)


def test_what_the_base_declares_keeps_the_base_s_bounds() -> None:
    assert with_target(recipe("numpy<2", "pytest"), recipe("NumPy>=2", "pytest")) == recipe("numpy<2", "pytest")


def test_what_the_target_no_longer_needs_stays() -> None:
    assert with_target(recipe("six", "pytest"), recipe("pytest")) == recipe("six", "pytest")


def test_the_project_itself_is_not_added() -> None:
    assert with_target(recipe("pytest"), recipe("pytest", "Demo[extra]")) == recipe("pytest")


def test_a_target_that_cannot_be_described_adds_nothing() -> None:
    assert with_target(recipe("pytest"), Refusal(reason=Reason.NO_PYTHON, detail="")) == recipe("pytest")
