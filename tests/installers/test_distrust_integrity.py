"""What of a built environment could change what runs the tests: one planted layer for each mechanism."""

from __future__ import annotations

import base64
import hashlib
import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uv

from installers.distrust.integrity import ALTERATIONS, alterations, asked_in
from installers.distrust.path_files import is_plain
from installers.layer import store
from miner.core.blobs import BlobStore
from miner.core.errors import BlobLost
from miner.core.records import Fact, FactKey
from miner.sandbox.image_archive import TarEntry

SITE = "opt/env/lib/python3.11/site-packages"
NAMESPACE = (
    "import sys, types, os;has_mfs = sys.version_info > (3, 5);"
    "p = os.path.join(sys._getframe(1).f_locals['sitedir'], *('{name}',));"
    "importlib = has_mfs and __import__('importlib.util');has_mfs and __import__('importlib.machinery');"
    "m = has_mfs and sys.modules.setdefault('{name}', importlib.util.module_from_spec("
    "importlib.machinery.PathFinder.find_spec('{name}', [os.path.dirname(p)])));"
    "m = m or sys.modules.setdefault('{name}', types.ModuleType('{name}'));"
    "mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)\n"
)
SHIM = "import os; enabled = True; enabled and __import__('_distutils_hack').add_shim(); \n"


