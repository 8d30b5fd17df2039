"""A build front end (PEP 517, PEP 660) of our own, from Python 3.6 on: one file, nothing but the standard library.

It runs in boxes, and from `/opt/build` in images, with the interpreter whose environment holds the build requirements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

NO_HOOK = 3
"""Exit code of the front end where the back end does not know the hook."""

PROGRAM = '''\
"""hooks.py ask|build HOOK BACKEND BACKEND_PATH TO -- or hooks.py develop: run in the folder of a project."""
import importlib
import json
import os
import sys
import tokenize

del sys.path[0]


def load(name, path):
    sys.path[:0] = [os.path.abspath(item) for item in path]
    module, _, rest = name.partition(":")
    found = importlib.import_module(module)
    for part in rest.split(".") if rest else []:
        found = getattr(found, part)
    return found


def ask(backend, hook, to):
    found = getattr(backend, "get_requires_for_" + hook, None)
    if found is None and not hasattr(backend, hook):
        found = getattr(backend, "get_requires_for_build_wheel", None)
    with open(to, "w") as file:
        json.dump(sorted(found()) if found else [], file)


def build(backend, hook, to):
    if not hasattr(backend, hook):
        print("the back end has no hook " + hook)
        sys.exit(3)
    if not os.path.isdir(to):
        os.makedirs(to)
    name = getattr(backend, hook)(to)
    with open(os.path.join(to, "built.json"), "w") as file:
        json.dump(name, file)


def develop():
    import setuptools

    sys.path.insert(0, os.getcwd())
    sys.argv = ["setup.py", "develop", "--no-deps"]
    if not os.path.exists("setup.py"):
        setuptools.setup()
        return
    with tokenize.open("setup.py") as file:
        text = file.read()
    exec(compile(text, "setup.py", "exec"), {"__file__": os.path.abspath("setup.py"), "__name__": "__main__"})


if sys.argv[1] == "develop":
    develop()
else:
    action, hook, name, path, to = sys.argv[1:]
    to = os.path.abspath(to)
    {"ask": ask, "build": build}[action](load(name, json.loads(path)), hook, to)
'''

_SETUPTOOLS = re.compile(r"setuptools(?:\.|:|$)")


def is_setuptools(backend: str) -> bool:
    """Whether a back end is that of setuptools."""
    return _SETUPTOOLS.match(backend) is not None


def unsatisfied(asked: Iterable[object], packages: Mapping[str, str], python: str) -> tuple[str, ...]:
    """Return what of the requirements that a back end asks for is not among the installed packages.

    Args:
        asked: PEP 508 strings, as a back end gave them; what is none is left out.
        packages: name -> version of what is installed.
        python: "3.8", for markers.
    """
    missing = []
    for text in asked:
        requirement = _requirement(text)
        if requirement is None or not applies(requirement, python):
            continue
        version = packages.get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            missing.append(str(requirement))
    return tuple(dict.fromkeys(missing))


def _requirement(text: object) -> Requirement | None:
    try:
        return Requirement(text) if isinstance(text, str) else None
    except InvalidRequirement:
        return None


def applies(requirement: Requirement, python: str) -> bool:
    """Whether a requirement's marker holds in a box with CPython X.Y."""
    if requirement.marker is None:
        return True
    ours = {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux",
        "extra": "",
    }
    return requirement.marker.evaluate(ours)
