"""Locks: the package index as it was, the project never from it, and faults of the network told from properties."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from bench import OWNER, Known, ground_of, lock_request

from installers.lock import exemptions, link_exemptions, lock, resolve
from installers.venv_layer import packages
from installers.workshop import Room, Workshop, as_of
from miner.core.errors import IndexUnreachable
from miner.core.hashing import sha256_bytes
from miner.core.settings import Cutoff
from miner.sandbox.network import egress

RULE = Cutoff(
    days_after=1.0,
    era_days=14,
    fallback_days=(),
    exempt=("Setup_Tools",),
    exempt_before="2022-08-15",
    exempt_until_python=("pytest",),
)
UNTIL = datetime(2022, 8, 15, tzinfo=UTC)
OLD, YOUNG = date(2018, 6, 27), date(2022, 10, 24)


def test_exempt_packages_are_taken_as_of_the_day_of_the_rule_before_it_only() -> None:
    assert exemptions(datetime(2022, 6, 1, tzinfo=UTC), RULE, OLD) == {"setup-tools": UNTIL}
    assert exemptions(UNTIL, RULE, OLD) == {}


def test_what_runs_the_tests_knows_an_interpreter_that_is_younger_than_the_change() -> None:
    month_after = datetime(2022, 11, 23, tzinfo=UTC)
    assert exemptions(datetime(2022, 9, 1, tzinfo=UTC), RULE, YOUNG) == {"pytest": month_after}
    assert exemptions(month_after, RULE, YOUNG) == {}


def test_only_what_links_a_project_to_its_tree_is_younger_than_the_change() -> None:
    rule = RULE.model_copy(update={"exempt": (), "exempt_links": ("setuptools",)})
    before = datetime(2020, 1, 1, tzinfo=UTC)
    assert exemptions(before, rule, OLD) == {}
    assert link_exemptions(before, rule) == {"setuptools": UNTIL}
    assert link_exemptions(UNTIL, rule) == {}


def test_what_a_recipe_exempts_is_taken_without_a_date() -> None:
    assert exemptions(UNTIL, RULE, OLD, ["Atomic_Writes"]) == {"atomic-writes": None}
    assert as_of(UNTIL, {"a": None})[2:] == ["--exclude-newer-package", "a=false"]


def test_dates_are_given_to_uv_in_utc() -> None:
    options = as_of(datetime.fromisoformat("2023-04-19T01:30:00.75+02:00"), {"b": UNTIL, "a": UNTIL})
    assert options == [
        *("--exclude-newer", "2023-04-18T23:30:00Z"),
        *("--exclude-newer-package", "a=2022-08-15T00:00:00Z"),
        *("--exclude-newer-package", "b=2022-08-15T00:00:00Z"),
    ]


def test_pins_of_a_lock() -> None:
    text = "A_b==1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:c==d\nc==2!1.0+x ; python_version < '3'\n"
    assert packages(text) == {"a-b": "1.0", "c": "2!1.0+x"}


@pytest.mark.docker
@pytest.mark.index
def test_lock_is_that_of_the_day(workshop: Workshop) -> None:
    seen = resolve(workshop, ground_of(workshop), lock_request(workshop, "pytest"))
    assert seen.outcome == "ok"
    assert seen.payload["packages"]["pytest"] == "7.3.1"
    assert "--hash=sha256:" in workshop.blobs.get_text(seen.blobs["lock"])
    assert not seen.payload["builds"]


@pytest.mark.docker
@pytest.mark.index
def test_project_that_pytest_depends_on_is_not_in_the_lock_and_its_version_counts(workshop: Workshop) -> None:
    request = lock_request(workshop, "pytest")
    facts = lock(workshop, Known().memo(), ground_of(workshop), request, name="Pluggy", version="0.11.0")
    assert [fact.outcome for fact in facts] == ["ok", "ok"]
    found = facts[-1].payload["packages"]
    assert "pluggy" not in found
    assert found["pytest"] != facts[0].payload["packages"]["pytest"]  # an older one, which takes this pluggy
    assert "py" in found


@pytest.mark.docker
@pytest.mark.index
def test_project_without_a_known_version_is_left_out_too(workshop: Workshop) -> None:
    found = lock(
        workshop, Known().memo(), ground_of(workshop), lock_request(workshop, "pytest"), name="pluggy", version=None
    )[-1]
    assert found.ok
    assert "pluggy" not in found.payload["packages"]


@pytest.mark.docker
@pytest.mark.index
def test_build_requirement_that_asks_for_the_project_gets_the_base_version(workshop: Workshop) -> None:
    request = lock_request(workshop, "hatchling", purpose="build")
    found = lock(workshop, Known().memo(), ground_of(workshop), request, name="pathspec", version="0.10.3")[-1]
    assert found.payload["packages"]["pathspec"] == "0.10.3"


@pytest.mark.docker
@pytest.mark.index
def test_requirements_without_a_solution_are_a_reason_with_uvs_explanation(workshop: Workshop) -> None:
    seen = resolve(workshop, ground_of(workshop), lock_request(workshop, "pytest==99"))
    assert (seen.outcome, seen.network) == ("lock-failed", True)
    assert "there is no version of pytest==99" in seen.payload["detail"]
    assert "unsatisfiable" in workshop.blobs.get_text(seen.logs["log"])


@pytest.mark.docker
@pytest.mark.index
def test_requirement_from_a_git_forge_is_refused_with_the_denied_host(workshop: Workshop) -> None:
    seen = resolve(workshop, ground_of(workshop), lock_request(workshop, "demo @ https://example.org/demo-1.0.tar.gz"))
    assert seen.outcome == "lock-failed"
    assert seen.payload["denied"] == ["example.org:443"]


@pytest.mark.docker
@pytest.mark.index
def test_package_with_an_sdist_only_is_locked_with_what_it_declares_for_its_build(workshop: Workshop) -> None:
    seen = resolve(workshop, ground_of(workshop), lock_request(workshop, "docopt==0.6.2", "iniconfig"))
    assert (seen.outcome, seen.payload["builds"]) == ("ok", True)
    (source,) = seen.payload["sources"]
    assert (source["name"], source["filename"]) == ("docopt", "docopt-0.6.2.tar.gz")
    assert source["requires"] == ["setuptools", "wheel"]
    assert source["sha256"] in workshop.blobs.get_text(seen.blobs["lock"])
    assert sha256_bytes(workshop.blobs.get(seen.blobs[source["filename"]])) == source["sha256"]


@pytest.mark.docker
@pytest.mark.index
def test_bounds_of_a_recipe_are_kept(workshop: Workshop) -> None:
    bounds = {"constraints": ("pluggy<1", "unused<1"), "overrides": ("iniconfig==1.1.1",)}
    seen = resolve(workshop, ground_of(workshop), lock_request(workshop, "pytest", **bounds))
    found = seen.payload["packages"]
    assert (found["pluggy"], found["iniconfig"], "unused" in found) == ("0.13.1", "1.1.1", False)


@pytest.mark.docker
@pytest.mark.index
def test_lock_that_finds_no_end_is_given_up(workshop: Workshop) -> None:
    slow = workshop.limits.model_copy(update={"cpus": 0.05})  # or it is done before anybody looks at the time
    measure = workshop.settings.measure.model_copy(update={"lock_timeout_s": 0.05, "install": slow})
    hasty = replace(workshop, settings=workshop.settings.model_copy(update={"measure": measure}))
    seen = resolve(hasty, ground_of(hasty), lock_request(workshop, "pytest"))
    assert (seen.outcome, seen.network) == ("build-timeout", True)


@pytest.mark.docker
@pytest.mark.index
def test_programs_of_a_box_see_the_index_of_the_day(workshop: Workshop) -> None:
    with workshop.box(workshop.base.image, network=True, cutoff=UNTIL) as box:
        said = box.run(["sh", "-c", "echo $UV_EXCLUDE_NEWER $PIP_UPLOADED_PRIOR_TO"], workdir="/").text
    assert said == "2022-08-15T00:00:00Z 2022-08-15T00:00:00Z\n"


def _no_room() -> Room:
    raise AssertionError("nothing is to be measured")


@pytest.mark.docker
def test_no_requirements_are_an_empty_lock_without_a_container(workshop: Workshop) -> None:
    nobody = replace(workshop, room=_no_room)
    seen = resolve(nobody, ground_of(nobody), lock_request(workshop))
    assert (seen.payload["packages"], workshop.blobs.get(seen.blobs["lock"])) == ({}, b"")


@pytest.mark.docker
def test_index_that_does_not_answer_is_a_fault_and_no_property_of_the_package(workshop: Workshop) -> None:
    dead = workshop.settings.index.model_copy(update={"url": "https://index.invalid/simple", "timeout_s": 2.0})
    settings = workshop.settings.model_copy(update={"index": dead})
    with egress(workshop.client, workshop.base.image, ["index.invalid"], settings, owner=OWNER) as way:
        bench = replace(workshop, settings=settings, room=lambda: Room(workshop.client, way))
        with pytest.raises(IndexUnreachable, match=r"index\.invalid:443"):
            resolve(bench, ground_of(bench), lock_request(workshop, "pytest"))
