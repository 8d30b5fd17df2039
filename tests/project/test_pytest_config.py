"""Which file configures pytest, and what it says."""

from hypothesis import given
from hypothesis import strategies as st

from miner.project.pytest_config import DEFAULT_PYTHON_FILES, read_pytest_config

PYPROJECT = b"""
[tool.pytest.ini_options]
addopts = ["-ra", "-k", "not slow"]
testpaths = ["tests"]
python_files = "check_*.py *_spec.py"
markers = ["slow: takes long"]
required_plugins = ["pytest-mock>=3"]
"""
INI = b'[pytest]\naddopts = -ra -m "not slow"\n    --strict\nmarkers =\n    slow: takes long\n    # a comment\n'
TOX = b"[pytest]\naddopts = --tox\n"
SETUP = b"[tool:pytest]\naddopts = --setup\n[pytest]\naddopts = --wrong\n"


def test_defaults_without_any_file():
    config = read_pytest_config({})
    assert config.python_files == DEFAULT_PYTHON_FILES
    assert config.source is None
    assert config.addopts == ()


def test_pyproject_lists_are_taken_as_they_are_and_strings_are_shell_words():
    config = read_pytest_config({"pyproject.toml": PYPROJECT})
    assert config.addopts == ("-ra", "-k", "not slow")
    assert config.python_files == ("check_*.py", "*_spec.py")
    assert config.required_plugins == ("pytest-mock>=3",)
    assert config.markers == ("slow: takes long",)
    assert config.source == "pyproject.toml"


def test_ini_addopts_are_split_like_a_shell_over_several_lines():
    config = read_pytest_config({"pytest.ini": INI})
    assert config.addopts == ("-ra", "-m", "not slow", "--strict")
    assert config.markers == ("slow: takes long",)


def test_files_win_in_pytests_order():
    files = {"setup.cfg": SETUP}
    assert read_pytest_config(files).addopts == ("--setup",)
    files["tox.ini"] = TOX
    assert read_pytest_config(files).addopts == ("--tox",)
    files["pyproject.toml"] = PYPROJECT
    assert read_pytest_config(files).source == "pyproject.toml"
    files[".pytest.ini"] = INI
    assert read_pytest_config(files).source == ".pytest.ini"
    files["pytest.ini"] = b""
    config = read_pytest_config(files)
    assert (config.source, config.addopts) == ("pytest.ini", ())


def test_pyproject_without_the_table_does_not_win():
    files = {"pyproject.toml": b"[tool.black]\nline-length = 1\n", "tox.ini": TOX}
    assert read_pytest_config(files).source == "tox.ini"


def test_native_table_of_pytest_9():
    assert read_pytest_config({"pyproject.toml": b"[tool.pytest]\naddopts = ['-x']\n"}).addopts == ("-x",)
    assert read_pytest_config({"pytest.toml": b"[pytest]\ntestpaths = ['t']\n"}).testpaths == ("t",)


def test_empty_python_files_is_not_the_default():
    assert read_pytest_config({"pytest.ini": b"[pytest]\npython_files =\n"}).python_files == ()


def test_folder_of_a_project_below_the_root():
    config = read_pytest_config({"lib/pytest.ini": INI, "pytest.ini": b""}, "lib")
    assert config.source == "lib/pytest.ini"


def test_percent_signs_and_repeated_keys_do_not_matter():
    config = read_pytest_config({"tox.ini": b"[pytest]\nlog_format = %(x)s\naddopts = -a\naddopts = -b\n"})
    assert config.addopts == ("-b",)


def test_wrong_values_are_notes():
    files = {"pyproject.toml": b"[tool.pytest.ini_options]\naddopts = 3\ntestpaths = [1, 'a']\n"}
    config = read_pytest_config(files)
    assert config.addopts == ()
    assert config.testpaths == ("a",)
    assert len(config.notes) == 2
    unbalanced = read_pytest_config({"pytest.ini": b'[pytest]\naddopts = -m "not slow\n'})
    assert unbalanced.addopts == ("-m", '"not', "slow")
    assert unbalanced.notes


NAMES = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "pytest.toml")


@given(st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=60)))
def test_any_bytes_are_read_without_an_error(files):
    assert read_pytest_config(files).source in (None, *NAMES)


@given(st.sampled_from(NAMES), st.text(alphabet="[]=:\n \t\"'pytestaddopts.tool,ini_#;%{}", max_size=120))
def test_nearly_right_texts_are_read_without_an_error(name, text):
    read_pytest_config({name: b"[pytest]\n" + text.encode()})
