"""setup.cfg and setup.py, read without being executed."""

import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.project.setup_cfg import read_setup_cfg
from miner.project.setup_py import read_setup_py


def cfg(text, **others):
    files = {
        "setup.cfg": textwrap.dedent(text).encode(),
        **{k.replace("__", "."): v.encode() for k, v in others.items()},
    }
    return read_setup_cfg(files, "setup.cfg")


def py(text, **others):
    files = {
        "setup.py": textwrap.dedent(text).encode(),
        **{k.replace("__", "."): v.encode() for k, v in others.items()},
    }
    return read_setup_py(files, "setup.py")


def texts(items):
    return None if items is None else [item.text for item in items]


def groups(found):
    return {group.name: texts(group.requirements) for group in found.groups}


def test_declarative_setup_cfg():
    found = cfg(
        """
        [metadata]
        name = demo
        version = attr: demo.__version__
        classifiers =
            Programming Language :: Python :: 3.9
        [options]
        python-requires = >=3.6
        package_dir =
            =src
        packages = find:
        py_modules = one, two
        install_requires =
            a>=1
            # comment
            b; \\
              python_version < "3.8"
        setup_requires = pbr; c
        tests_require = x; python_version < "3.8"
        [options.packages.find]
        where = src
        [options.extras_require]
        test = pytest
        docs =
            sphinx
        """
    )
    assert (found.name, found.version, found.requires_python) == ("demo", None, ">=3.6")
    assert texts(found.runtime) == ["a>=1", 'b; python_version < "3.8"']
    assert texts(found.setup_requires) == ["pbr", "c"]
    assert groups(found) == {"test": ["pytest"], "docs": ["sphinx"], "tests_require": ['x; python_version < "3.8"']}
    assert found.modules == ("one", "two")
    assert set(found.roots) == {"src"}
    assert found.notes == ()


def test_setup_cfg_takes_requirements_from_files():
    found = cfg("[options]\ninstall_requires = file: a.txt, b.txt\n", a__txt="a\n", b__txt="-r a.txt\nb\n")
    assert texts(found.runtime) == ["a", "a", "b"]


def test_broken_setup_cfg_is_a_note():
    found = cfg("no section = 1\n")
    assert found.runtime is None
    assert "is not a valid INI file" in found.notes[0]


def test_literals_names_and_concatenation():
    found = py(
        """
        from setuptools import setup, find_packages
        NAME = "demo"
        base = ["a"]
        base += ["b"]
        extras = {"test": ["pytest"]}
        extras["test"] = extras["test"] + ["mock"]
        extras["dev"] = [*extras["test"], "black"]
        base.append("c")
        setup(name=NAME, version="1.%s" % 2, packages=find_packages("src"), package_dir={"": "src"},
              install_requires=base + ["d"], extras_require=extras, tests_require=("nose",),
              setup_requires="pbr>=1", py_modules=["m"], python_requires=">=3")
        """
    )
    assert (found.name, found.version, found.requires_python) == ("demo", "1.2", ">=3")
    assert texts(found.runtime) == ["a", "b", "c", "d"]
    assert groups(found) == {
        "test": ["pytest", "mock"],
        "dev": ["pytest", "mock", "black"],
        "tests_require": ["nose"],
    }
    assert texts(found.setup_requires) == ["pbr>=1"]
    assert found.roots == ("src", "src")
    assert found.notes == ()


@pytest.mark.parametrize(
    "code",
    [
        "install_requires=open('r.txt').read().splitlines()",
        "install_requires=open('r.txt').readlines()",
        "install_requires=[line.strip() for line in open('r.txt').readlines() if line]",
        "install_requires=list(filter_lines('r.txt'))",
        "install_requires=Path('r.txt').read_text().splitlines()",
        "install_requires=(Path(__file__).parent / 'x') if 0 else reader('r.txt')",
        "install_requires=open(os.path.join(os.path.dirname(__file__), 'r.txt')).read().split('\\n')",
        "install_requires=parse_requirements('r.txt')",
        "**dict(install_requires=reader('r.txt'))",
    ],
)
def test_idioms_that_read_a_requirements_file(code):
    found = py(f"setup({code})", r__txt="a==1\n# no\nb\n")
    expected = None if " if 0 else " in code else ["a==1", "b"]
    assert texts(found.runtime) == expected
    if expected:
        assert found.runtime[0].source == "r.txt"


