from __future__ import annotations

import json
import time

import pytest
from ci_trees import brief, jobs
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.project.ci import read_ci
from miner.project.text import words

PATHS = (
    ".github/workflows/a.yml",
    ".github/actions/x/action.yml",
    ".travis.yml",
    ".circleci/config.yml",
    "appveyor.yml",
    "azure-pipelines.yml",
    ".gitlab-ci.yml",
    ".readthedocs.yml",
    "Dockerfile",
    "Makefile",
    "noxfile.py",
    "tox.ini",
    "tox.toml",
    "pyproject.toml",
    "scripts/test",
)
LEVELS = "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12))
MERGES = "".join(f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{','.join(['*' + chr(97 + n)] * 9)}]}}\n" for n in range(12))


@pytest.mark.parametrize(
    "content",
    [
        b"\0\0",
        b"\xff\xfe\xfa",
        b"[" * 100_000,
        b"a: " * 2_000,
        b"- x\n" * 300_000,
        b"jobs: &a {x: *a}",
        b"jobs: &a [*a]",
        ("a: &a [x,x,x,x]\njobs: *a\n" + LEVELS).encode(),
        ("a: &a {k: v}\n" + MERGES + "jobs: *m\n").encode(),
        b"jobs: {a: {steps: [{run: !!python/object/apply:os.system ['x']}]}}",
        b"jobs: {a: [], b: 1, c: {steps: {run: x}}, d: {steps: [1, [2]], strategy: {matrix: []}}}",
        b"import nox\n" + b"(" * 300,
        b"[tox]\nenvlist = "
        + b"{a,b}" * 9
        + b"\n[testenv]\ndeps = {[testenv]deps}{[testenv]deps}\ncommands = pytest {[testenv]commands}\n",
        b"A = $(A)$(A)\ntest: $(A)\n\tpytest $(A)\n",
        b"FROM\nRUN\nENV\nENV A\nENV A='\nRUN [\nCMD [1]\nRUN <<EOF\n",
    ],
    ids=range(15),
)
def test_broken_and_endless_files_are_notes(content: bytes) -> None:
    begun = time.perf_counter()
    read_ci(dict.fromkeys(PATHS, content), PATHS)
    assert time.perf_counter() - begun < 5


def test_a_broken_file_says_so() -> None:
    found = jobs({".github/workflows/a.yml": "jobs: [", ".travis.yml": "a: b: c"})
    assert [brief(job) for job in found] == [
        {"source": ".github/workflows/a.yml", "notes": (".github/workflows/a.yml: is not valid YAML at line 2",)},
        {"source": ".travis.yml", "notes": (".travis.yml: is not valid YAML at line 1",)},
    ]


def test_a_matrix_without_end_is_cut() -> None:
    many = json.dumps([str(number) for number in range(300)])
    matrix = json.dumps({letter: json.loads(many) for letter in "abcdefgh"})
    begun = time.perf_counter()
    run = "pip install p${{ matrix.a }}"
    found = jobs(
        {".github/workflows/a.yml": f"jobs: {{t: {{strategy: {{matrix: {matrix}}}, steps: [{{run: '{run}'}}]}}}}"}
    )
    assert len(found) <= 60
    assert time.perf_counter() - begun < 2


def test_no_secret_comes_through() -> None:
    files = {
        ".github/workflows/a.yml": """
        env: {API_KEY: live-Ab12Cd34, DB_PASSWORD: "Hunter2!", OTHER: "${{ secrets.X }}", AWS_ACCESS_KEY_ID: testing}
        jobs: {t: {runs-on: ubuntu-latest, steps: [{run: "GITHUB_TOKEN=ghp_x pytest"}]}}
        """
    }
    (job,) = jobs(files)
    assert job.env == {"AWS_ACCESS_KEY_ID": "testing"}
    assert not any("live" in note or "Hunter" in note or "ghp" in note for note in job.notes)


_KEYS = st.sampled_from(
    sorted(
        words("""
    jobs on steps run uses with env strategy matrix include exclude if services python script install image docker
    commands parameters executor workflows template stages pool variables extends before_script build tools t test
    global name <<
    """)
    )
)
_SCALARS = st.one_of(
    st.sampled_from(
        [
            "3.8",
            "pytest",
            "pip install $A",
            "${{ matrix.t }}",
            "<< parameters.t >>",
            "$(t)",
            ".t",
            "ubuntu",
            "./x",
            "tox -e py",
        ]
    ),
    st.text(max_size=8),
    st.integers(0, 9),
    st.none(),
)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=25
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(_KEYS, _VALUES, max_size=5), st.dictionaries(_KEYS, _VALUES, max_size=4))
def test_no_structure_raises(content: dict[str, object], job: dict[str, object]) -> None:
    nested = {**content, "jobs": {"t": job, **(content["jobs"] if isinstance(content.get("jobs"), dict) else {})}}
    for document in (content, nested):
        files = dict.fromkeys(PATHS[:8], json.dumps(document).encode())
        read_ci(files, [*files, "tox.ini"])


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="abpytest[]{}$():=,\n\t \"'\\-!#%@", max_size=120))
def test_no_text_of_a_task_file_raises(text: str) -> None:
    files = {path: text.encode() for path in PATHS[8:]}
    read_ci(
        {**files, "tox.ini": f"[testenv]\ncommands={text}\ndeps={text}\n[tox]\nenvlist={text}".encode()}, list(files)
    )


