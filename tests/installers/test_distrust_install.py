"""What an installation of the project left behind, where a model wrote the recipe: one planted layer for each way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from test_distrust_integrity import NAMESPACE, SITE, Env, fact, honest

from installers.distrust.after_install import INSTALLATION, installation, overlaid
from installers.distrust.integrity import asked_in
from installers.layer import store
from miner.core.blobs import BlobStore
from miner.core.records import Layer, Recipe
from miner.sandbox.image_archive import TarEntry

DECLARED = Recipe(
    python="3.11",
    requirements=("library", "pytest"),
    build_requirements=("setuptools",),
    build_backend="setuptools.build_meta",
    distribution="Demo_Project",
    top_level=("demo",),
)
TREE = {"setup.py": "", "demo/__init__.py": "", "tests/conftest.py": "", "src/demo.pth": "import demo\n"}
PLUGIN = "[pytest11]\ndemo = demo.plugin\n"


@dataclass
class Made:
    """What an installation made of an honest environment."""

    own: Env = field(default_factory=Env)
    tools: Env = field(default_factory=lambda: Env().install("setuptools", "70.0", {"setuptools/__init__.py": ""}))
    tree: dict[str, str] = field(default_factory=lambda: dict(TREE))
    gone: tuple[str, ...] = ()
    links: dict[str, str] = field(default_factory=dict)

    def built(self, path: str, text: str = "") -> Made:
        """Write a file into the repository."""
        self.own.files[f"testbed/{path}"] = text.encode()
        return self

    def plant(self, path: str, text: str = "") -> Made:
        """Write a file into the environment, beside what the installer wrote."""
        self.own.plant(path, text)
        return self

    def has(self, **files: str) -> Made:
        """Give the repository files."""
        self.tree |= {name.replace("_py", ".py"): text for name, text in files.items()}
        return self


def editable(entry_points: str = "") -> Made:
    made = Made()
    finder = "__editable___demo_project_1_finder"
    files = {
        f"{finder}.py": "MAPPING = {}\n",
        "__editable__.demo_project-1.pth": f"import {finder}; {finder}.install()",
    }
    made.own.install("Demo-Project", "1", {**files, "../../../bin/demo": "#!/bin/sh\n"}, entry_points=entry_points)
    return (
        made.built("demo_project.egg-info/PKG-INFO", "Name: demo-project\n").built("demo/_speed.so").built("demo/_v.py")
    )


def normal() -> Made:
    made = Made()
    made.own.install("demo.project", "1", {"demo/__init__.py": "", "demo/conftest.py": "", "demo/_speed.so": ""})
    return made


def develop() -> Made:
    made = Made().plant("easy-install.pth", "/testbed/src\n").plant("Demo-Project.egg-link", "/testbed/src\n../")
    made.plant(
        "Demo_Project-nspkg.pth",
        NAMESPACE.format(name="demo").replace("sys._getframe(1).f_locals['sitedir']", "'/testbed'"),
    )
    made.plant("opt/env/bin/demo", "#!/opt/env/bin/python\n# EASY-INSTALL-ENTRY-SCRIPT\n").plant(
        "demo.pth", "import demo\n"
    )
    return made.built("src/Demo_Project.egg-info/entry_points.txt", "[console_scripts]\ndemo = demo:main\n")


@pytest.fixture
def look(tmp_path: Path) -> Callable[..., list[tuple[str, str]]]:
    blobs = BlobStore(str(tmp_path / "blobs"))

    def kept(entries: Sequence[TarEntry]) -> Layer:
        return store(entries, blobs, tmp_path)

    def look(made: Made, *, model: Recipe = DECLARED, known: Sequence[str] = ()) -> list[tuple[str, str]]:
        env = honest()
        tree = [
            TarEntry(f"testbed/{path}", "file", content=text.encode(), uid=1000) for path, text in made.tree.items()
        ]
        own = [one for one in made.own.entries() if one.kind == "file"]
        own += [TarEntry(path, "symlink", link=to, uid=1000) for path, to in made.links.items()]
        own += [TarEntry(path, "whiteout", uid=1000) for path in made.gone]
        tools = [
            TarEntry(
                one.path.replace("opt/env", "opt/build", 1), one.kind, link=one.link, content=one.content, uid=1000
            )
            for one in made.tools.entries()
        ]
        steps = [
            fact("install.lock", {"packages": made.tools.packages}),
            fact("install.env", {"layer": kept(tools).model_dump()}),
            fact("install.project", {"layers": [kept(tree).model_dump(), kept(own).model_dump()]}),
        ]
        built = fact("install.env", {"layer": kept(env.entries()).model_dump()})
        locked = fact("install.lock", {"packages": env.packages})
        found = installation(blobs, tmp_path, (model, [DECLARED]), asked_in(known), (locked, built, steps))
        return [(one.mechanism, one.detail) for one in found]

    return look


HONEST = {"editable": editable, "normal": normal, "develop": develop}
PLANTED: dict[str, list[Callable[[], Made]]] = {
    "install-changed-others": [
        lambda: editable().plant("_pytest/main.py", "run = 2\n"),
        lambda: editable().plant("library/__init__.py", "evil"),
        lambda: editable().plant("library-1.0.dist-info/METADATA", "evil"),
        lambda: editable().plant("opt/env/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n\n"),
        lambda: editable().plant("opt/env/bin/python", "#!/bin/sh\n"),
        lambda: editable().plant("opt/env/bin/python3.12", "#!/bin/sh\n"),
        lambda: editable().plant("opt/env/bin/pytest", "#!/bin/sh\n"),
        lambda: editable().plant("opt/env/bin/tool", "\x7fELF"),
        lambda: editable().plant("evil.py"),
        lambda: editable().plant("evil/__init__.py"),
        lambda: editable().plant("library/evil.py"),
        lambda: editable().plant("sitecustomize.py"),
        lambda: editable().plant("evil.pth", "/testbed\n"),
        lambda: editable().plant("__editable___demo_project_1_finder.py", "evil"),
        lambda: Made(gone=(f"{SITE}/library/__init__.py",)),
        lambda: Made(links={f"{SITE}/_pytest": "/testbed/evil"}),
        lambda: Made(links={f"{SITE}/evil": "/testbed/evil"}),
        lambda: Made(own=Env().install("demo-project", "1", {"_pytest/main.py": "run = 2\n"})),
        lambda: Made(own=Env().install("other", "1", {"other.py": ""})),
    ],
    "built-settings": [
        lambda: editable().built("conftest.py"),
        lambda: editable().built("tests/sub/conftest.py"),
        lambda: editable().built("pytest.ini"),
        lambda: editable().built(".pytest.toml"),
        lambda: editable().built("src/sitecustomize.py"),
        lambda: editable().built("evil.pth"),
        lambda: editable().built("json.py"),
        lambda: editable().built("src/pluggy/__init__.py"),
    ],
    "built-plugin": [
        lambda: editable(PLUGIN),
        lambda: editable("[hypothesis]\nx = evil\n"),
        lambda: editable(PLUGIN).has(setup_py="entry_points={'pytest11': ['other = demo.other']}"),
        lambda: editable().built("src/evil.egg-info/entry_points.txt", PLUGIN),
        lambda: editable().built("demo_project.egg-info/entry_points.txt", PLUGIN),
    ],
    "path-lines": [
        lambda: Made(own=Env().install("demo-project", "1", {"demo.pth": "import evil\n"})),
        lambda: Made(own=Env().install("demo-project", "1", {"demo.pth": "/opt/evil\n"})),
        lambda: Made().plant("easy-install.pth", "/testbed/../opt/evil\n"),
        lambda: Made().plant("easy-install.pth", "import _evil_finder\n"),
    ],
    "start-up-module": [lambda: Made(own=Env().install("demo-project", "1", {"sitecustomize.py": "evil"}))],
    "runner-foreign": [lambda: Made(own=Env().install("demo-project", "1", {"py.py": "evil"}))],
    "plugin-taken": [lambda: editable().plant("pytest_mock/evil.py")],
    "not-of-the-lock": [lambda: editable().plant("evil-1.dist-info/entry_points.txt", PLUGIN)],
}
CASES = [
    pytest.param(name, make, id=f"{name}-{number}")
    for name, made in PLANTED.items()
    for number, make in enumerate(made)
]
Looked = Callable[..., list[tuple[str, str]]]


@pytest.mark.parametrize(("mechanism", "make"), CASES)
def test_planted(mechanism: str, make: Callable[[], Made], look: Looked) -> None:
    assert mechanism in {name for name, _ in look(make())}


def test_every_row_of_the_table_is_planted() -> None:
    assert set(INSTALLATION) - {"build-plugin"} <= set(PLANTED)


@pytest.mark.parametrize("make", HONEST.values(), ids=HONEST)
def test_honest_installation_raises_no_alarm(make: Callable[[], Made], look: Looked) -> None:
    assert look(make()) == []


def test_plug_in_that_the_tree_names_is_the_projects(look: Looked) -> None:
    made = editable(PLUGIN).has(setup_py="setup(entry_points={'pytest11': ['demo = demo.plugin']})")
    assert look(made) == []


def test_file_for_pythons_start_that_the_tree_has_is_the_projects(look: Looked) -> None:
    assert look(Made(own=Env().install("demo-project", "1", {"demo.pth": "import demo\n"}))) == []


def test_project_that_is_not_installed_leaves_nothing(tmp_path: Path) -> None:
    steps = [fact("install.project", {"layers": []})]
    built = fact("install.env", {"layer": {}})
    facts = fact("install.lock", {"packages": {}}), built, steps
    assert installation(BlobStore(str(tmp_path)), tmp_path, (DECLARED, [DECLARED]), (), facts) == ()


def with_tools(*names: str, **more: str) -> Made:
    made = Made()
    for name in names:
        made.tools.install(name, "1", {f"{name}.py": ""}, entry_points="[distutils.commands]\nbuild = evil:build\n")
    for path, text in more.items():
        made.tools.plant(path.replace("__", "/").replace("_py", ".py").replace("_pth", ".pth"), text)
    return made


def test_what_only_the_model_builds_with_may_not_run_in_every_build(look: Looked) -> None:
    model = DECLARED.model_copy(update={"build_requirements": ("setuptools", "evil")})
    assert [name for name, _ in look(with_tools("evil"), model=model)] == ["build-plugin"]
    assert look(with_tools("evil")) == []  # its back end asks for it
    known = DECLARED.model_copy(update={"build_requirements": ("setuptools", "wheel")})
    assert look(with_tools("wheel"), model=known) == []


@pytest.mark.parametrize(
    ("mechanism", "files"),
    [
        ("start-up-module", {"sitecustomize_py": ""}),
        ("path-lines", {"evil_pth": "import evil\n"}),
        ("runner-patched", {"setuptools__evil_py": "", "setuptools-70.0.dist-info__METADATA": "evil"}),
    ],
)
def test_what_the_project_is_built_with_is_looked_at(mechanism: str, files: dict[str, str], look: Looked) -> None:
    assert mechanism in {name for name, _ in look(with_tools(**files))}


def test_program_in_front_of_a_compiler_is_void(look: Looked) -> None:
    made = Made()
    made.tools.plant("opt/env/bin/gcc", "#!/bin/sh\n")
    assert [name for name, _ in look(made)] == ["program-replaced"]


def test_layers_lie_on_top_of_each_other() -> None:
    def tree(*paths: str) -> dict[str, TarEntry]:
        return {path: TarEntry(path, "file") for path in paths}

    below = tree("a/b", "a/c/d", "e/f", "g")
    above = {**tree("a/.wh.c", "e", "h"), "g": TarEntry("g", "symlink")}
    assert sorted(overlaid(below, above)) == ["a/b", "e", "g", "h"]
