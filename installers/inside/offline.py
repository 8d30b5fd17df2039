"""Builds a project by its back end (PEP 517, PEP 660), and installs a wheel: in boxes, and from `/opt/build` in images.

It runs with the interpreter of the environment in question, on every Python from 3.6 on, so it has nothing but the
standard library and no newer syntax. It is never imported.

    offline.py ask HOOK BACKEND BACKEND_PATH FILE      what the back end needs for a hook, as JSON
    offline.py build HOOK BACKEND BACKEND_PATH FOLDER  calls the hook; its wheel, and its name in built.json
    offline.py develop                                 a link as `setup.py develop` makes it
    offline.py install FOLDER                          the one wheel of a folder, in the place of what is there

Sources: PyPA specifications "Binary distribution format", "Recording installed projects", "Entry points".
"""

import base64
import configparser
import csv
import hashlib
import importlib
import io
import json
import os
import re
import shutil
import sys
import sysconfig
import tokenize
import zipfile

NO_HOOK = 3
SCRIPT = """\
#!{python}
import sys
from {module} import {first}
if __name__ == "__main__":
    sys.exit({call}())
"""


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
        sys.exit(NO_HOOK)
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


def normal(info):
    """Return the name of a distribution, from its .dist-info folder, as all spellings of it have it."""
    return re.sub("[-_.]+", "-", info[: -len(".dist-info")].rsplit("-", 1)[0]).lower()


def remove(site, name):
    """Remove what is installed of a distribution, as far as its RECORD names it and it lies in the environment."""
    root = os.path.realpath(sys.prefix)
    for info in os.listdir(site):
        if not info.endswith(".dist-info") or normal(info) != name:
            continue
        record = os.path.join(site, info, "RECORD")
        rows = []
        if os.path.exists(record):
            with open(record, encoding="utf-8", newline="") as file:
                rows = [row[0] for row in csv.reader(file) if row]
        folders = set()
        for row in rows:
            path = os.path.normpath(os.path.join(site, row))
            if os.path.realpath(os.path.dirname(path)).startswith(root + os.sep) and os.path.lexists(path):
                os.unlink(path)
                folders.add(os.path.dirname(path))
        shutil.rmtree(os.path.join(site, info), ignore_errors=True)
        for folder in sorted(folders, key=len, reverse=True):
            remove_empty(folder, root, site)


def remove_empty(folder, root, site):
    """Remove a folder and those above it that hold nothing any more."""
    while folder.startswith(root + os.sep) and folder != site:
        if os.path.isdir(folder):
            if os.listdir(folder):
                return
            os.rmdir(folder)
        folder = os.path.dirname(folder)


class Wheel:
    """A wheel on its way into the environment of this interpreter."""

    def __init__(self, archive):
        self.archive = archive
        names = archive.namelist()
        self.info = next(name.split("/")[0] for name in names if re.match(r"[^/]+\.dist-info/WHEEL$", name))
        self.data = self.info[: -len(".dist-info")] + ".data/"
        text = archive.read(self.info + "/WHEEL").decode("utf-8").lower()
        pure = re.search(r"^root-is-purelib:\s*true", text, re.M)
        self.site = sysconfig.get_path("purelib" if pure else "platlib")
        self.scripts = sysconfig.get_path("scripts")
        self.rows = []

    def install(self):
        for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
            remove(place, normal(self.info))
        for item in self.archive.infolist():
            if not item.filename.endswith("/") and item.filename != self.info + "/RECORD":
                mode = 0o755 if item.external_attr >> 16 & 0o111 else 0o644
                self.put(self.archive.read(item), mode, *self.place(item.filename))
        self.entry_points()
        self.put(b"swe-miner\n", 0o644, os.path.join(self.site, self.info, "INSTALLER"))
        self.record()

    def place(self, name):
        """Return where a file goes, and whether it is a script."""
        if not name.startswith(self.data):
            return os.path.join(self.site, name), False
        kind, _, rest = name[len(self.data) :].partition("/")
        version = "python" + sysconfig.get_python_version()
        headers = os.path.join(sys.prefix, "include", "site", version, normal(self.info))
        root = {"scripts": self.scripts, "data": sys.prefix, "headers": headers}.get(kind, self.site)
        return os.path.join(root, rest), kind == "scripts"

    def put(self, data, mode, path, script=False):
        path = os.path.normpath(path)
        if script:
            mode, data = 0o755, re.sub(rb"\A#!pythonw?(?=[ \r\n])", b"#!" + os.fsencode(sys.executable), data)
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append((os.path.relpath(path, self.site), "sha256=" + digest, len(data)))

    def entry_points(self):
        name = self.info + "/entry_points.txt"
        if name not in self.archive.namelist():
            return
        parser = configparser.ConfigParser(delimiters="=", strict=False, interpolation=None)
        parser.optionxform = str
        parser.read_string(self.archive.read(name).decode("utf-8"))
        for section in ("console_scripts", "gui_scripts"):
            for script, target in parser.items(section) if parser.has_section(section) else []:
                module, _, call = target.partition("[")[0].strip().partition(":")
                first = call.strip().split(".")[0]
                text = SCRIPT.format(python=sys.executable, module=module.strip(), first=first, call=call.strip())
                self.put(text.encode(), 0o755, os.path.join(self.scripts, script))

    def record(self):
        out = io.StringIO(newline="")
        own = self.info + "/RECORD"
        csv.writer(out, lineterminator="\n").writerows(sorted(self.rows) + [(own, "", "")])
        with open(os.path.join(self.site, own), "w", encoding="utf-8", newline="") as file:
            file.write(out.getvalue())


def install(folder):
    (name,) = [name for name in os.listdir(folder) if name.endswith(".whl")]
    with zipfile.ZipFile(os.path.join(folder, name)) as archive:
        Wheel(archive).install()


def main(action, *told):
    if action == "develop":
        develop()
    elif action == "install":
        install(told[0])
    else:
        hook, name, path, to = told
        to = os.path.abspath(to)
        {"ask": ask, "build": build}[action](load(name, json.loads(path)), hook, to)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file is nothing that a build may import from
    main(*sys.argv[1:])
