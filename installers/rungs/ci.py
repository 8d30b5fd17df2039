"""The second rung: what the project's own CI installs and sets for its tests beside what is declared.

Pure: it reads files of the tree, never the network. The best job on top of the declared recipe comes first, then the
next one that makes a difference, then another Python that CI names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from installers.bounds import bounds
from installers.debian_names import needless
from installers.interface import Attempt, Edit, Help, Proposal, Question
from installers.memory import fingerprint
from installers.pythons import Python, admits
from installers.requirements import Line, holds, loosen_pytest, merge, name_of
from installers.rungs.ci_env import needed_variables
from installers.rungs.ci_jobs import Needs, Project, unusual
from installers.target import added_by_change, with_added
from miner.core.reasons import Reason
from miner.core.records import Recipe
from miner.project.model import Declared

_NAME = "ci"
_MOST_JOBS = 8
_MOST_NAMES = 12
_DECLARED = "declared"
# After these the declared recipe itself stands in the way: what CI installs is tried without it.
_TOO_MUCH = frozenset({Reason.LOCK_FAILED.value, Reason.BUILD_FAILED.value, Reason.BUILD_TIMEOUT.value})


def ci(question: Question, help_: Help) -> Proposal | None:
    """Return the recipe of the next CI job that differs from all that was tried; None where there is none."""
    tried = {fingerprint(question.declared), *(fingerprint(attempt.recipe) for attempt in question.past)}
    for proposal in _proposals(question, help_.pythons):
        if fingerprint(proposal.recipe) not in tried:
            return proposal
    return None


def _proposals(question: Question, pythons: Sequence[Python]) -> Iterator[Proposal]:
    """Yield what CI does in the order in which it is likely to help.

    Ordinary jobs that install something more on the same Python; the best job on another Python; all other jobs; and
    last what differs by variables only.
    """
    yield from _without_unknown_packages(question.past)
    trial = _Trial(question, pythons)
    every = trial.needs()
    here = [needs for needs in every if trial.python(needs) == question.declared.python and not unusual(needs.job)]
    best, others = every[:1], [needs for needs in every[1:] if needs not in here]
    rest = (proposal for proposal in trial.of(others) if not _is_the_same(proposal.recipe, question.declared, "python"))
    found = [*trial.of(here), *trial.of(best), *trial.elsewhere(best), *rest]
    yield from sorted(found, key=lambda proposal: _is_the_same(proposal.recipe, question.declared))


def _is_the_same(recipe: Recipe, declared: Recipe, *beside: str) -> bool:
    """Whether a recipe installs nothing else, so that its variables, and those fields, alone make the difference."""
    update = {name: getattr(declared, name) for name in ("env", *beside)}
    return fingerprint(recipe.model_copy(update=update)) == fingerprint(declared)


class _Trial:
    """The jobs of one question, as recipes."""

    def __init__(self, question: Question, pythons: Sequence[Python]) -> None:
        self._question = question
        self._declared = question.declared
        self._pythons = pythons
        self._project = Project(question.tree, question.declared.project_dir)
        self._too_much = any(attempt.outcome in _TOO_MUCH for attempt in question.past)

    def needs(self) -> list[Needs]:
        """Return what the best jobs need, those left out that run on no Python that there is."""
        jobs = self._project.jobs(self._declared.python)
        found = (self._project.needs(job) for job in jobs)
        return [needs for needs in found if not needs.job.pythons or self.python(needs)][:_MOST_JOBS]

    def of(self, every: Iterable[Needs]) -> Iterator[Proposal]:
        """Yield the recipes of jobs; where the declared one is too much, without what else is declared first."""
        for needs in every:
            python = self.python(needs) or self._declared.python
            if self._too_much:
                yield _proposal(_alone(self._declared, self._project), needs, python, self._project, alone=True)
            yield _proposal(self._declared, needs, python, self._project)

    def elsewhere(self, every: Iterable[Needs]) -> Iterator[Proposal]:
        """Yield the recipes of jobs on the newest Python that they name beside the chosen one."""
        for needs in every:
            others = [version for version in self._alive(needs) if version != self.python(needs)]
            if others:
                yield _proposal(self._declared, needs, others[0], self._project)

    def python(self, needs: Needs) -> str | None:
        """Return the Python of the declared recipe where the job runs on it too, else the newest of the job's own."""
        if not needs.job.pythons or self._declared.python in needs.job.pythons:
            return self._declared.python
        return next(iter(self._alive(needs)), None)

    def _alive(self, needs: Needs) -> list[str]:
        """Return the Pythons of a job that there are, had been released then, and fit the project, the newest first."""
        day = self._question.created_at.date()
        asked = self._project.facts.requires_python
        known = [one for one in self._pythons if one.version in needs.job.pythons and one.released <= day]
        return sorted((one.version for one in known if admits(asked, one.version)), key=Version, reverse=True)


def _without_unknown_packages(past: Sequence[Attempt]) -> Iterator[Proposal]:
    """Names of Debian packages are Ubuntu's and of their day: where one is unknown, the same recipe goes without it."""
    last = past[-1] if past else None
    if last is None or last.rung != _NAME or last.outcome != Reason.SYSTEM_PACKAGE_UNKNOWN.value:
        return
    unknown = [
        name
        for name in last.recipe.system_packages
        if re.search(rf"(?<![\w.+-]){re.escape(name)}(?![\w+-])", last.detail)
    ]
    kept = tuple(name for name in last.recipe.system_packages if name not in unknown) if unknown else ()
    recipe = last.recipe.model_copy(update={"system_packages": kept})
    why = (
        f"Debian has no {', '.join(unknown)}"
        if unknown
        else "Debian does not have all of the packages that CI installs"
    )
    yield Proposal(recipe=recipe, edits=(*last.edits, Edit(rule=_NAME, why=why)))


