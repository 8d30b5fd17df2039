"""Sessions of a noxfile.py: what they install and run, read by AST.

Format: https://nox.thea.codes/en/stable/config.html. Only constants are computed; a condition that is not constant
leaves what it guards out, and a loop over constants is unrolled.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Sequence

from miner.project.ci.nox_file import Noxfile, read_noxfile
from miner.project.ci.nox_values import UNKNOWN, Scope, evaluate, truth
from miner.project.ci.reading import Reading
from miner.project.ci.tree import Tree
from miner.project.command_options import split_options
from miner.project.commands import Meaning, sounds_like_tests
from miner.project.installs import conda_install, pip
from miner.project.shell import Command, Shell
from miner.project.shell_words import Word

_VALUED = frozenset(
    {"-s", "--sessions", "--session", "-e", "-f", "--noxfile", "-p", "--python", "--pythons", "-k", "-t", "--tags"}
    | {"--envdir", "-db", "--default-venv-backend", "-fb", "--force-venv-backend", "--report", "-P", "--force-python"}
)
_RUNS = frozenset({"run", "run_always", "run_install", "_run"})
_DEEPEST = 5
_MAX_ITEMS = 20


def follow_nox(reading: Reading, found: Meaning, shell: Shell, guarded: bool) -> bool:
    """Follow `nox`: the session that it runs; of several, all that test."""
    chosen, asked, unknown = "noxfile.py", list[str](), False
    words = found.arguments
    for at, word in enumerate(words):
        if word.text in ("-s", "--sessions", "--session", "-e"):
            names = list(_until_option(words[at + 1 :]))
            asked += [name for held in names for name in held.text.split(",") if held.known]
            unknown = unknown or not all(held.known for held in names)
    for option, held in split_options(words, _VALUED):
        if option in ("-f", "--noxfile"):
            chosen = held.text
        elif option in ("-s", "--sessions", "--session") and held.known and held.text not in asked:
            asked.append(held.text)
        elif option in ("-p", "--python", "--pythons") and held.known:
            reading.set_python(held.text)
    asked = asked or [name for name in (shell.variables.get("NOXSESSION") or "").split(",") if name]
    path = reading.tree.inside(shell.path(chosen))
    noxfile = read_noxfile(reading.tree, path, reading.notes) if path is not None else None
    if noxfile is None or (unknown and not asked):
        return False
    names_ = _named(noxfile, asked)
    for name in names_:
        run_session(reading, noxfile, name, shell, guarded=guarded)
    return bool(names_)


def _until_option(words: Sequence[Word]) -> Iterator[Word]:
    for word in words:
        if word.text.startswith("-"):
            return
        yield word


def _named(noxfile: Noxfile, asked: Sequence[str]) -> list[str]:
    """Return the sessions of these names, with `-3.8` or `(django='3')` at their end or without."""
    if asked:
        plain = [re.sub(r"\(.*\Z", "", name) for name in asked]
        found = [name if name in noxfile.sessions else re.sub(r"-\d[\w.]*\Z|-pypy.*\Z", "", name) for name in plain]
        return [name for name in found if name in noxfile.sessions]
    names = [name for name in noxfile.defaults or tuple(noxfile.sessions) if name in noxfile.sessions]
    testing = [name for name in names if sounds_like_tests(name)]
    return testing[:1] or names


def run_session(reading: Reading, noxfile: Noxfile, name: str, shell: Shell, *, guarded: bool = False) -> None:
    """Read one session."""
    key = f"nox {name}"
    if not reading.once(key):
        return
    pythons = noxfile.pythons.get(name) or noxfile.pythons.get(noxfile.sessions[name].name, ())
    for version in pythons if not reading.pythons else ():
        reading.set_python(version)
    with reading.entering(key), reading.isolated():
        function = noxfile.sessions[name]
        arguments: dict[str, object] = dict.fromkeys((item.arg for item in function.args.args), UNKNOWN)
        arguments.update(noxfile.parameters.get(function.name, {}))
        inner = shell.child()
        session = function.args.args[0].arg if function.args.args else "session"
        walk = _Walk(reading, noxfile, inner, name)
        walk.body(function.body, Scope({**noxfile.scope.values, **arguments}, session, reading.python), guarded)


class _Walk:
    """The statements of a session, in order."""

    def __init__(self, reading: Reading, noxfile: Noxfile, shell: Shell, name: str) -> None:
        """Walk in a shell."""
        self._reading = reading
        self._noxfile = noxfile
        self._shell = shell
        self._name = name
        self._depth = 0

    def body(self, nodes: Sequence[ast.stmt], scope: Scope, guarded: bool) -> None:
        for node in nodes:
            if not self._reading.budget.spend():
                return
            self._statement(node, scope, guarded)

    def _statement(self, node: ast.stmt, scope: Scope, guarded: bool) -> None:
        match node:
            case ast.Expr(value=ast.Call() as call):
                self._call(call, scope, guarded)
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value, scope, guarded)
            case ast.AugAssign(target=ast.Name(id=name), value=value, op=ast.Add()):
                scope.values[name] = scope.add(
                    scope.values.get(name, UNKNOWN), UNKNOWN if guarded else evaluate(value, scope)
                )
            case ast.If():
                self._if(node, scope, guarded)
            case ast.For(target=ast.Name(id=name)):
                self._for(node, name, scope, guarded)
            case ast.With():
                self.body(node.body, scope, guarded)
            case ast.Try():
                self.body([*node.body, *node.orelse, *node.finalbody], scope, guarded)
            case _:
                return

    def _assign(self, target: ast.expr, value: ast.expr, scope: Scope, guarded: bool) -> None:
        held = UNKNOWN if guarded else evaluate(value, scope)
        if isinstance(value, ast.Call):
            self._call(value, scope, guarded)
        if isinstance(target, ast.Name):
            scope.values[target.id] = held
        elif isinstance(target, ast.Subscript) and ast.unparse(target.value) == f"{scope.session}.env":
            name = evaluate(target.slice, scope)
            if isinstance(name, str):
                self._shell.variables[name] = held if isinstance(held, str) else None
                self._shell.exported.add(name)

    def _if(self, node: ast.If, scope: Scope, guarded: bool) -> None:
        holds = truth(node.test, scope)
        if holds is not False:
            self.body(node.body, scope, guarded or holds is None)
        if not holds:
            self.body(node.orelse, scope, guarded or holds is None)

    def _for(self, node: ast.For, name: str, scope: Scope, guarded: bool) -> None:
        items = evaluate(node.iter, scope)
        if not isinstance(items, list) or len(items) > _MAX_ITEMS:
            scope.values[name] = UNKNOWN
            self.body(node.body, scope, guarded=True)
            return
        for item in items:
            scope.values[name] = item
            self.body(node.body, scope, guarded)

    def _call(self, call: ast.Call, scope: Scope, guarded: bool) -> None:
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            holder, method = call.func.value.id, call.func.attr
            if holder == scope.session:
                self._of_session(method, call, scope, guarded)
            elif method in ("append", "extend") and isinstance(scope.values.get(holder), list) and call.args:
                added = evaluate(call.args[0], scope)
                scope.values[holder] = scope.add(scope.values[holder], [added] if method == "append" else added)
        elif isinstance(call.func, ast.Name) and call.func.id in self._noxfile.functions:
            self._helper(self._noxfile.functions[call.func.id], call, scope, guarded)

    def _helper(self, function: ast.FunctionDef, call: ast.Call, scope: Scope, guarded: bool) -> None:
        """Follow a function of the file that is given the session."""
        if self._depth >= _DEEPEST:
            return
        names = [item.arg for item in function.args.args]
        given: dict[str, object] = dict.fromkeys(names, UNKNOWN)
        defaults = function.args.defaults
        given.update(
            zip(names[len(names) - len(defaults) :], (evaluate(item, scope) for item in defaults), strict=False)
        )
        session = ""
        for name, argument in zip(names, call.args, strict=False):
            given[name] = evaluate(argument, scope)
            session = name if isinstance(argument, ast.Name) and argument.id == scope.session else session
        for item in call.keywords:
            if item.arg:
                given[item.arg] = evaluate(item.value, scope)
                session = item.arg if isinstance(item.value, ast.Name) and item.value.id == scope.session else session
        self._depth += 1
        self.body(function.body, Scope({**self._noxfile.scope.values, **given}, session, scope.python), guarded)
        self._depth -= 1

    def _of_session(self, method: str, call: ast.Call, scope: Scope, guarded: bool) -> None:
        words = list(_words(call.args, scope))
        if method in ("install", "conda_install", "poetry_install"):
            if guarded:
                self._reading.note(f"what session {self._name} installs under a condition is left out")
                return
            read = conda_install if method == "conda_install" else pip
            self._reading.install(read(words), self._shell.folder, f"{self._reading.source} (nox {self._name})")
        elif method in _RUNS and words:
            self._run(words, call, scope, guarded)
        elif method in ("chdir", "cd") and words:
            self._shell.folder = self._shell.path(words[0].text) if words[0].known else "/unknown"
        elif method == "notify" and words and words[0].text in self._noxfile.sessions:
            run_session(self._reading, self._noxfile, words[0].text, self._shell, guarded=guarded)

    def _run(self, words: Sequence[Word], call: ast.Call, scope: Scope, guarded: bool) -> None:
        given = next((item.value for item in call.keywords if item.arg == "env"), None)
        env = evaluate(given, scope) if given is not None else None
        variables = (
            {str(name): held if isinstance(held, str) else None for name, held in env.items()}
            if isinstance(env, dict)
            else {}
        )
        self._reading.command(Command(tuple(words), variables, self._shell.folder, guarded), self._shell)


def _words(arguments: Sequence[ast.expr], scope: Scope) -> Iterator[Word]:
    for argument in arguments:
        held = evaluate(argument.value if isinstance(argument, ast.Starred) else argument, scope)
        if isinstance(argument, ast.Starred):
            for item in held if isinstance(held, list) else ():
                yield Word(item) if isinstance(item, str) else Word("?", known=False)
            if not isinstance(held, list):
                yield Word(f"*{ast.unparse(argument.value)}", known=False)
        elif isinstance(held, str):
            yield Word(held)
        else:
            yield Word(f"${{{ast.unparse(argument)[:80]}}}", known=False)


def nox_jobs(tree: Tree) -> Iterator[Reading]:
    """Yield the sessions of the project's own noxfile that test, as jobs of their own."""
    path = posixpath.join(tree.folder, "noxfile.py")
    noxfile = read_noxfile(tree, path, [])
    if noxfile is None:
        return
    for name in noxfile.sessions:
        reading = Reading(tree, f"{path}: {name}")
        run_session(reading, noxfile, name, reading.shell(tree.folder))
        if reading.tests:
            yield reading