def test_the_same_tree_gives_the_same_jobs() -> None:
    files = {
        ".travis.yml": b"python: [3.6, 3.7]\nenv: [A=1, A=2]\nscript: make test\n",
        "Makefile": b"test:\n\tpip install a b c\n\tpytest\n",
        "tox.ini": b"[testenv]\ndeps=x\ncommands=pytest\n",
    }
    assert read_ci(files, sorted(files)) == read_ci(dict(reversed(files.items())), sorted(files, reverse=True))


def _wide(count: int, write: str) -> str:
    """Return texts in which each level names the next one many times."""
    return "".join(write.replace("A", f"l{level}").replace("B", f"l{level + 1}") for level in range(count))


@pytest.mark.parametrize(
    "files",
    [
        {"Makefile": _wide(20, "A = $(B)$(B)$(B)$(B)$(B)$(B)$(B)$(B)\n") + "test:\n\tpytest $(l0)\n"},
        {"Makefile": "test: l0\n\tpytest\n" + _wide(30, "A: B x1 x2 x3\n\tmake B; make B; make B; make B; make B\n")},
        {"tox.ini": "[testenv]\ncommands = pytest {[l0]k}\n" + _wide(20, "[A]\nk = " + "{[B]k} " * 9 + "\n")},
        {
            "pyproject.toml": "[tool.tox.env_run_base]\ncommands = [[{replace='ref', of=['l0']}]]\n[tool.tox]\n"
            + _wide(20, "A = [" + "{replace='ref', of=['B']}," * 9 + "]\n")
        },
        {
            ".circleci/config.yml": "jobs: {t: {steps: [l0]}}\ncommands:\n"
            + _wide(20, "  A: {steps: [" + "B," * 40 + "{run: pytest}]}\n")
        },
        {
            ".github/workflows/a.yml": "jobs: {t: {steps: [{uses: ./.github/actions/l0}]}}",
            **{
                f".github/actions/l{n}/action.yml": "runs: {using: composite, steps: ["
                + f"{{uses: ./.github/actions/l{n + 1}}}," * 40
                + "{run: pytest}]}"
                for n in range(12)
            },
        },
        {
            f".github/workflows/l{n}.yml": "jobs:\n"
            + "".join(f"  j{k}: {{uses: ./.github/workflows/l{n + 1}.yml}}\n" for k in range(40))
            for n in range(6)
        },
        {".gitlab-ci.yml": "t: {extends: [l0], script: pytest}\n" + _wide(20, "A: {extends: [" + "B," * 20 + "]}\n")},
        {
            ".gitlab-ci.yml": "t: {script: [!reference [.l0, k]]}\n"
            + _wide(20, ".A: {k: [" + "!reference [.B, k]," * 20 + "]}\n")
        },
        {
            "Makefile": "test:\n\tpdm run l0\n",
            "pyproject.toml": "[tool.pdm.scripts]\n" + _wide(20, "A = {composite = [" + "'B'," * 40 + "]}\n"),
        },
        {
            "scripts/test": "",
            "Makefile": "test:\n\tbash l0.sh\n",
            **{f"l{n}.sh": f"bash l{n + 1}.sh\n" * 40 for n in range(15)},
        },
        {
            "noxfile.py": "import nox\n@nox.session\ndef tests(s):\n    l0(s)\n"
            + _wide(20, "def A(s):\n" + "    B(s)\n" * 40)
        },
        {"tox.ini": "[testenv]\ncommands = pytest\ndeps = " + "py36," * 20_000},
        {"Makefile": "test" + " " * 50_000 + "x\n\tpytest\n"},
        {"Dockerfile": "FROM x\nENV " + "a" * 90_000 + "\n"},
        {".github/workflows/a.yml": "jobs: {t: {steps: [{run: '" + "${{ " * 20_000 + "'}]}}"},
    ],
    ids=range(16),
)
def test_what_grows_without_bound_is_cut(files: dict[str, str]) -> None:
    begun = time.perf_counter()
    jobs(files)
    assert time.perf_counter() - begun < 6
