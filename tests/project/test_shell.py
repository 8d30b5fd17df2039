from __future__ import annotations

import shlex
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.project.commands import meaning, sounds_like_tests
from miner.project.shell import ROOT, Command, Shell
from miner.project.shell_conditions import test as holds
from miner.project.shell_syntax import parse_shell
from miner.project.shell_tokens import ShellSyntaxError
from miner.project.shell_words import Word, fields, value

SHELL_CHARACTERS = "abc $\"'`(){}[]|&;<>\\\n#!=*?~%/:-+,.01"


class Tree:
    """A tree of scripts, and the commands that a shell read in it."""

    def __init__(self, scripts: dict[str, str] | None = None) -> None:
        self.scripts = scripts or {}
        self.commands: list[Command] = []

    def exists(self, path: str) -> bool | None:
        return path.removeprefix(f"{ROOT}/") in self.scripts

    def script(self, path: str) -> str | None:
        return self.scripts.get(path.removeprefix(f"{ROOT}/"))

    def command(self, command: Command, shell: Shell) -> None:
        self.commands.append(command)


def run(text: str, scripts: dict[str, str] | None = None, **variables: str | None) -> list[str]:
    """Return the commands of a text; those that run under an unknown condition in brackets."""
    tree = Tree(scripts)
    Shell(tree, dict(variables)).run(text)
    return [f"({command.text})" if command.guarded else command.text for command in tree.commands]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("pip install a && pip install b", ["pip install a", "pip install b"]),
        ("pip install a || pip install b", ["pip install a"]),
        ("pip install \\\n  a \\\n  'b >= 1'", ["pip install a b >= 1"]),
        ("a; b & c | d # e", ["a", "b", "c", "d"]),
        ("for x in 1 2; do pip install p$x; done", ["pip install p1", "pip install p2"]),
        ("install() { pip install $1; }\ninstall a\ninstall 'b c'", ["pip install a", "pip install b c"]),
        ("cat > f <<EOF\npip install wrong\nEOF\nls", ["cat", "ls"]),
        ("cd sub && ls", ["ls"]),
        ("a=(x 'y z'); a+=(w); run ${a[@]}", ["run x y z w"]),
        ("while ! ready; do sleep 1; done; go", ["ready", "(sleep 1)", "go"]),
        ("until pip install a; do retry; done", ["pip install a", "(retry)"]),
        ("( cd sub; x=1; exit 1 ); echo $x; y", ["y"]),
        ("exit 0\nnever", []),
        ("source ci.sh arg; after", ["inner arg", "after"]),
        ("eval 'pip install a'", ["pip install a"]),
        ("if [ 1 == 1 ]; then a; else b; fi", ["a"]),
        ("[[ -f ci.sh ]] && a; [[ -f other.sh ]] || b", ["a", "b"]),
        ("case $os in lin*|bsd) a ;; *) b ;; esac", ["a"]),
        ("! false && a", ["a"]),
        ("time a; time b", ["a", "b"]),
        ("x=$(date); [ $x = now ] && a", ["(a)"]),
        ("which a || install", ["which a", "(install)"]),
        ("if python -c 'import a'; then b; else c; fi", ["python -c import a", "(b)", "(c)"]),
    ],
)
def test_the_commands_of_a_text(text: str, commands: list[str]) -> None:
    assert run(text, {"ci.sh": "inner $1\nreturn\nnever"}, os="linux") == commands


@pytest.mark.parametrize(
    ("word", "expanded"),
    [
        ("$A", ["1", "2"]),
        ('"$A"', ["1 2"]),
        ("'$A'", ["$A"]),
        ("x${B}y", ["xy"]),
        ("$B", []),
        ('"$B"', [""]),
        ("${B:-d e}", ["d", "e"]),
        ("${V//./}", ["38"]),
        ("py${V/./}", ["py38"]),
        ("${V%.*}", ["3"]),
        ("${V##*.}", ["8"]),
        ("${V:0:1}", ["3"]),
        ("${A:+set}", ["set"]),
        ("a\\ b", ["a b"]),
        ("$PWD/x", [f"{ROOT}/x"]),
        ("$(pwd)/y", [f"{ROOT}/y"]),
    ],
)
def test_expansion(word: str, expanded: list[str]) -> None:
    found = fields(word, {"A": "1 2", "V": "3.8", "PWD": ROOT})
    assert [one.text for one in found] == expanded
    assert all(one.known for one in found)


