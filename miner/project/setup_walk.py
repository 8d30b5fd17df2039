"""The way through the statements of a setup.py up to its call of `setup()`. Nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from miner.project.setup_idioms import Unknown, add, bounded, dotted, items
from miner.project.setup_values import Evaluator

_OF_INTEREST = frozenset(
    {
        "name",
        "install_requires",
        "extras_require",
        "tests_require",
        "setup_requires",
        "packages",
        "py_modules",
        "package_dir",
        "python_requires",
    }
)


class Walk:
    """Walks a module once, keeping what simple assignments bind.

    Attributes:
        arguments: keyword -> value of the call of `setup()`; what is not understood is left out and noted. None
            where there is no call.
        version_tools: distributions that take the version from the version control system, as far as seen here.
    """

    def __init__(self, module: ast.Module, files: Mapping[str, bytes], path: str, notes: list[str]) -> None:
        self.arguments: dict[str, Any] | None = None
        self.version_tools: tuple[str, ...] = ()
        self._path, self._notes = path, notes
        self._evaluator = Evaluator(files, path, notes)
        self._run(module.body)
        if self.arguments is None:  # some projects call it inside a function
            self._run([inner for node in module.body if isinstance(node, ast.FunctionDef) for inner in node.body])

    def _run(self, body: list[ast.stmt]) -> None:
        for node in body:
            if self.arguments is None:
                self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                self._extend(name, value)
            case ast.Expr(value=ast.Call() as call) | ast.Return(value=ast.Call() as call):
                self._call(call)
            case ast.With(items=managers, body=body):
                for manager in managers:
                    if manager.optional_vars is not None:
                        self._bind(manager.optional_vars, manager.context_expr)
                self._run(body)
            case ast.If(test=test, body=body, orelse=orelse):
                self._branch(test, body, orelse)
            case ast.Try(body=body, orelse=orelse, finalbody=final):
                self._run([*body, *orelse, *final])

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
        if "versioneer" in names:
            self._found_tool("versioneer")

    def _found_tool(self, name: str) -> None:
        self.version_tools = tuple(dict.fromkeys((*self.version_tools, name)))

    def _branch(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        """Follow a condition on the Python version or platform; of another one both branches are read."""
        try:
            chosen = body if self._evaluator.value(test) else orelse
        except Unknown:
            self._note(test, "the condition is not evaluated, both branches are read")
            chosen = [*orelse, *body]
        self._run(chosen)

    def _bind(self, target: ast.expr, node: ast.expr) -> None:
        names = self._evaluator.names
        try:
            value = self._evaluator.value(node)
        except Unknown:
            if isinstance(target, ast.Name):
                names.pop(target.id, None)
            if isinstance(node, ast.Call):
                self._call(node)
            return
        match target:
            case ast.Name(id=name):
                names[name] = value
            case ast.Subscript(value=ast.Name(id=name), slice=key) if isinstance(names.get(name), dict):
                self._store(names[name], key, value)

    def _store(self, into: dict[Any, Any], key: ast.expr, value: Any) -> None:
        try:
            into[self._evaluator.value(key)] = value
        except (Unknown, TypeError):
            self._note(key, "a computed key is not read")

    def _extend(self, name: str, node: ast.expr) -> None:
        try:
            self._evaluator.names[name] = add(self._evaluator.names.get(name), self._evaluator.value(node))
        except Unknown:
            self._note(node, f"what is added to {name} is computed and not read")

    def _call(self, call: ast.Call) -> None:
        """Take the call of setup(), and follow `append`, `extend` and `update` on known names."""
        if dotted(call.func).split(".")[-1] == "setup":
            self.arguments = self._keywords(call)
        elif isinstance(call.func, ast.Attribute) and len(call.args) == 1:
            try:
                self._mutate(call.func, call.args[0])
            except Unknown:
                if call.func.attr in ("append", "extend", "update") and dotted(call.func.value):
                    self._note(call, f"what is added to {dotted(call.func.value)} is computed and not read")

    def _mutate(self, func: ast.Attribute, node: ast.expr) -> None:
        target, argument = self._evaluator.value(func.value), self._evaluator.value(node)
        match func.attr, target:
            case "append", list():
                target[:] = bounded([*target, argument])
            case "extend", list():
                target[:] = bounded([*target, *items(argument)])
            case "update", dict() if isinstance(argument, dict):
                target.update(argument)

    def _keywords(self, call: ast.Call) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for keyword in call.keywords:
            if keyword.arg in ("use_scm_version", "pbr"):
                self._found_tool("pbr" if keyword.arg == "pbr" else "setuptools-scm")
            try:
                value = self._evaluator.value(keyword.value)
            except Unknown:
                if keyword.arg is None or keyword.arg in _OF_INTEREST:
                    self._note(keyword.value, f"{keyword.arg or 'a mapping of arguments'} is computed and not read")
                continue
            if keyword.arg is not None:
                found[keyword.arg] = value
            elif isinstance(value, dict):
                found.update({key: item for key, item in value.items() if isinstance(key, str)})
        return found

    def _note(self, node: ast.expr, sentence: str) -> None:
        self._notes.append(f"{self._path}: line {node.lineno}: {sentence}")
