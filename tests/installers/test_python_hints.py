"""What a project says about Pythons."""

from installers.python_hints import hints_of
from miner.project.facts import read_project


def hints(**files):
    tree = {name: text.encode() for name, text in files.items()}
    return hints_of(read_project(tree, list(tree)), tree, list(tree), "")


def classifiers(*versions):
    listed = [f"Programming Language :: Python :: {version}" for version in versions]
    return f"setup(name='x', classifiers={listed})"


def test_everything_that_names_one():
    found = hints(
        **{
            "setup.py": "setup(python_requires='>=3.6', classifiers=['Programming Language :: Python :: 3.7'])",
            "tox.ini": "[tox]\nenvlist = py38\n",
            ".python-version": "3.9.1\n",
            "Pipfile": "[requires]\npython_version = '3.10'\n",
            ".github/workflows/t.yml": "on: push\njobs:\n  t:\n    runs-on: ubuntu-latest\n"
            "    strategy:\n      matrix:\n        python: ['3.11']\n"
            "    steps:\n      - uses: actions/setup-python@v5\n        with:\n"
            "          python-version: ${{ matrix.python }}\n      - run: pytest\n",
        }
    )
    assert found.requires_python == (">=3.6",)
    assert (found.classifiers, found.tox, found.ci) == (("3.7",), ("3.8",), ("3.11",))
    assert found.pinned == ("3.10", "3.9")


def test_python_2_beside_any_python_3_says_nothing():
    assert hints(**{"setup.py": classifiers("2.7", "3")}).classifiers == ()
    assert hints(**{"setup.py": classifiers("2.7"), "tox.ini": "[tox]\nenvlist = py27, py35\n"}).named.keys() == (
        hints(**{"tox.ini": "[tox]\nenvlist = py35\n"}).named.keys()
    )


def test_python_2_alone_is_what_a_project_says():
    assert hints(**{"setup.py": classifiers("2.6", "2.7")}).classifiers == ("2.6", "2.7")
