"""Which variables of a CI job the tests need: few do; most steer the runner, its caches, or how results look."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping

from installers.siblings import TESTBED

# Names, and why tests may need them.
ALLOWED: tuple[tuple[str, str], ...] = (
    (
        r"DJANGO_\w+|FLASK_(?:APP|CONFIG|ENV)|PYRAMID_\w+|SECRET_KEY",
        "settings without which a framework does not start",
    ),
    (
        r"MPLBACKEND|QT_QPA_PLATFORM|QT_API|PYTEST_QT_API|SDL_\w+DRIVER|PYVISTA_OFF_SCREEN|ETS_TOOLKIT|KIVY_\w+",
        "no display",
    ),
    (
        r"AWS_(?:DEFAULT_)?REGION|AWS_(?:ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)|BOTO_CONFIG",
        "made-up credentials",
    ),
    (r"\w+_NO_EXTENSIONS|\w+_PURE_PYTHON|\w+_DISABLE_JIT", "which of two implementations is tested"),
    (r"(?:OMP|OPENBLAS|MKL|NUMEXPR|NUMBA)_NUM_THREADS|NUMBA_\w+", "results that depend on threads"),
    (r"KERAS_BACKEND|THEANO_FLAGS|TF_\w+|JAX_\w+|XLA_FLAGS|CUDA_VISIBLE_DEVICES", "no accelerator"),
    (r"HYPOTHESIS_PROFILE|PYTHONUTF8|PYTHONIOENCODING|SETUPTOOLS_USE_DISTUTILS", "how Python itself behaves"),
    (r"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION|SQLALCHEMY_\w+|PYMONGO_\w+", "switches of libraries"),
    (r"(?:DATABASE|DB)_(?:URL|URI)|ENVIRONMENT|APP_ENV", "where data is kept, by the tests' own words"),
    (r"(?:\w+_)?TEST(?:S|ING|ENV)?(?:_\w+)?", "named by the tests themselves"),
)
# Parts of names that speak against a variable, whatever else its name says.
_REFUSED = re.compile(
    r"COV|DEBUG|TOKEN|UPLOAD|PARALLEL|WORKERS|ARGS|ADDOPTS|OPTS|FLAGS_|TOX|NOX|CACHE|REPORT|RESULT|COLOR|DEPLOY"
)
_ALLOWED = tuple(re.compile(rf"(?:{pattern})\Z") for pattern, _ in ALLOWED)
# Values that are true of a runner only: places, addresses of services, what a shell would fill in.
_OF_RUNNER = re.compile(r"[\n$~`]|(?<!sqlite)://|\A/(?!dev/null\Z)|:\\|\b(?:localhost|127\.0\.0\.1)\b")
_MAX_LENGTH = 200


def needed_variables(env: Mapping[str, str], distribution: str, folders: Collection[str]) -> dict[str, str]:
    """Return the variables of a job that its tests need.

    Args:
        env: of the job.
        distribution: name of the project: variables that begin with it are its own.
        folders: of the tree, for a PYTHONPATH that is relative to its root.
    """
    own = re.sub(r"[^A-Z0-9]+", "_", distribution.upper())
    found = {}
    for name, value in sorted(env.items()):
        if name == "PYTHONPATH":
            places = [
                posixpath.normpath(part) for part in value.split(":") if part and not part.startswith(("/", "$", "~"))
            ]
            known = [
                posixpath.join(TESTBED, part) if part != "." else TESTBED
                for part in places
                if part == "." or part in folders
            ]
            if known:
                found[name] = ":".join(known)
        elif _is_needed(name, own) and value and len(value) <= _MAX_LENGTH and not _OF_RUNNER.search(value):
            found[name] = value
    return found


def _is_needed(name: str, own: str) -> bool:
    if _REFUSED.search(name):
        return False
    return bool(len(own) > 2 and name.startswith(f"{own}_")) or any(pattern.match(name) for pattern in _ALLOWED)