def test_with_statement_binds_a_file():
    code = "with open('r.txt') as f:\n    needs = f.read().splitlines()\nsetup(install_requires=needs)\n"
    assert texts(py(code, r__txt="a\n").runtime) == ["a"]


def test_conditions_on_the_python_version_are_followed():
    found = py(
        """
        import sys
        needs = ["a"]
        if sys.version_info < (3, 4):
            needs.append("enum34")
        elif sys.version_info[0] == 2:
            needs.append("old")
        else:
            needs.extend(["new"])
        if sys.platform == "win32": needs.append("pywin32")
        setup(install_requires=needs)
        """
    )
    assert texts(found.runtime) == ["a", "new"]
    assert found.notes == ()


def test_of_other_conditions_both_branches_are_read():
    found = py("n = []\nif guess():\n    n.append('a')\nelse:\n    n.append('b')\nsetup(install_requires=n)\n")
    assert sorted(texts(found.runtime)) == ["a", "b"]
    assert found.notes == ("setup.py: line 2: the condition is not evaluated, both branches are read",)


def test_old_conditional_extras_become_markers():
    found = py("setup(extras_require={\":python_version<'3'\": ['a'], \"test:os_name=='nt'\": ['b; x']})")
    assert texts(found.runtime) == ["a; python_version<'3'"]
    assert groups(found) == {"test": ["b; x and os_name=='nt'"]}


def test_setup_inside_a_function():
    assert py("def main():\n    setup(name='demo')\nif __name__ == '__main__':\n    main()\n").name == "demo"


def test_what_is_computed_is_noted_and_the_rest_is_read():
    found = py("setup(name=get(), install_requires=compute(), extras_require={'a': ['x', f()], g(): []}, packages=p)")
    assert found.name is None
    assert found.runtime is None
    assert groups(found) == {"a": ["x"]}
    assert len(found.notes) == 5


def test_wrong_types_are_notes():
    found = py("setup(name=3, install_requires={'a': 1}, extras_require=['x'], package_dir='src', packages=7)")
    assert found.name is None
    assert found.runtime is None
    assert len(found.notes) == 3


def test_version_tools():
    assert py("import versioneer\nsetup(version=versioneer.get_version())").version_tools == ("versioneer",)
    assert py("setup(use_scm_version=True, setup_requires=['x'])").version_tools == ("setuptools-scm",)
    assert py("setup(setup_requires=['pbr'], pbr=True)").version_tools == ("pbr",)


@pytest.mark.parametrize(
    "data",
    [b"print 'python 2'\n", b"def (:\n", b"\0\0", b"\xff\xfe\x00s", b"(" * 5000, b"-" * 100000 + b"1"],
    ids=["python-2", "garbage", "nul", "utf-16", "brackets", "deep"],
)
def test_what_is_no_python_is_unreadable_and_no_error(data):
    found = read_setup_py({"setup.py": data}, "setup.py")
    assert found.unreadable
    assert found.unreadable in found.notes


def test_a_file_in_latin_1_is_read_with_its_coding_line():
    found = read_setup_py({"setup.py": "# coding: latin-1\nsetup(name='dé')\n".encode("latin-1")}, "setup.py")
    assert found.name == "dé"


