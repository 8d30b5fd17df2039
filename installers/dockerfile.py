"""A Dockerfile that documents an environment for people; the image itself is assembled from the same steps."""

from __future__ import annotations

import re
import shlex

from jinja2 import Environment, PackageLoader, StrictUndefined

from installers.boxes import BUILD
from installers.rebuild import KEPT
from installers.venv_layer import ENV
from miner.core.hashing import sha256_bytes
from miner.core.records import BuildMode, Recipe
from miner.core.settings import tool_chain_packages

_TESTBED = "/testbed"
_WORD = re.compile(r"[A-Za-z0-9._:/@-]+\Z")
_INSTALLED = {
    BuildMode.EDITABLE: "editable",
    BuildMode.NORMAL: "as a copy, again after every change",
    BuildMode.COMPILED: "editable, its extension modules built again after every change",
    BuildMode.NONE: "not at all, imported from the tree",
}


def render_dockerfile(
    recipe: Recipe,
    *,
    lock: str,
    base_digest: str,
    mode: BuildMode,
    build_lock: str = "",
    rebuild_cmd: str | None = None,
) -> str:
    """Render the documentation of an environment.

    Args:
        recipe: what was described.
        lock: text of the lock of run-time and test dependencies.
        base_digest: the base image.
        mode: how the project was installed.
        build_lock: text of the lock of the build requirements, "" where there is none.
        rebuild_cmd: the shell command that installs the project again, offline (modes normal and compiled).

    Raises:
        ValueError: the base digest is no image reference, a mode that builds again has no rebuild command, or a value
            that stands in a command holds a line break or another control character.
    """
    if mode in KEPT and not rebuild_cmd:
        raise ValueError(f"mode {mode} needs its rebuild command")
    exports = "".join(f"{name}={shlex.quote(value)} " for name, value in sorted(recipe.build_env.items()))
    spoken = (exports, rebuild_cmd or "", recipe.python, recipe.project_dir, *recipe.system_packages)
    for value in (*spoken, *recipe.env, *recipe.env.values()):
        if not value.isprintable():
            raise ValueError(f"{value!r} does not fit on one line of a Dockerfile")
    template = _templates().get_template("Dockerfile.j2")
    return template.render(
        recipe=recipe,
        mode=mode.value,
        installed=_INSTALLED[mode],
        lock_sha256=sha256_bytes(lock.encode()),
        build_lock_sha256=sha256_bytes(build_lock.encode()) if build_lock else "",
        base_digest=base_digest,
        rebuild_cmd=rebuild_cmd,
        exports=exports,
        rebuilt=mode in KEPT,
        tool_chain=tool_chain_packages() if recipe.compiled else (),
        bounds=_bounds(recipe),
        env=ENV,
        build=BUILD,
        testbed=_TESTBED,
        source=f"{_TESTBED}/{recipe.project_dir}".rstrip("/"),
    )


def _bounds(recipe: Recipe) -> list[str]:
    """Return what bounds the versions of the lock without asking for anything, for people."""
    kinds = {
        "constraint": recipe.constraints,
        "override": recipe.overrides,
        "for builds": recipe.build_constraints,
        "without a cut-off date": recipe.exempt,
    }
    return [f"{kind}: {text}" for kind, texts in kinds.items() for text in texts]


def _templates() -> Environment:
    templates = Environment(  # noqa: S701 - a Dockerfile is no HTML: quoting is by the filters below
        loader=PackageLoader("installers", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters.update(shell=shlex.quote, comment=_comment, word=_word, value=_value)
    return templates


def _comment(text: object) -> str:
    """Return a text that stays inside one comment line."""
    return "".join(char if char.isprintable() else " " for char in str(text)).strip()


def _value(text: str) -> str:
    """Return a text as the value of an ENV instruction, which replaces variables and has no single quotes."""
    return '"' + re.sub(r'(["\\$])', r"\\\1", text) + '"'


def _word(text: str) -> str:
    """Return an image reference, which must need no quoting.

    Raises:
        ValueError: it would.
    """
    if not _WORD.match(text):
        raise ValueError(f"{text!r} is no image reference")
    return text
