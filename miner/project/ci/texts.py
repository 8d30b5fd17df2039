"""YAML in which every scalar is a text, as it was written, so that 3.10 stays 3.10; bounded, and never an error."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import yaml

from miner.project.ci.tree import Tree
from miner.project.text import decode

_MAX_BYTES = 400_000
_MAX_NODES = 100_000
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _TextLoader(_Base):  # type: ignore[misc]  # one of two classes, by how PyYAML was built
    """A safe loader without types; `<<` merges still, and a tag that nobody knows changes nothing."""

    yaml_implicit_resolvers = {"<": [("tag:yaml.org,2002:merge", re.compile(r"<<\Z"))]}  # noqa: RUF012 - PyYAML's own way

    def flatten_mapping(self, node: Any) -> None:
        """Merge as the base class does, and keep each key once: merges of merges would grow without bound."""
        super().flatten_mapping(node)
        last = {pair[0].value if isinstance(pair[0], yaml.ScalarNode) else id(pair[0]): pair for pair in node.value}
        node.value = list(last.values())


def _plain(loader: Any, node: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


for _tag in (
    None,
    "tag:yaml.org,2002:null",
    "tag:yaml.org,2002:bool",
    "tag:yaml.org,2002:int",
    "tag:yaml.org,2002:float",
    "tag:yaml.org,2002:timestamp",
    "tag:yaml.org,2002:binary",
    "tag:yaml.org,2002:set",
    "tag:yaml.org,2002:omap",
    "tag:yaml.org,2002:pairs",
):
    _TextLoader.add_constructor(_tag, _plain)


def load_texts(tree: Tree, path: str, notes: list[str]) -> dict[str, Any]:
    """Return the mapping that a YAML file of the tree holds; empty, with a note, where it is none."""
    data = tree.files.get(path)
    if data is None:
        return {}
    if len(data) > _MAX_BYTES:
        notes.append(f"{path}: is too large to be read")
        return {}
    text = decode(data, path, notes)
    content, problem = _load(text) if text is not None else ({}, "")
    if problem:
        notes.append(f"{path}: {problem}")
    return content


@lru_cache(maxsize=32)
def _load(text: str) -> tuple[dict[str, Any], str]:
    """Return what a text holds, which nobody changes, and what is wrong with it."""
    try:
        content = yaml.load(text, Loader=_TextLoader)  # noqa: S506 - it derives from a safe loader
        if _size(content, {}, set()) > _MAX_NODES:
            return {}, "its aliases unfold to too much"
    except yaml.MarkedYAMLError as error:
        line = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        return {}, f"is not valid YAML{line}"
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return {}, "is not valid YAML"
    if not isinstance(content, dict):
        return {}, "" if content in (None, "") else "holds no mapping"
    return content, ""


def _size(value: Any, known: dict[int, int], active: set[int]) -> int:
    """Count nodes as if aliases were written out; one that holds itself is endless."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) in active:
        return _MAX_NODES + 1
    if id(value) not in known:
        active.add(id(value))
        children = value.values() if isinstance(value, dict) else value
        total = 1
        for child in children:
            total = min(total + _size(child, known, active), _MAX_NODES + 1)
        known[id(value)] = total
        active.discard(id(value))
    return known[id(value)]


def mapping(value: Any) -> dict[str, Any]:
    """Return a mapping with texts as keys; empty where it is something else."""
    return {key: held for key, held in value.items() if isinstance(key, str)} if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """Return a list; a single value that is not empty is a list of one."""
    if isinstance(value, list):
        return value
    return [] if value in (None, "", "~", "null", {}) else [value]


def text(value: Any) -> str:
    """Return a text; "" where it is something else."""
    return value if isinstance(value, str) else ""