def _alone(declared: Recipe, project: Project) -> Recipe:
    """Return the declared recipe with nothing but what the project needs to run, and what the change itself adds."""
    lines = merge(project.runtime(), (), [])
    base = declared.model_copy(update={"requirements": tuple(line.requirement for line in lines), "constraints": ()})
    return with_added(base, added_by_change(declared))


def _proposal(base: Recipe, needs: Needs, python: str, project: Project, *, alone: bool = False) -> Proposal:
    recipe = _with_needs(base, needs, python, project)
    return Proposal(recipe=recipe, edits=(Edit(rule=_NAME, why=_why(base, recipe, needs, alone=alone)),))


def _with_needs(base: Recipe, needs: Needs, python: str, project: Project) -> Recipe:
    """Return a recipe with what a job needs; where both bound one distribution in vain, the recipe's own bound wins."""
    notes = list(base.notes)
    own = [Declared(text=text, source=_DECLARED) for text in base.requirements]
    lines = loosen_pytest(merge(own, list(_news(base, needs.requirements, python)), notes), python, notes)
    if (
        not any(re.match(r"pytest(?![\w.-])", line.requirement, re.I) for line in lines)
        and project.facts.name != "pytest"
    ):
        lines = (*lines, Line(requirement="pytest", sources=("always: what runs the tests",)))
    declared = [Declared(text=text, source=_DECLARED) for text in base.constraints]
    builds = [Declared(text=text, source=needs.job.source) for text in needs.build_constraints]
    builds = [*(Declared(text=text, source=_DECLARED) for text in base.build_constraints), *builds]
    name = project.facts.name
    return base.model_copy(
        update={
            "python": python,
            "requirements": tuple(line.requirement for line in lines),
            "constraints": bounds([*declared, *needs.job.constraints], lines, python, name, notes),
            "build_constraints": bounds(builds, (), python, name, notes),
            "system_packages": tuple(dict.fromkeys((*base.system_packages, *_packages(needs)))),
            "env": _env(base, needs, project),
            "sources": (*base.sources, *_sources(base, lines, needs, python)),
            "notes": tuple(dict.fromkeys((*notes, *needs.notes, *needs.job.notes, *_services(needs)))),
        }
    )


def _news(base: Recipe, wanted: Iterable[Declared], python: str) -> Iterator[Declared]:
    """Yield what a recipe does not ask for already, without markers: those that do not hold are left out."""
    known = [requirement for text in base.requirements if holds(requirement := Requirement(text), python)]
    for item in wanted:
        if not name_of(item.text):
            yield item
            continue
        requirement = Requirement(item.text)
        if not holds(requirement, python):
            continue
        requirement.marker = None
        if not any(_covers(one, requirement) for one in known):
            yield item.model_copy(update={"text": str(requirement)})


def _covers(known: Requirement, other: Requirement) -> bool:
    """Whether one requirement asks for no less than another."""
    same = canonicalize_name(known.name) == canonicalize_name(other.name) and other.extras <= known.extras
    return same and set(other.specifier) <= set(known.specifier)


def _env(base: Recipe, needs: Needs, project: Project) -> dict[str, str]:
    """Return the variables of both; those that the recipe has win, and paths are joined."""
    tree = project.tree
    folders = {
        "/".join(parts[:length])
        for path in tree.paths
        for parts in [path.split("/")]
        for length in range(1, len(parts))
    }
    found = needed_variables(needs.job.env, base.distribution, folders)
    paths = [base.env.get("PYTHONPATH", ""), needs.python_path, found.get("PYTHONPATH", "")]
    joined = ":".join(dict.fromkeys(part for path in paths for part in path.split(":") if part))
    return {**found, **base.env, **({"PYTHONPATH": joined} if joined else {})}


def _packages(needs: Needs) -> list[str]:
    return [name for name in needs.job.system_packages if needless(name) is None]


def _services(needs: Needs) -> list[str]:
    return [f"{needs.job.source}: {service} runs beside it" for service in needs.job.services]


def _sources(base: Recipe, lines: Iterable[Line], needs: Needs, python: str) -> tuple[str, ...]:
    known = set(base.requirements)
    found = [f"{line.requirement} <- {', '.join(line.sources)}" for line in lines if line.requirement not in known]
    packages = [name for name in _packages(needs) if name not in base.system_packages]
    found += [f"Debian: {name} <- {needs.job.source}" for name in packages]
    return (*found, *((f"python {python} <- {needs.job.source}",) if python != base.python else ()))


def _why(base: Recipe, recipe: Recipe, needs: Needs, *, alone: bool) -> str:
    """Say in one sentence what a job brings."""
    more = [text for text in recipe.requirements if text not in base.requirements]
    parts = [f"installs {_listed(more)}"] if more else []
    packages = [name for name in recipe.system_packages if name not in base.system_packages]
    parts += [f"has the Debian packages {_listed(packages)}"] if packages else []
    new_bounds = len([text for text in recipe.constraints if text not in base.constraints])
    parts += [f"bounds {new_bounds} versions"] if new_bounds else []
    variables = [name for name in recipe.env if name not in base.env]
    parts += [f"sets {_listed(variables)}"] if variables else []
    parts += [f"runs on Python {recipe.python}"] if recipe.python != base.python else []
    rest = ", without what else is declared" if alone else ""
    return f"{needs.job.source} {', '.join(parts) or 'adds nothing'}{rest}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"
