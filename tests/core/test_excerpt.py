"""The lines of a log that name the error, in the forms of real tools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core.excerpt import MAX_LINES, error_excerpt, explanation, last_error

UV_NO_SOLUTION = """\
Using CPython 3.11.9 interpreter at: /usr/bin/python3.11
  \u00d7 No solution found when resolving dependencies:
  ╰─▶ Because only example-lib<=1.4 is available and your project depends
      on example-lib>=2.0, we can conclude that your project's
      requirements are unsatisfiable.
"""

UV_BUILD = """\
Resolved 14 packages in 310ms
  \u00d7 Failed to build `pretend-ish==1.0.9`
  ├─▶ The build backend returned an error
  ╰─▶ Call to `setuptools.build_meta:__legacy__.build_wheel` failed (exit
      status: 1)

      [stdout]
      running egg_info
      writing pretend_ish.egg-info/PKG-INFO

      [stderr]
      Traceback (most recent call last):
        File "<string>", line 14, in <module>
        File "/build/setup.py", line 3, in <module>
          import numpy
      ModuleNotFoundError: No module named 'numpy'

      hint: This usually indicates a problem with the package or the build
      environment.
"""

PIP = """\
Processing /testbed
  Installing build dependencies: started
  error: subprocess-exited-with-error

  \u00d7 Getting requirements to build wheel did not run successfully.
  │ exit code: 1
  ╰─> [4 lines of output]
      Traceback (most recent call last):
        File "setup.py", line 9, in <module>
          use_2to3=True)
      SystemExit: error in thing setup command: use_2to3 is invalid.
      [end of output]
ERROR: Failed to build 'thing' when getting requirements to build wheel
"""

PYTEST = """\
    def test_split():
        left, right = split("a b")
>       assert right == "c"
E       AssertionError: assert 'b' == 'c'
E
E         - c
E         + b

tests/test_split.py:12: AssertionError
"""

GCC = """\
building 'fast._core' extension
gcc -O2 -c fast/_core.c -o build/_core.o
fast/_core.c:10:10: fatal error: ffi.h: No such file or directory
   10 | #include <ffi.h>
compilation terminated.
error: command '/usr/bin/gcc' failed with exit code 1
"""

USAGE = """\
ERROR: usage: __main__.py [options] [file_or_dir] [file_or_dir] [...]
__main__.py: error: unrecognized arguments: --cov=thing
  inifile: /testbed/tox.ini
  rootdir: /testbed
"""


@pytest.mark.parametrize(
    ("log", "wanted", "unwanted"),
    [
        pytest.param(UV_NO_SOLUTION, ["No solution found", "example-lib<=1.4", "unsatisfiable"], "Using", id="uv-lock"),
        pytest.param(
            UV_BUILD, ["Failed to build", "No module named 'numpy'", "import numpy"], "egg_info", id="uv-build"
        ),
        pytest.param(PIP, ["did not run successfully", "use_2to3 is invalid"], "Processing", id="pip"),
        pytest.param(PYTEST, ["AssertionError: assert 'b' == 'c'", "tests/test_split.py:12"], "def test", id="pytest"),
        pytest.param(GCC, ["ffi.h: No such file", "error: command"], "building", id="gcc"),
        pytest.param(USAGE, ["unrecognized arguments: --cov=thing"], "rootdir", id="pytest-usage"),
    ],
)
def test_cause_is_found_and_noise_is_not(log, wanted, unwanted):
    excerpt = error_excerpt(log)
    for text in wanted:
        assert text in excerpt
    assert unwanted not in excerpt


def test_explanation_is_uvs_own_and_has_nothing_that_changes_from_run_to_run():
    log = "Resolved 1 package in {}\nerror: Failed to build x\n  cause: /cache/builds-v0/.tmp{}/a: at 0x7f{}\n"
    first = explanation(log.format("12ms", "aB3dEf", "0123abcd"))
    assert first == explanation(log.format("1.5s", "Zz9_xx", "fedc9876"))
    assert first.startswith("error: Failed to build x\n  cause:")


def test_explanation_without_an_error_of_uv_is_the_excerpt_without_times_and_names_of_temporary_files():
    assert "use_2to3 is invalid" in explanation(PIP)
    assert explanation("ERROR: /tmp/pip-x1/a.py broke after 3.2s\n") == "ERROR: /tmp/tmp/a.py broke after some time"


def test_endless_explanation_keeps_its_end():
    assert explanation("error: " + "a " * 5000 + "the end").endswith("a the end")
    assert len(explanation("error: " + "a " * 5000)) < 1600


def test_last_error_is_pytests_own_line_or_the_last_one():
    assert last_error(PYTEST + "\nend\n") == "+ b"
    assert last_error("E   ModuleNotFoundError: No module named 'x'\n\n") == "ModuleNotFoundError: No module named 'x'"
    assert last_error("a\n\nb\n") == "b"
    assert last_error(" \n") == ""


def test_last_traceback_counts():
    def traceback(name):
        return f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    {name}()\n{name}: no\n'

    excerpt = error_excerpt(traceback("First") + "During handling of the above\n" + traceback("Second"))
    assert "Second: no" in excerpt
    assert "First: no" not in excerpt


def test_colours_are_removed_and_carriage_returns_are_line_ends():
    assert error_excerpt("10%\r20%\r\x1b[31merror\x1b[0m: broken\n") == "error: broken"


def test_log_without_a_known_form_gives_its_end():
    assert error_excerpt("\n".join(f"line {n}" for n in range(40)), max_lines=2) == "line 38\nline 39"


def test_empty_log_gives_nothing():
    assert error_excerpt("") == ""


def test_long_assertion_keeps_its_head_and_its_end():
    log = "\n".join(["E   AssertionError: first", *[f"E   item {n}" for n in range(100)], "E   last"])
    excerpt = error_excerpt(log)
    assert "first" in excerpt
    assert "last" in excerpt


pieces = st.sampled_from(
    [*(UV_BUILD + PIP + PYTEST + GCC).splitlines(), "", "Traceback (most recent call last):", "E", "\x1b["]
)


@given(st.lists(st.one_of(pieces, st.text(max_size=20)), max_size=40))
def test_any_log_gives_few_lines_that_stand_in_it(lines):
    log = "\n".join(lines)
    excerpt = error_excerpt(log)
    assert len(excerpt.split("\n")) <= MAX_LINES
    assert bool(excerpt) <= bool(log.strip())
