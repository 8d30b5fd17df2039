"""One job while it is read: the commands that it runs become what it installs, sets and tests.

What a command starts (a script, a Makefile, tox, nox) is followed where it lies in the tree, by the module that the
table of followers names.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from miner.project.ci.groups import all_of, default_groups
from miner.project.ci.tree import Tree
from miner.project.ci.versions import NO_CPYTHON, newest, python_versions
from miner.project.commands import Meaning, meaning
from miner.project.conda import read_conda
from miner.project.installs import Installs, split_extras
from miner.project.model import Declared, Job
from miner.project.requirements import read_constraints, read_requirements_file
from miner.project.shell import ROOT, Budget, Command, Shell
from miner.project.shell_words import Variables

_MAX_COMMANDS = 300
_DEEPEST = 8
_ROOTS = (
    "GITHUB_WORKSPACE",
    "TRAVIS_BUILD_DIR",
    "CI_PROJECT_DIR",
    "CIRCLE_WORKING_DIRECTORY",
    "BUILD_SOURCESDIRECTORY",
    "SYSTEM_DEFAULTWORKINGDIRECTORY",
    "APPVEYOR_BUILD_FOLDER",
)
_SECRET = re.compile(
    r"token|secret|passw|passwd|credential|api_?key|access_?key|private|signing|webhook|_key\Z|_pat\Z", re.I
)
_DUMMY = re.compile(
    r"[a-z_]*(?:test|dummy|fake|foo|bar|mock|example|key|secret|postgres|root|admin|guest|none)[a-z_]*\Z"
)
_OF_RUNNER = re.compile(
    r"(?:CI|TRAVIS|CIRCLECI|TF_BUILD|APPVEYOR|PWD|OLDPWD|PATH|HOME|(?:GITHUB|RUNNER|TRAVIS|CIRCLE|CI|APPVEYOR|AGENT|SYSTEM|GITLAB|BUILD_SOURCES)[A-Z]*_?\w*)\Z"
)
_OWN = re.compile(r"(?:-e\s*)?(?:\.|\./|file:\.|file:///?\.?)(?:\[[\w\s.,-]+\])?(?:\s*;.*)?\Z")
_INSIDE = re.compile(r"\.{0,2}/|\.\.")


@dataclass
class Reading:
    """What was read of one job so far; it answers what a shell script asks about the tree.

    Attributes:
        source: file and job.
        python: the version that runs the job, where that is known.
        foreign: it runs on another implementation than CPython.
        variables: set for the job, None where a value is not known; those that its steps add too.
    """

    tree: Tree
    source: str
    python: str | None = None
    variables: dict[str, str | None] = field(default_factory=dict)
    budget: Budget = field(init=False)
    tests: bool = False
    foreign: bool = False
    notes: list[str] = field(default_factory=list)
    pythons: dict[str, None] = field(default_factory=dict)
    services: dict[str, None] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    _found: dict[str, dict[Declared, None]] = field(default_factory=lambda: {"requirements": {}, "constraints": {}})
    _names: dict[str, dict[str, None]] = field(default_factory=lambda: {"extras": {}, "groups": {}, "system": {}})
    _env: dict[str, str] = field(default_factory=dict)
    _active: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take a part of what may be read of the tree."""
        self.budget = Budget(whole=self.tree.whole)

    def job(self) -> Job:
        """Return the record of what was read."""
        return Job(
            source=self.source,
            pythons=tuple(self.pythons),
            system_packages=tuple(self._names["system"]),
            requirements=tuple(self._found["requirements"]),
            constraints=tuple(self._found["constraints"]),
            extras=tuple(self._names["extras"]),
            groups=tuple(self._names["groups"]),
            env=dict(sorted(self._env.items())),
            commands=tuple(self.commands),
            services=tuple(self.services),
            tests=self.tests,
            notes=tuple(dict.fromkeys(self.notes)),
        )

    # what the formats use -------------------------------------------------------------------------------------------

    def shell(self, folder: str = "", variables: Variables | None = None) -> Shell:
        """Return a shell in a folder of the tree, with the variables of the job and of a step."""
        held = {**self.variables, **(variables or {})}
        place = posixpath.normpath(posixpath.join(ROOT, folder))
        held |= {"PWD": place, **dict.fromkeys(_ROOTS, ROOT)}
        return Shell(self, held, set(held), {}, place, notes=self.notes, budget=self.budget)

    def step(self, text: str, folder: str = "", variables: Variables | None = None, *, guarded: bool = False) -> None:
        """Read a step that has a shell of its own; what it sets for later steps is set for the job."""
        shell = self.shell(folder, variables)
        shell.run(text, guarded=guarded)
        self.variables.update(shell.later)

    def set_python(self, text: str) -> None:
        """Take the version that a step or an image names; the last one of several is what `python` means after it."""
        versions, note = python_versions(text)
        if note:
            self.note(note)
        self.foreign = not versions and bool(NO_CPYTHON.search(text))
        self.pythons.update(dict.fromkeys(versions))
        self.python = newest(versions) or self.python

    def note(self, text: str) -> None:
        """Note what was left out."""
        if text not in self.notes:
            self.notes.append(text)

    def once(self, key: str) -> bool:
        """Whether something may be followed now: it is not being followed already, and not too much is."""
        return key not in self._active and len(self._active) < _DEEPEST

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Read an environment of its own (tox, nox): what it installs counts, where it tests."""
        found, extras, groups, tests = self._found, self._names["extras"], self._names["groups"], self.tests
        self._found, self.tests = {"requirements": {}, "constraints": {}}, False
        self._names |= {"extras": {}, "groups": {}}
        try:
            yield
        finally:
            if not self.tests:
                self._found, self.tests = found, tests
                self._names |= {"extras": extras, "groups": groups}
            elif tests:
                self._found = {key: {**found[key], **held} for key, held in self._found.items()}
                self._names |= {
                    "extras": {**extras, **self._names["extras"]},
                    "groups": {**groups, **self._names["groups"]},
                }

    @contextmanager
    def entering(self, key: str) -> Iterator[None]:
        """Mark something as being followed."""
        self._active.append(key)
        try:
            yield
        finally:
            self._active.pop()

    # what a shell asks ----------------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool | None:
        """Whether a path is in the tree; what is outside of it, or not plain, is not known."""
        inside = self.tree.inside(path)
        if inside is None or re.search(r"[*?$]", inside):
            return None
        return inside in self.tree.paths or inside in self.tree.folders

    def script(self, path: str) -> str | None:
        """Return the text of a shell script of the tree."""
        inside = self.tree.inside(path)
        text = self.tree.text(inside, self.notes) if inside is not None else None
        if text is None or re.match(r"#!.*(?:python|ruby|perl|node|fish|pwsh)", text):
            return None
        return text

    def command(self, command: Command, shell: Shell) -> None:
        """Take what a command installs and runs, and follow what it starts."""
        found = meaning(command.words)
        if not command.guarded and len(self.commands) < _MAX_COMMANDS:
            self.commands.append(command.text)
        if command.guarded and found.installs:
            self.note(f"{command.text!r} is left out: it stands under a condition that is not known")
        elif not command.guarded:
            self.install(found.installs, command.folder, self.source)
            if found.installs:
                bounds = bounds_of({**shell.variables, **command.variables, **found.variables})
                self.install(Installs(constraints=bounds), command.folder, self.source)
        if found.tool:
            self._follow(found, command, shell)

    def _follow(self, found: Meaning, command: Command, shell: Shell) -> None:
        """Read what a command starts; where that is not in the tree, its name says whether it runs tests."""
        follow = self.tree.followers.get(found.tool)
        inner = shell.child()
        for name, held in {**command.variables, **found.variables}.items():
            inner.variables[name] = held
            inner.exported.add(name)
        followed = follow is not None and follow(self, found, inner, command.guarded)
        if found.tests and not followed:
            self.tests = True
            self.set_env(inner.environment())

    # what is collected ----------------------------------------------------------------------------------------------

    def set_env(self, variables: Variables) -> None:
        """Take the variables that a test command sees, without secrets and what is not known."""
        for name, held in variables.items():
            if _OF_RUNNER.match(name):
                continue
            if _SECRET.search(name) and not (held and _DUMMY.match(held)):
                self.note(f"{name} may be a secret and is left out")
            elif held is not None and ROOT not in held and "${{" not in held:
                self._env[name] = held

    def install(self, found: Installs, folder: str, where: str) -> None:
        """Take what a command in a folder (an absolute path) asks for."""
        for note in found.notes:
            self.note(note)
        for text in found.requirements:
            self._require(Declared(text=text, source=where))
        for name in found.files:
            self._file(name, folder, constraint=False)
        for name in found.constraints:
            self._file(name, folder, constraint=True)
        for text in found.projects:
            self.project(text, folder)
        self._names["extras"].update(dict.fromkeys(found.extras))
        self._names["groups"].update(dict.fromkeys(name for name in found.groups if name not in found.without))
        self._names["system"].update(dict.fromkeys(found.system_packages))
        project = self.tree.folder
        for tool in found.defaults:
            self._names["groups"].update(dict.fromkeys(default_groups(self.tree.files, project, tool, found.without)))
        for kind in found.everything:
            self._names[kind].update(dict.fromkeys(all_of(self.tree.files, project, kind)))
        for version in found.pythons:
            self.set_python(version)
        self._conda(found, folder, where)

    def project(self, text: str, folder: str) -> None:
        """Take the extras of a local project where it is the project; another one of the tree stands as its path."""
        path, extras = split_extras(text.partition(";")[0].strip())
        place = self.tree.inside(posixpath.join(folder, path.removeprefix("file:") or "."))
        if place == self.tree.folder or place == "":
            self._names["extras"].update(dict.fromkeys(extras))
        elif place is None or place not in self.tree.folders:
            self.note(f"{text!r} is outside of the tree")
        else:
            named = f"./{place}" + (f"[{','.join(extras)}]" if extras else "")
            self._found["requirements"][Declared(text=named, source=self.source)] = None

    def _require(self, item: Declared) -> None:
        if _OWN.match(item.text):
            self.project(item.text.removeprefix("-e").strip(), ROOT)
        elif _INSIDE.match(item.text):
            self.project(item.text, posixpath.join(ROOT, posixpath.dirname(item.source)))
        else:
            self._found["requirements"][item] = None

    def _file(self, name: str, folder: str, *, constraint: bool) -> None:
        inside = self.tree.inside(posixpath.join(folder, name))
        matching = (
            sorted(path for path in self.tree.files if fnmatchcase(path, inside)) if inside and "*" in name else []
        )
        for path in matching or [inside or name]:
            if path not in self.tree.files:
                self.note(f"{name} is not in the tree, or is no file that is read")
            elif constraint:
                self._found["constraints"].update(dict.fromkeys(read_constraints(self.tree.files, path, self.notes)))
            else:
                read = read_requirements_file(self.tree.files, path, self.notes)
                for item in read.requirements:
                    self._require(item)
                self._found["constraints"].update(dict.fromkeys(read.constraints))

    def _conda(self, found: Installs, folder: str, where: str) -> None:
        """Take conda packages and environment files, as the reader of those translates them."""
        if not (found.conda or found.conda_files):
            return
        files = {**self.tree.files}
        paths = [self.tree.inside(posixpath.join(folder, name)) or name for name in found.conda_files]
        if found.conda:
            files["conda install"] = json.dumps({"dependencies": list(found.conda)}).encode()
            paths.append("conda install")
        for path in paths:
            if path not in files:
                self.note(f"{path} is not in the tree, or is no file that is read")
                continue
            read = read_conda(files, path)
            for group in read.groups:
                for item in group.requirements:
                    own = item.model_copy(update={"source": where}) if path == "conda install" else item
                    self._require(own)
                self._names["system"].update(dict.fromkeys(group.system_packages))
            if not self.python:
                for hint in read.pythons:
                    self.set_python(hint.version)


def bounds_of(variables: Variables) -> tuple[str, ...]:
    """Return the files that bound versions by way of a variable, as pip and uv take them."""
    named = (variables.get(name) for name in ("PIP_CONSTRAINT", "UV_CONSTRAINT"))
    return tuple(file for held in named if held for file in held.split())


def run_script(reading: Reading, found: Meaning, shell: Shell, guarded: bool) -> bool:
    """Follow a shell script of the tree, with its arguments."""
    target = found.arguments[0]
    path = shell.path(target.text)
    text = reading.script(path) if target.known else None
    if text is None or not reading.once(path):
        return False
    words: Sequence[str | None] = [word.text if word.known else None for word in found.arguments[1:]]
    shell.variables.update({str(number): word for number, word in enumerate(words[:9], 1)})
    shell.variables["@"] = " ".join(word or "" for word in words) if None not in words else None
    with reading.entering(path):
        shell.run(text, guarded=guarded)
    return True


def run_text(reading: Reading, found: Meaning, shell: Shell, guarded: bool) -> bool:  # noqa: ARG001 - a `Follower`
    """Follow `bash -c text`."""
    if not found.arguments[0].known:
        return False
    shell.run(found.arguments[0].text, guarded=guarded)
    return True