@dataclass
class Env:
    """An environment in the making."""

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(
        default_factory=lambda: {"bin/python": "/usr/bin/python3.11", "bin/python3": "python"}
    )
    packages: dict[str, str] = field(default_factory=dict)

    def install(
        self,
        name: str,
        version: str,
        files: Mapping[str, str],
        *,
        plugin: str = "",
        requires: tuple[str, ...] = (),
        entry_points: str = "",
    ) -> Env:
        """Add a distribution as an installer does, with a RECORD that fits."""
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        needed = "".join(f"Requires-Dist: {one}\n" for one in requires)
        notes = {f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}\n"}
        if plugin:
            notes[f"{info}/entry_points.txt"] = f"[console_scripts]\nx = y:z\n\n[pytest11]\n{plugin} = {plugin}\n"
        if entry_points:
            notes[f"{info}/entry_points.txt"] = entry_points
        own = {path: text.encode() for path, text in {**files, **notes}.items()}
        rows = [f"{path},sha256={digest(data)},{len(data)}" for path, data in own.items()]
        self.files |= {posixpath.normpath(f"{SITE}/{path}"): data for path, data in own.items() if path[0] != "/"}
        self.files[f"{SITE}/{info}/RECORD"] = "".join(f"{row}\n" for row in [*rows, f"{info}/RECORD,,"]).encode()
        self.packages[name] = version
        return self

    def plant(self, path: str, text: str | bytes = "") -> Env:
        """Write a file that no RECORD names, or over one that is there."""
        place = path if path.startswith("opt/") else f"{SITE}/{path}"
        self.files[place] = text if isinstance(text, bytes) else text.encode()
        return self

    def entries(self) -> list[TarEntry]:
        made = [TarEntry(path, "file", content=data, uid=1000) for path, data in self.files.items()]
        links = [TarEntry(f"opt/env/{path}", "symlink", link=to, uid=1000) for path, to in self.links.items()]
        return made + [one for one in links if one.path not in self.files]


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def honest() -> Env:
    env = Env().plant("opt/env/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
    env.install("pytest", "8.3.0", {"pytest/__init__.py": "", "_pytest/main.py": "run = 1\n", "py.py": ""}, plugin="")
    env.install("pluggy", "1.5.0", {"pluggy/__init__.py": ""})
    env.install("iniconfig", "2.0", {"iniconfig/__init__.py": ""})
    env.install("setuptools", "70.0", {"setuptools/__init__.py": "", "distutils-precedence.pth": SHIM})
    env.install(
        "zope-interface",
        "5.0",
        {"zope/interface.py": "", "zope.interface-5.0-nspkg.pth": NAMESPACE.format(name="zope")},
    )
    env.install("pytest-mock", "3.14", {"pytest_mock/plugin.py": ""}, plugin="pytest_mock")
    return env.install(
        "library", "1.0", {"library/__init__.py": "", "library/conftest.py": "", "tests/conftest.py": ""}
    )


@pytest.fixture
def look(tmp_path: Path) -> Look:
    return Look(tmp_path)


@dataclass
class Look:
    folder: Path

    def __call__(self, env: Env, known: Iterable[str] = (), *, executable: str = "") -> list[tuple[str, str]]:
        blobs = BlobStore(str(self.folder / "blobs"))
        layer = store(env.entries(), blobs, self.folder)
        built = fact("install.env", {"layer": layer.model_dump()})
        locked = fact("install.lock", {"packages": env.packages})
        found = alterations(blobs, locked, built, asked_in(known), self.folder, executable=executable)
        return [(one.mechanism, one.detail) for one in found]

    def names(self, env: Env, known: Iterable[str] = (), *, executable: str = "") -> set[str]:
        return {name for name, _ in self(env, known, executable=executable)}


Make = Callable[[], Env]


def fact(kind: str, payload: dict[str, object], number: int = 0) -> Fact:
    key = FactKey(kind=kind, subject="env-0", input_hash=f"{number}", producer="test", epoch=1)
    return Fact(key=key, observed_at=datetime.now(UTC), payload=payload)


def over(env: Env) -> Env:
    return env.plant("_pytest/main.py", "run = 2\n")


PLANTED = {
    # mechanism: environments that it is planted in
    "runner-patched": [
        lambda: over(honest()),
        lambda: honest().plant("pluggy/__init__.py", "evil"),
        lambda: honest().plant("pytest-8.3.0.dist-info/METADATA", "Name: pytest\n"),
    ],
    "runner-foreign": [
        lambda: honest().plant("_pytest/extra.py"),
        lambda: honest().install("evil", "1", {"_pytest/extra.py": ""}),
        lambda: honest().install("evil", "1", {"_pytest/main.py": "run = 2\n"}),
        lambda: honest().install("evil", "1", {"py/__init__.py": ""}),
        lambda: honest().install("evil", "1", {"iniconfig.py": ""}),
        lambda: honest().plant("pytest.cpython-311-x86_64-linux-gnu.so"),
        lambda: honest().install("evil", "1", {"_distutils_hack/__init__.py": "evil"}),
        lambda: honest().install("evil", "1", {"pkg_resources/__init__.py": "evil"}),
        lambda: honest().install("coverage", "7", {"coverage/__init__.py": ""}).plant("coverage/evil.py"),
    ],
    "plugin-taken": [
        lambda: honest().install("evil", "1", {"pytest_mock/plugin.py": "evil"}),
        lambda: honest().install("evil", "1", {"pytest_mock/__init__.py": "evil"}),
        lambda: honest().install("evil", "1", {"pytest_mock/plugin.py": "evil"}).plant("pytest_mock/plugin.py", ""),
        lambda: honest().plant("pytest_mock/plugin.cpython-311-x86_64-linux-gnu.so"),
        lambda: honest().plant("pytest_mock.py", "evil"),
        lambda: (
            honest()
            .install("hypothesis", "6", {"_hypothesis_pytestplugin.py": ""}, plugin="_hypothesis_pytestplugin")
            .plant("_hypothesis_pytestplugin.py", "evil")
        ),
    ],
    "unclear-entry-points": [
        lambda: honest().install("evil", "1", {"evil.py": ""}, entry_points="[pytest11]\n[]x = evil\n"),
        lambda: honest().install("evil", "1", {"evil.py": ""}, entry_points="[pytest11\nx = evil\n"),
        lambda: honest().install("evil", "1", {"evil.py": ""}, entry_points="[[pytest11]]\nx = evil\n"),
        lambda: honest().install("evil", "1", {"evil.py": ""}, entry_points="[a]\n[pytest11]\x0bx = evil\n"),
        lambda: honest().install("evil", "1", {"evil.py": ""}, entry_points="[a]\nx = y\n;x = evil\n"),
    ],
    "loads-by-itself": [
        lambda: honest().install("evil", "1", {"evil.py": ""}, entry_points="[hypothesis]\nx = evil\n"),
        lambda: honest().install("evil", "1", {"evil.py": ""}, entry_points="[torch.backends]\nx = evil:f\n"),
    ],
    "beside-packages": [
        lambda: honest().plant("opt/env/lib/python3.11/os.py", "evil"),
        lambda: honest().plant("opt/env/fake/bin/python3.11", "evil"),
        lambda: honest().install("evil", "1", {"../../../pyvenv.cfg": ""}),
        lambda: honest().install("evil", "1", {"../../../fake/x": ""}),
        lambda: honest().install("evil", "1", {"/usr/bin/x": ""}),
        lambda: honest().install("evil", "1", {"../../../bin/python3": ""}),
    ],
    "start-up-module": [
        lambda: honest().plant("sitecustomize.py"),
        lambda: honest().plant("usercustomize.py"),
        lambda: honest().install("evil", "1", {"sitecustomize.py": "import pytest\n"}),
        lambda: honest().install("evil", "1", {"sitecustomize/__init__.py": ""}),
        lambda: honest().plant("sitecustomize.cpython-311-x86_64-linux-gnu.so"),
    ],
    "path-lines": [
        lambda: honest().install("evil", "1", {"evil.pth": "import evil\n"}),
        lambda: honest().plant("evil.pth", "import os; os.environ['PYTEST_ADDOPTS'] = '-k x'\n"),
        lambda: honest().plant("evil.pth", "# a comment\rimport evil\n"),
        lambda: honest().plant("evil-nspkg.pth", f"{NAMESPACE.format(name='zope').strip()};import evil\n"),
        lambda: honest().plant("evil-nspkg.pth", NAMESPACE.format(name="_pytest")),
        lambda: honest().plant("evil.pth", "/testbed/evil\n"),
        lambda: honest().plant("evil.pth", "../../evil\n"),
        lambda: honest().plant("distutils-precedence.pth", "import evil\n"),
        lambda: honest().install("evil", "1", {"distutils-precedence.pth": "import evil\n"}),
        lambda: honest().plant("_virtualenv.pth", "import _virtualenv").plant("_virtualenv.py", "import evil\n"),
        lambda: honest().plant("_virtualenv.pth", "import _virtualenv"),
        lambda: honest().plant("EVIL.PTH", "import evil\n"),
        lambda: honest().install("evil", "1", {"evil.pth": "evil_sub\n", "evil_sub/sitecustomize.py": ""}),
        lambda: honest().plant("evil.pth", "/testbed\n"),
    ],
    "settings-beside-packages": [
        lambda: honest().plant("conftest.py"),
        lambda: honest().install("evil", "1", {"conftest.py": ""}),
        lambda: honest().plant("pytest.ini", "[pytest]\naddopts = -x\n"),
        lambda: honest().plant("pytest.toml"),
        lambda: honest().plant(".pytest.toml"),
        lambda: honest().plant("pyproject.toml"),
        lambda: honest().plant("setup.cfg"),
        lambda: honest().install("evil", "1", {"tox.ini": ""}),
    ],
    "unknown-plugin": [
        lambda: honest().install("evil", "1", {"evil.py": ""}, plugin="evil"),
        lambda: honest().install("pytest-evil", "1", {"evil.py": ""}, plugin="evil"),
        lambda: honest().install("evil", "1", {"evil.py": ""}, entry_points="[pytest11]\n[]x = evil\n"),
    ],
    "steering-plugin-brought": [
        lambda: honest().install("pytest-testmon", "2", {"testmon/x.py": ""}, plugin="testmon"),
        lambda: honest().install("helper", "1", {}, requires=("flaky",)).install("flaky", "3", {}, plugin="flaky"),
    ],
    "not-of-the-lock": [
        lambda: honest().plant("pytest_cov-9.dist-info/entry_points.txt", "[pytest11]\nevil = evil\n"),
        lambda: honest().plant("pytest_mock-9.dist-info/entry_points.txt", "[pytest11]\nevil = evil\n"),
        lambda: honest().plant("pytest_mock-3.14.dist-info/entry_points.txt", "[pytest11]\nevil = evil\n"),
        lambda: honest().plant("library-1.0.dist-info/entry_points.txt", "[pytest11]\nevil = evil\n"),
        lambda: honest().plant("evil.egg-info/entry_points.txt", "[ pytest11 ]\nevil = evil\n"),
        lambda: honest().plant("evil.egg", "zip"),
    ],
    "interpreter-replaced": [
        lambda: honest().plant("opt/env/bin/python", "#!/bin/sh\nexit 0\n"),
        lambda: honest().plant("opt/env/bin/python3.11", "#!/bin/sh\nexit 0\n"),
        lambda: honest().plant("opt/env/pyvenv.cfg", "include-system-site-packages = true\n"),
        lambda: honest().plant("opt/env/pyvenv.cfg", "include-system-site-packages = false\nhome = /a\nhome = /b\n"),
        lambda: honest().plant("opt/env/pyvenv.cfg", "include-system-site-packages = false\nexecutable = /a\n"),
    ],
    "program-replaced": [
        lambda: honest().plant("opt/env/bin/bash", "x"),
        lambda: honest().plant("opt/env/bin/git", "x"),
        lambda: honest().install("evil", "1", {"../../../bin/pytest": ""}),
    ],
}
CASES = [
    pytest.param(name, make, id=f"{name}-{number}")
    for name, made in PLANTED.items()
    for number, make in enumerate(made)
]


@pytest.mark.parametrize(("mechanism", "make"), CASES)
def test_planted(mechanism: str, make: Make, look: Look) -> None:
    assert mechanism in look.names(make())


def test_every_row_of_the_table_is_planted() -> None:
    assert sorted(row.name for row in ALTERATIONS) == sorted(PLANTED)


def test_honest_environment_raises_no_alarm(look: Look) -> None:
    assert look(honest()) == []


def test_environment_without_pytest_is_fine(look: Look) -> None:
    env = Env().plant("opt/env/pyvenv.cfg", "include-system-site-packages = false\n")
    assert look(env.install("library", "1", {"library.py": ""})) == []


def test_distribution_that_is_not_there_may_have_its_names_taken(look: Look) -> None:
    """The distribution `attr` is not `attrs`; where that is not installed, pytest does not use it."""
    assert look(honest().install("attr", "0.3", {"attr/__init__.py": ""})) == []
    both = honest().install("attrs", "24", {"attrs/__init__.py": ""}).install("attr", "0.3", {"attr/__init__.py": ""})
    assert look.names(both) == {"runner-foreign"}


def test_module_of_py_that_pytest_and_py_bring_is_honest(look: Look) -> None:
    assert look(honest().install("py", "1.11", {"py/__init__.py": ""})) == []


def test_what_the_project_asks_for_is_its_own_matter(look: Look) -> None:
    env = honest().install(
        "declared", "1", {"declared.pth": "import declared\n", "conftest.py": ""}, requires=("pytest-odd>1",)
    )
    env.install("pytest-odd", "2", {"sitecustomize.py": ""}, plugin="odd").install("flaky", "3", {}, plugin="flaky")
    assert look.names(env) == {
        *("path-lines", "settings-beside-packages", "start-up-module", "unknown-plugin", "steering-plugin-brought")
    }
    assert look(env, frozenset({"declared", "flaky"})) == []


def test_file_of_an_asked_distribution_that_another_one_replaced_is_not(look: Look) -> None:
    env = (
        honest().install("declared", "1", {"declared.pth": "import declared\n"}).plant("declared.pth", "import evil\n")
    )
    assert look.names(env, frozenset({"declared"})) == {"path-lines"}
    twice = honest().install("declared", "1", {"sitecustomize.py": ""}).install("evil", "1", {"sitecustomize.py": ""})
    assert look.names(twice, frozenset({"declared"})) == {"start-up-module"}


def test_pytest_is_nobodys_to_change(look: Look) -> None:
    env = honest().install("declared", "1", {"_pytest/main.py": "run = 2\n"})
    assert look.names(env, frozenset({"declared", "pytest"})) == {"runner-patched", "runner-foreign"}


def test_uvs_own_module_is_known_by_uv_itself(look: Look) -> None:
    program = Path(uv.find_uv_bin()).read_bytes()
    begin = program.index(b'"""Patches that are applied at runtime to the virtual environment."""')
    text = program[begin : program.index(b"sys.meta_path.insert(0, _Finder())", begin)]
    env = honest().plant("_virtualenv.pth", "import _virtualenv").plant("_virtualenv.py", text)
    assert look(env) == []


def test_home_is_that_of_the_grounds_interpreter(look: Look) -> None:
    assert look(honest(), executable="/usr/bin/python3.11") == []
    assert look.names(honest(), executable="/opt/python/3.11/bin/python3.11") == {"interpreter-replaced"}


def test_namespace_of_a_plug_in_is_nobodys(look: Look) -> None:
    env = honest().install(
        "jaraco-test",
        "1",
        {"jaraco/test/http.py": "", "jaraco/test/__init__.py": ""},
        entry_points="[pytest11]\nx = jaraco.test.http\n",
    )
    env.install("jaraco-text", "1", {"jaraco/text/__init__.py": ""})
    assert look(env) == []
    assert look.names(env.install("evil", "1", {"jaraco/test/extra.py": ""})) == {"plugin-taken"}


def test_scripts_data_and_pages_may_lie_beside_packages(look: Look) -> None:
    places = (
        "bin/tool",
        "share/man/man1/x.1",
        "man/x",
        "etc/jupyter/x.json",
        "include/site/python3.11/x/x.h",
        "LICENSE.md",
    )
    env = honest().install("more", "1", {f"../../../{place}": "" for place in places})
    assert look(env) == []


def test_layer_that_is_gone_is_a_fault_and_no_alarm(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path / "blobs"))
    built = fact("install.env", {"layer": {"diff_id": f"sha256:{'0' * 64}", "size": 1}})
    with pytest.raises(BlobLost):
        alterations(blobs, fact("install.lock", {"packages": {}}), built, frozenset(), tmp_path)


@pytest.mark.parametrize("text", ["", "# import evil\n", NAMESPACE.format(name="google")])
def test_plain_lines(text: str) -> None:
    assert is_plain(text)