@pytest.mark.parametrize(
    "word", ["$U", '"$U"', "x$(date)", "`date`", "$HOME/x", "~/x", "${U//./}", "${{ matrix.x }}", "<(a)"]
)
def test_what_is_not_known_keeps_its_text(word: str) -> None:
    (found,) = fields(word, {"U": None})
    assert not found.known
    assert found.text == word.strip('"')


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("[ $V = 3.8 ]", True),
        ("[ -z '' ]", True),
        ("[ -n '' -o 1 = 1 ]", True),
        ("[[ $V == 3.* && ! $V == 3.9 ]]", True),
        ("[[ ( $V == 2.7 || $V == 3.8 ) ]]", True),
        ("[[ $V =~ ^3\\.[78]$ ]]", None),
        ("[[ $V =~ ^(3.8|3.9) ]]", True),
        ("[ $V -gt 3 ]", None),
        ("[ 10 -gt 9 ]", True),
        ("[ $U = 1 ]", None),
        ("[ $U = 1 -o 1 = 1 ]", True),
        ("[ $U = 1 -a 1 = 2 ]", False),
        ("[ -v V ]", True),
        ("[[ -v MISSING ]]", False),
        ("[ ]", False),
        ("[ a = ]", None),
    ],
)
def test_conditions_have_three_values(condition: str, answer: bool | None) -> None:
    words = parse_shell(condition)[0][1].words
    assert holds(words, {"V": "3.8", "U": None}, lambda path: None) is answer


def test_variables_of_commands_of_later_steps_and_of_guarded_assignments() -> None:
    tree = Tree()
    shell = Shell(tree)
    shell.run('export A=1\nB=2 run\necho "C=3" >> $GITHUB_ENV\nif unknown; then export A=9; fi\nrun $A')
    assert dict(tree.commands[0].variables) == {"B": "2"}
    assert shell.later == {"C": "3"}
    assert not tree.commands[-1].words[1].known
    assert shell.environment() == {"A": None}


def test_a_broken_script_is_read_line_by_line() -> None:
    tree = Tree()
    shell = Shell(tree)
    shell.run("if [ 1 = 1\npip install a\necho 'b\npip install c")
    assert [command.text for command in tree.commands] == ["pip install a", "pip install c"]
    assert "not followed as a whole" in shell.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "for a in 1 2 3 4 5 6 7 8 9; do " * 8 + "x;" + " done;" * 8,
        "f() { f; f; }; f",
        "source a.sh",
        "! " * 5000 + "x",
        "((" * 5000,
        "$(" * 5000,
        "{ " * 5000,
        "if " * 5000,
        '"' + "$(x " * 3000,
        "x" * 300_000,
    ],
)
def test_scripts_without_end_come_to_one(text: str) -> None:
    begun = time.perf_counter()
    run(text, {"a.sh": "source a.sh; source a.sh; . a.sh"})
    assert time.perf_counter() - begun < 2


@given(st.text(alphabet=SHELL_CHARACTERS, max_size=80))
def test_no_text_raises(text: str) -> None:
    tree = Tree({"a.sh": text})
    Shell(tree, {"A": "1", "U": None}).run(f"{text}\nsource a.sh; bash a.sh")
    for command in tree.commands:
        meaning(command.words)
    value(text, {})
    fields(text, {})


@given(
    st.lists(
        st.text(min_size=1, max_size=12).filter(lambda one: "\n" not in one and "\r" not in one), min_size=1, max_size=5
    )
)
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    words = ["run", *(word for word in words if "\0" not in word)]
    tree = Tree()
    Shell(tree).run(" ".join(shlex.quote(word) for word in words))
    assert [word.text for word in tree.commands[0].words] == words


@given(st.text(alphabet=SHELL_CHARACTERS, max_size=60))
def test_a_parsed_text_parses_the_same_after_comments_and_blank_lines(text: str) -> None:
    try:
        parsed = parse_shell(text)
    except ShellSyntaxError:
        return
    if "\\" not in text and "<<" not in text:
        assert parse_shell(f"# comment\n\n{text}\n") == parsed


def test_names_of_targets_that_test() -> None:
    testing = ("test", "tests", "unit-tests", "py-test", "test:cov", "run_tests", "pytest", "test-all")
    others = (
        "lint",
        "docs",
        "test-docs",
        "latest",
        "contest",
        "typing-test",
        "install-test-deps",
        "attest",
        "clean-test",
    )
    assert all(map(sounds_like_tests, testing))
    assert not any(map(sounds_like_tests, others))


def test_words_of_a_command_know_whether_they_are_known() -> None:
    found = meaning([Word("pip"), Word("install"), Word("a==$V", known=False), Word("b")])
    assert found.installs.requirements == ("b",)
    assert found.installs.notes == ("'a==$V' is not known before it runs",)
