"""Variables that tell a build back end the version which it would ask git's tags for: there are none in an image."""

from __future__ import annotations

from packaging.utils import canonicalize_name

from miner.project.model import ProjectFacts

_SCM = ("setuptools-scm", "hatch-vcs", "flit-scm")
_PLAIN = {
    "pbr": "PBR_VERSION",
    "pdm-backend": "PDM_BUILD_SCM_VERSION",
    "poetry-dynamic-versioning": "POETRY_DYNAMIC_VERSIONING_BYPASS",
    "uv-dynamic-versioning": "UV_DYNAMIC_VERSIONING_BYPASS",
}


def version_variables(facts: ProjectFacts, version: str | None, notes: list[str]) -> dict[str, str]:
    """Return the variables, none where no version is known.

    Sources: the documentation of setuptools-scm, pbr, pdm-backend, poetry-dynamic-versioning, uv-dynamic-versioning.
    """
    variables: dict[str, str] = {}
    for tool in facts.version_tools:
        if version is None:
            notes.append(f"{tool} takes the version from git tags, and nothing in the tree says it")
        elif tool in _SCM:
            name = canonicalize_name(facts.name or "").upper().replace("-", "_")
            variables["SETUPTOOLS_SCM_PRETEND_VERSION"] = version
            if name:
                variables[f"SETUPTOOLS_SCM_PRETEND_VERSION_FOR_{name}"] = version
        elif tool in _PLAIN:
            variables[_PLAIN[tool]] = version
    return variables