BOMBS = {
    "text": "x = 'a' * 9\n" + "x = 'aaaaaaaaaa'\n" + "x = x + x\n" * 60,
    "list": "x = ['a']\n" + "x = x + x\n" * 60,
    "display": "x = ['a']\n" + "x = [*x, *x]\n" * 60,
    "append": "x = ['a']\n" + "x.extend(x)\n" * 60,
    "f-string": "x = 'a'\n" + "x = f'{x}{x}'\n" * 60,
    "format": "x = 'a'\n" + "x = '{}{}'.format(x, x)\n" * 60,
    "percent": "x = 'a'\n" + "x = '%s%s' % (x, x)\n" * 60,
    "width": "x = '%999999999s' % 'a'\ny = '{:>999999999}'.format('a')\nz = f'{1:>999999999}'\n",
    "nested": "x = ['a']\n" + "x = [x, x]\n" * 60 + "y = f'{x}'\n" + "if x == x: pass\n",
    "cycle": "x = []\nx.append(x)\nd = {}\nd['d'] = d\nif x == x: pass\n",
    "power": "x = 9 ** 9 ** 9 ** 9\n",
    "loop": "while True: pass\nfor i in range(10**9): pass\n",
    "chain": "x = " + " + ".join(["'a'"] * 80) + "\n",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_a_hostile_setup_py_costs_neither_time_nor_memory(bomb):
    start = time.monotonic()
    found = py(bomb + "setup(name='demo', install_requires=x, extras_require={'a': x})")
    assert time.monotonic() - start < 2
    assert found.unreadable is None
    assert found.name == "demo"


STATEMENTS = """
x = []
x += y
y = {'a': x}
y['b'] = x
x.append(y)
x.extend(x)
y.update(y)
setup(**y)
if x: y = x
z = x[0]
z = y['a']
with open(z) as x: pass
z = f'{x}{y}'
z = '%s' % x
setup(name=z, install_requires=x, extras_require=y)
z = [a for a in x]
x = z.read().splitlines()
def f(): setup(name=x)
z = x + y
"""


@given(st.lists(st.sampled_from(STATEMENTS.strip().splitlines()), max_size=12))
def test_any_mixture_of_idioms_is_read_without_an_error(statements):
    assert py("\n".join(statements)).unreadable is None


@given(st.binary(max_size=80))
def test_any_bytes_are_read_without_an_error(data):
    read_setup_py({"setup.py": data}, "setup.py")
    read_setup_cfg({"setup.cfg": data}, "setup.cfg")


def test_variables_of_the_environment_are_not_set():
    found = py(
        """
        import os
        if os.environ.get("READTHEDOCS", False) == "True":
            needs = []
        else:
            needs = ["a"]
        if "NO_B" not in os.environ:
            needs.append("b")
        if os.getenv("C") is not None:
            needs.append("c")
        setup(install_requires=needs)
        """
    )
    assert texts(found.runtime) == ["a", "b"]
    assert found.notes == ()


def test_commands_that_no_build_gives():
    found = py(
        """
        import sys
        needs = ["pytest-runner"] if False else []
        if "test" in sys.argv:
            extra = ["x"]
        else:
            extra = ["y"]
        setup(install_requires=extra)
        """
    )
    assert texts(found.runtime) == ["y"]


def test_conditions_that_one_side_decides():
    found = py(
        """
        import sys
        needs = []
        if sys.version_info < (3,) and unknown():
            needs.append("old")
        if sys.version_info > (3,) or unknown():
            needs.append("new")
        setup(install_requires=needs)
        """
    )
    assert texts(found.runtime) == ["new"]
    assert found.notes == ()


def test_a_dict_call_is_read_as_far_as_it_is_known():
    found = py("args = dict(name='x', version=compute(), install_requires=['a'], **more())\nsetup(**args)")
    assert (found.name, texts(found.runtime)) == ("x", ["a"])


def test_a_call_of_setup_that_is_returned_by_a_function():
    assert py("def install():\n    return setup(name='x')\ninstall()\n").name == "x"


def test_a_function_that_reads_from_the_folder_of_requirements():
    found = py("setup(install_requires=reqs('default.txt'))", **{"requirements/default.txt": "a\n"})
    assert texts(found.runtime) == ["a"]


@pytest.mark.parametrize(
    ("text", "trap"),
    [
        ("setup(use_2to3=True)", "use_2to3"),
        ("import pkg_resources\nsetup()", "pkg_resources"),
        ("def f():\n    from pkg_resources import parse_version\nsetup()", "pkg_resources"),
        ("setup(namespace_packages=['a'])", "namespace_packages"),
    ],
)
def test_traps_of_setup_py(text, trap):
    found = py(text).traps
    assert {name for name, value in found.model_dump().items() if value} == {trap}


def test_traps_of_setup_cfg():
    found = cfg("[options]\nuse_2to3 = true\nnamespace_packages =\n  a\n").traps
    assert (found.use_2to3, found.namespace_packages) == (True, True)
    assert not py("setup(use_2to3=False, namespace_packages=[])").traps.use_2to3


def test_comments_behind_requirements_of_setup_cfg():
    assert texts(cfg("[options]\ninstall_requires =\n  a >= 1  # why\n  b\n").runtime) == ["a >= 1", "b"]
