"""The tables that build back ends and their tools read besides the standard ones, poetry's apart.

Formats: https://flit.pypa.io/en/stable/pyproject_toml.html, https://backend.pdm-project.org,
https://hatch.pypa.io/latest/config/, https://setuptools.pypa.io/en/latest/userguide/pyproject_config.html.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from miner.project.model import Declarations, Declared, Group, GroupKind
from miner.project.requirements import read_requirements, relative
from miner.project.text import string, strings, table

_Table = Mapping[str, Any]

_HATCH_TEST = "hatch-test"
# What this environment of hatch itself holds, as far as tests use it.
_HATCH_TEST_DEPENDENCIES = ("pytest", "pytest-mock", "pytest-rerunfailures")


def read_flit(flit: _Table, path: str, notes: list[str]) -> Declarations:
    """Return what `[tool.flit]` declares: the module, and the metadata of flit before PEP 621."""
    where = f"{path}: tool.flit.metadata"
    old = table(flit, "metadata", f"{path}: tool.flit", notes)
    named = table(flit, "module", f"{path}: tool.flit", notes).get("name") or old.get("module")
    root, _, module = named.rpartition("/") if isinstance(named, str) else ("", "", "")
    extras = {name: items for name, items in table(old, "requires-extra", where, notes).items() if name != ".none"}
    if "dev-requires" in old:
        extras.setdefault("dev", old["dev-requires"])
    return Declarations(
        source=path,
        name=string(old.get("dist-name") or old.get("module"), f"{where}.dist-name", notes),
        requires_python=string(old.get("requires-python"), f"{where}.requires-python", notes),
        classifiers=strings(old.get("classifiers"), f"{where}.classifiers", notes),
        runtime=_declared(old.get("requires"), f"{where}.requires", notes) if old else None,
        groups=_groups(extras, GroupKind.EXTRA, f"{where}.requires-extra", notes),
        modules=(module,) if module else (),
        roots=(root,) if root else (),
    )


def read_pdm(pdm: _Table, path: str, notes: list[str]) -> Declarations:
    """Return what `[tool.pdm]` declares: development groups, and where the packages are."""
    where = f"{path}: tool.pdm"
    build = table(pdm, "build", where, notes)
    root = string(build.get("package-dir", pdm.get("package-dir")), f"{where}.build.package-dir", notes)
    groups = table(pdm, "dev-dependencies", where, notes)
    wins = table(table(pdm, "resolution", where, notes), "overrides", f"{where}.resolution", notes)
    return Declarations(
        source=path,
        groups=_groups(groups, GroupKind.DEPENDENCY_GROUP, f"{where}.dev-dependencies", notes),
        roots=() if root is None else (root.strip("./"),),
        overrides=tuple(_pdm_overrides(wins, f"{where}.resolution.overrides")),
    )


def _pdm_overrides(wins: _Table, where: str) -> Iterator[Declared]:
    for name, version in wins.items():
        if isinstance(version, str):
            exact = version[:1].isdigit()
            yield Declared(text=f"{name}=={version}" if exact else f"{name}{version}", source=where)


def read_hatch(hatch: _Table, path: str, notes: list[str]) -> Declarations:
    """Return what `[tool.hatch]` declares: environments, and the packages of the wheel."""
    where = f"{path}: tool.hatch"
    targets = table(table(hatch, "build", where, notes), "targets", f"{where}.build", notes)
    wheel = table(targets, "wheel", f"{where}.build.targets", notes)
    envs = table(hatch, "envs", where, notes)
    listed = wheel.get("packages", wheel.get("only-include"))
    packages = [item.strip("/") for item in strings(listed, f"{where}.build.targets.wheel.packages", notes)]
    return Declarations(
        source=path,
        groups=tuple(_hatch_environment(envs, name, where, notes) for name in envs),
        modules=tuple(posixpath.basename(item).removesuffix(".py") for item in packages),
        roots=tuple(dict.fromkeys(posixpath.dirname(item) for item in packages)),
    )


def _hatch_environment(envs: _Table, name: str, where: str, notes: list[str]) -> Group:
    """An environment takes each option that it does not set from its template, by default from `default`."""
    place = f"{where}.envs.{name}"
    env: dict[str, Any] = {}
    seen: list[str] = []
    following: Any = name
    while isinstance(following, str) and following in envs and following not in seen:
        seen.append(following)
        own = table(envs, following, f"{where}.envs", notes)
        env = {**own, **env}
        template = None if own.get("detached") is True or following == _HATCH_TEST else "default"
        following = own.get("template", template)
    if name == _HATCH_TEST:
        env.setdefault("dependencies", list(_HATCH_TEST_DEPENDENCIES))
    return Group(
        name=name,
        kind=GroupKind.HATCH,
        requirements=(
            *_declared(env.get("dependencies"), f"{place}.dependencies", notes),
            *_declared(env.get("extra-dependencies"), f"{place}.extra-dependencies", notes),
        ),
        extras=strings(env.get("features"), f"{place}.features", notes),
        groups=strings(env.get("dependency-groups"), f"{place}.dependency-groups", notes),
    )


def read_setuptools(tool: _Table, path: str, notes: list[str]) -> Declarations:
    """Return what `[tool.setuptools]` declares on where the packages are."""
    where = f"{path}: tool.setuptools"
    packages = tool.get("packages")
    find = table(packages, "find", f"{where}.packages", notes) if isinstance(packages, dict) else {}
    folders = {
        name: folder for name, folder in table(tool, "package-dir", where, notes).items() if isinstance(folder, str)
    }
    listed = () if isinstance(packages, dict) else strings(packages, f"{where}.packages", notes)
    where_dirs = strings(find.get("where"), f"{where}.packages.find.where", notes)
    return Declarations(
        source=path,
        modules=(*listed, *strings(tool.get("py-modules"), f"{where}.py-modules", notes)),
        roots=tuple(_folder(item) for item in (*where_dirs, *([folders[""]] if "" in folders else []))),
        package_dirs=tuple((name, _folder(folder)) for name, folder in folders.items() if name),
    )


def read_dynamic(files: Mapping[str, bytes], tools: _Table, path: str, notes: list[str]) -> Declarations:
    """Return the requirements that are taken from files: `[tool.setuptools.dynamic]` and hatch-requirements-txt."""
    where = f"{path}: tool.setuptools.dynamic"
    dynamic = table(table(tools, "setuptools", f"{path}: tool", notes), "dynamic", f"{path}: tool.setuptools", notes)
    hooks = table(table(table(tools, "hatch", "", []), "metadata", "", []), "hooks", "", [])
    hatch_files = table(hooks, "requirements_txt", f"{path}: tool.hatch.metadata.hooks", notes).get("files")
    names = (
        *_file_names(table(dynamic, "dependencies", where, notes).get("file"), f"{where}.dependencies", notes),
        *_file_names(hatch_files, f"{path}: tool.hatch.metadata.hooks.requirements_txt.files", notes),
    )
    extras = {
        extra: _file_names(entry.get("file"), f"{where}.optional-dependencies.{extra}", notes)
        for extra, entry in table(dynamic, "optional-dependencies", where, notes).items()
        if isinstance(entry, dict)
    }

    def read(listed: tuple[str, ...]) -> tuple[Declared, ...]:
        return tuple(item for name in listed for item in read_requirements(files, relative(path, name), notes))

    return Declarations(
        source=path,
        runtime=read(names) if names else None,
        groups=tuple(
            Group(name=extra, kind=GroupKind.EXTRA, requirements=read(listed)) for extra, listed in extras.items()
        ),
    )


def _file_names(value: Any, where: str, notes: list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else strings(value, where, notes)


def read_uv(uv: _Table, path: str, notes: list[str]) -> Declarations:
    """Return what `[tool.uv]` declares: bounds on versions, where other projects of the repository lie, old groups.

    Format: https://docs.astral.sh/uv/reference/settings/. A source of a workspace has no folder here: "".
    """
    where = f"{path}: tool.uv"
    old = {"dev": uv["dev-dependencies"]} if "dev-dependencies" in uv else {}
    backend = table(uv, "build-backend", where, notes)
    root, module = backend.get("module-root"), backend.get("module-name")
    named = [module] if isinstance(module, str) else strings(module, f"{where}.build-backend.module-name", notes)
    return Declarations(
        source=path,
        groups=_groups(old, GroupKind.DEPENDENCY_GROUP, f"{where}.dev-dependencies", notes),
        constraints=_declared(uv.get("constraint-dependencies"), f"{where}.constraint-dependencies", notes),
        overrides=_declared(uv.get("override-dependencies"), f"{where}.override-dependencies", notes),
        build_constraints=_declared(
            uv.get("build-constraint-dependencies"), f"{where}.build-constraint-dependencies", notes
        ),
        local=tuple(_uv_sources(table(uv, "sources", where, notes), path)),
        modules=tuple(named),
        roots=(root.strip("/"),) if isinstance(root, str) else (),
    )


def _uv_sources(sources: _Table, path: str) -> Iterator[tuple[str, str]]:
    for name, entries in sources.items():
        for entry in entries if isinstance(entries, list) else [entries]:
            if isinstance(entry, dict) and entry.get("workspace") is True:
                yield name, ""
            elif isinstance(entry, dict) and isinstance(entry.get("path"), str):
                yield name, relative(path, entry["path"])


def read_maturin(maturin: _Table, path: str, notes: list[str]) -> Declarations:
    """Return where the Python sources of a project that maturin builds are (https://www.maturin.rs/config.html)."""
    root = string(maturin.get("python-source"), f"{path}: tool.maturin.python-source", notes)
    module = string(maturin.get("module-name"), f"{path}: tool.maturin.module-name", notes)
    return Declarations(
        source=path,
        modules=(module.partition(".")[0],) if module else (),
        roots=(root.strip("/"),) if root else ("python",),
    )


def read_scikit_build(scikit: _Table, path: str, notes: list[str]) -> Declarations:
    """Return the packages that scikit-build-core puts into the wheel."""
    where = f"{path}: tool.scikit-build"
    wheel = table(scikit, "wheel", where, notes)
    listed = wheel.get("packages")
    named = list(listed.values()) if isinstance(listed, dict) else listed
    packages = [item.strip("/") for item in strings(named, f"{where}.wheel.packages", notes)]
    return Declarations(
        source=path,
        modules=tuple(posixpath.basename(item) for item in packages),
        roots=tuple(dict.fromkeys(posixpath.dirname(item) for item in packages)),
    )


def _groups(content: _Table, kind: GroupKind, where: str, notes: list[str]) -> tuple[Group, ...]:
    return tuple(
        Group(name=name, kind=kind, requirements=_declared(items, f"{where}.{name}", notes))
        for name, items in content.items()
    )


def _folder(text: str) -> str:
    return "" if text in (".", "./") else text.strip("/").removeprefix("./")


def _declared(value: Any, where: str, notes: list[str]) -> tuple[Declared, ...]:
    return tuple(Declared(text=text, source=where) for text in strings(value, where, notes))
