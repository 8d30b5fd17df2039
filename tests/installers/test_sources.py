"""What of a lock has to be built, and what its source distributions declare for that."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace

import pytest
from bench import PYTHON, small, venv_request

from installers.sources import Source, wheelless, with_declarations
from installers.venv_layer import make_venv
from installers.wheels import WheelRequest, build_wheel
from installers.workshop import Workshop
from miner.core.hashing import sha256_bytes
from miner.core.records import Layer, Observation
from miner.core.settings import Settings

PYLOCK = b"""
lock-version = "1.0"
[[packages]]
name = "Foo.Bar"
version = "1.0"
sdist = { url = "https://i.test/x/foo%2Bbar-1.0.tar.gz", hashes = { sha256 = "aa" } }
[[packages]]
name = "both"
version = "1.0"
sdist = { url = "https://i.test/both-1.0.zip", hashes = { sha256 = "bb" } }
wheels = [{ url = "https://i.test/both-1.0-py3-none-any.whl", hashes = { sha256 = "cc" } }]
[[packages]]
name = "wheel-only"
version = "1.0"
wheels = [{ url = "https://i.test/wheel_only-1.0-py3-none-any.whl", hashes = { sha256 = "dd" } }]
"""


def sdist(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, text in files.items():
            info = tarfile.TarInfo(f"demo-1.0/{path}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def source(data: bytes, **changes) -> Source:
    plain = Source(name="demo", version="1.0", filename="demo-1.0.tar.gz", sha256=sha256_bytes(data))
    return plain.model_copy(update=changes)


def test_what_has_no_wheel_is_built() -> None:
    assert wheelless(PYLOCK) == [("foo-bar", "1.0", "https://i.test/x/foo%2Bbar-1.0.tar.gz", "aa")]


def test_source_distribution_says_what_builds_it(settings: Settings) -> None:
    data = sdist(
        {
            "pyproject.toml": '[build-system]\nrequires = ["a>=1", "b"]\nbuild-backend = "own"\n'
            'backend-path = ["tools"]\n',
            "setup.py": "from setuptools import setup\nsetup(setup_requires=['unused'])\n",
        }
    )
    found = with_declarations(source(data), data, settings.measure.archive)
    assert (found.requires, found.backend, found.backend_path) == (("a>=1", "b"), "own", ("tools",))


def test_source_distribution_of_old_names_its_set_up_requirements(settings: Settings) -> None:
    data = sdist({"setup.py": "from setuptools import setup\nsetup(name='demo', setup_requires=['pytest-runner'])\n"})
    found = with_declarations(source(data), data, settings.measure.archive)
    assert found.requires == ("setuptools", "wheel", "pytest-runner")
    assert found.backend == "setuptools.build_meta:__legacy__"


@pytest.mark.parametrize("data", [b"", b"no archive", sdist({"readme": "x"})])
def test_source_distribution_that_cannot_be_read_is_built_by_default(data: bytes, settings: Settings) -> None:
    assert with_declarations(source(data), data, settings.measure.archive) == source(data)


BACKEND = """
import zipfile
def build_wheel(to, config_settings=None, metadata_directory=None):
    attack(to)
    with zipfile.ZipFile(to + "/demo-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(zipfile.ZipInfo("demo.py"), "x = 1")
    return NAME
NAME = "demo-1.0-py3-none-any.whl"
def attack(to):
"""


@pytest.fixture(scope="module")
def tools(workshop: Workshop) -> Layer:
    """A build environment that holds nothing."""
    seen = make_venv(workshop, workshop.base, venv_request(workshop, workshop.blobs.put(b""), path="/opt/build"))
    return Layer.model_validate(seen.payload["layer"])


@pytest.fixture
def build(workshop: Workshop, tools: Layer):
    """Build a source distribution whose back end does something else first."""

    def build(code: str, more: str = "", **limits: float) -> Observation:
        body = "\n".join(f"    {line}" for line in code.splitlines())
        data = sdist({"setup.py": "", "own.py": f"{BACKEND}{body}\n{more}\n"})
        workshop.blobs.put(data)
        bench = replace(workshop, settings=small(workshop.settings, **limits))
        request = WheelRequest(
            source=source(data, backend="own", backend_path=(".",)),
            build_env=tools,
            packages={},
            python="3.11",
            executable=PYTHON,
            base=workshop.base.digest,
        )
        return build_wheel(bench, workshop.base, request)

    return build


@pytest.mark.docker
def test_wheel_is_kept_by_its_digest(build, workshop: Workshop) -> None:
    seen = build("pass")
    assert (seen.outcome, seen.payload["filename"], seen.network) == ("ok", "demo-1.0-py3-none-any.whl", False)
    assert sha256_bytes(workshop.blobs.get(seen.blobs["wheel"])) == seen.payload["sha256"]
    assert build("pass").blobs == seen.blobs


@pytest.mark.docker
@pytest.mark.parametrize(
    ("code", "more", "said"),
    [
        ("pass", "NAME = '../../../etc/passwd'", "names '../../../etc/passwd' as the wheel"),
        ("pass", "NAME = 'other-1.0-py3-none-any.whl'", "names 'other-1.0-py3-none-any.whl' as the wheel"),
        ("pass", "NAME = {'a': 1}", "as the wheel"),
        (
            "pass",
            "def get_requires_for_build_wheel(config_settings=None): return ['numpy>=1']",
            "asks for more: numpy>=1",
        ),
        ("raise SystemExit('no')", "", "building demo 1.0 from source failed"),
    ],
)
def test_back_end_that_does_not_keep_to_its_part_is_a_reason(build, code: str, more: str, said: str) -> None:
    seen = build(code, more)
    assert (seen.outcome, seen.network) == ("build-failed", False)
    assert said in seen.payload["detail"]


@pytest.mark.docker
def test_build_has_no_network_and_its_wish_for_one_is_noted(build) -> None:
    seen = build("import urllib.request\nurllib.request.urlopen('https://example.org/', timeout=5)")
    assert (seen.outcome, seen.payload["wants_network"]) == ("build-failed", True)


@pytest.mark.docker
def test_endless_build_reaches_its_limit(build) -> None:
    assert build("import time\ntime.sleep(10**6)", timeout_s=6.0).outcome == "build-timeout"
