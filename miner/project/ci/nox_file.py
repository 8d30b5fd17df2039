"""The sessions that a noxfile.py declares, by AST. The file is never executed.

Format: https://nox.thea.codes/en/stable/config.html.
"""

from __future__ import annotations

import ast

from miner.project.ci.nox_values import UNKNOWN, Scope, evaluate
from miner.project.ci.tree import Tree


class Noxfile:
    """The sessions of a noxfile, and the constants and functions that they use.

    Attributes:
        sessions: name -> function, in order.
        pythons: name -> versions that its decorator names.
        defaults: `nox.options.sessions`.
    """

    def __init__(self, tree: ast.Module) -> None:
        """Read a parsed noxfile."""
        self.scope = Scope({})
        self.functions: dict[str, ast.FunctionDef] = {}
        self.sessions: dict[str, ast.FunctionDef] = {}
        self.pythons: dict[str, tuple[str, ...]] = {}
        self.parameters: dict[str, dict[str, object]] = {}
        self.defaults: tuple[str, ...] = ()
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
                self._session(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                self._constant(node)

    def _constant(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        held = evaluate(node.value, self.scope) if node.value is not None else UNKNOWN
        for target in targets:
            if isinstance(target, ast.Name):
                self.scope.values[target.id] = held
            elif ast.unparse(target) == "nox.options.sessions":
                self.defaults = _texts(held)

    def _session(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            name = ast.unparse(call.func if call else decorator)
            options = {item.arg: evaluate(item.value, self.scope) for item in call.keywords} if call else {}
            if name in ("nox.session", "session", "nox_poetry.session"):
                first = evaluate(call.args[0], self.scope) if call and call.args else None
                title = options.get("name") or node.name
                self.sessions[str(title)] = node
                self.pythons[str(title)] = _texts(options.get("python", options.get("py", first)))
            elif name in ("nox.parametrize", "parametrize") and call and len(call.args) >= 2:
                self._parameter(node.name, evaluate(call.args[0], self.scope), evaluate(call.args[1], self.scope))

    def _parameter(self, function: str, names: object, choices: object) -> None:
        """Take the last choice of a parameter, which is the newest where versions are listed."""
        if not isinstance(names, str) or not isinstance(choices, list) or not choices:
            return
        keys = [name.strip() for name in names.split(",")]
        last = choices[-1] if len(keys) > 1 and isinstance(choices[-1], list) else [choices[-1]]
        held = self.parameters.setdefault(function, {})
        held.update(zip(keys, last, strict=False))
        if "python" in keys:
            self.pythons[function] = _texts(
                [choice[keys.index("python")] if isinstance(choice, list) else choice for choice in choices]
            )


def _texts(held: object) -> tuple[str, ...]:
    if isinstance(held, str):
        return (held,)
    return tuple(str(item) for item in held if isinstance(item, (str, float))) if isinstance(held, list) else ()


def read_noxfile(tree: Tree, path: str, notes: list[str]) -> Noxfile | None:
    """Return the sessions of a file of the tree; None where it is no Python."""
    return tree.once("nox", path, lambda: _parse(tree, path, notes))


def _parse(tree: Tree, path: str, notes: list[str]) -> Noxfile | None:
    text = tree.text(path, notes)
    if text is None:
        return None
    try:
        return Noxfile(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        notes.append(f"{path}: cannot be parsed ({type(error).__name__})")
        return None
