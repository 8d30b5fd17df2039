"""setup.cfg: the declarative form of setuptools, and pbr's sections.

Formats: https://setuptools.pypa.io/en/latest/userguide/declarative_config.html, https://docs.openstack.org/pbr/latest/user/using.html.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from packaging.requirements import InvalidRequirement

from miner.project.model import Declarations, Declared, Group, GroupKind, Traps
from miner.project.requirements import read_requirements, relative
from miner.project.text import lines, read_ini
from miner.project.versions import requirement_of

_Section = Mapping[str, str]


def read_setup_cfg(files: Mapping[str, bytes], path: str) -> Declarations:
    """Return what a setup.cfg declares."""
    notes: list[str] = []
    sections = read_ini(files, path, notes)
    metadata, options = _section(sections, "metadata"), _section(sections, "options")
    find = {**_section(sections, "options.packages.find"), **_section(sections, "options.packages.find_namespace")}
    folders = dict(_pair(item) for item in _values(options.get("package_dir", "")))
    packages = options.get("packages", "")
    listed = () if packages.strip().startswith("find") else _values(packages)
    return Declarations(
        source=path,
        name=_plain(metadata.get("name")),
        version=_plain(metadata.get("version")),
        requires_python=_plain(options.get("python_requires") or metadata.get("python_requires")),
        classifiers=_values(metadata.get("classifiers") or metadata.get("classifier", "")),
        runtime=_requirements(files, options, "install_requires", path, notes),
        groups=_groups(files, sections, path, notes),
        setup_requires=_requirements(files, options, "setup_requires", path, notes) or (),
        version_tools=("versioneer",) if "versioneer" in sections else (),
        traps=Traps(
            use_2to3=options.get("use_2to3", "").strip().lower() in ("1", "true", "yes", "on"),
            namespace_packages=bool(options.get("namespace_packages", "").strip()),
        ),
        modules=(
            *listed,
            *_values(options.get("py_modules", "")),
            *_values(_section(sections, "files").get("packages", "")),
        ),
        roots=tuple(
            _folder(item) for item in (*_values(find.get("where", "")), *([folders[""]] if "" in folders else []))
        ),
        package_dirs=tuple((name, _folder(folder)) for name, folder in folders.items() if name),
        notes=tuple(notes),
    )


def _section(sections: Mapping[str, _Section], name: str) -> _Section:
    """Return a section with its keys in the modern spelling (`python-requires` was accepted once)."""
    return {key.lower().replace("-", "_"): value for key, value in sections.get(name, {}).items()}


def _groups(
    files: Mapping[str, bytes], sections: Mapping[str, _Section], path: str, notes: list[str]
) -> tuple[Group, ...]:
    found = []
    for name in ("options.extras_require", "extras"):  # the second one is pbr's
        section = sections.get(name, {})
        for extra in section:
            items = _requirements(files, section, extra, f"{path}: {name}.{extra}", notes, folder_of=path)
            found.append(Group(name=extra.split(":")[0], kind=GroupKind.EXTRA, requirements=items or ()))
    tests = _requirements(files, _section(sections, "options"), "tests_require", path, notes)
    if tests:
        found.append(Group(name="tests_require", kind=GroupKind.TESTS_REQUIRE, requirements=tests))
    return tuple(found)


def _requirements(
    files: Mapping[str, bytes], section: _Section, key: str, path: str, notes: list[str], folder_of: str = ""
) -> tuple[Declared, ...] | None:
    """Read a list of requirements, or the files that `file: a, b` names."""
    if key not in section:
        return None
    value, where = section[key], path if folder_of else f"{path}: options.{key}"
    if value.strip().startswith("file:"):
        names = [name for name in value.strip().removeprefix("file:").replace("\n", ",").split(",") if name.strip()]
        return tuple(
            item for name in names for item in read_requirements(files, relative(folder_of or path, name), notes)
        )
    return tuple(Declared(text=text, source=where) for text in requirement_list(value))


def requirement_list(value: str) -> tuple[str, ...]:
    """Split a value as setuptools does: by lines, or a single line at semicolons where it is not one requirement.

    A backslash at the end of a line joins it with the next one.
    """
    value = re.sub(r"\s*\\\s*\n\s*", " ", value)
    value = re.sub(r"[ \t]+#[^\n]*", "", value)
    if "\n" in value.strip():
        return lines(value)
    try:
        return (str(requirement_of(value)),)
    except InvalidRequirement:
        return tuple(item.strip() for item in value.split(";") if item.strip())


def _values(value: str) -> tuple[str, ...]:
    """Split a list: by lines, or a single line at commas."""
    return lines(value) if "\n" in value.strip() else tuple(item.strip() for item in value.split(",") if item.strip())


def _plain(value: str | None) -> str | None:
    """Return a literal value; `attr:` and `file:` stand for something that is computed."""
    return None if value is None or value.startswith(("attr:", "file:")) else value.strip() or None


def _pair(text: str) -> tuple[str, str]:
    name, _, folder = text.partition("=")
    return name.strip(), folder.strip()


def _folder(text: str) -> str:
    return "" if text in (".", "./") else text.strip("/").removeprefix("./")
