"""Run the pytest plug-in on every pair of a Python and a pytest, and print a table.

    python benchmarks/plugin_matrix.py [FOLDER_OF_INTERPRETERS] [--pytest 4.6,5.4,...] [--xdist]

The folder holds one installation for each version (as pyenv's `versions`), or is named by SWE_MINER_INTERPRETERS;
without one, the interpreter that runs this script is the only row. Each pair runs the samples of
`tests/sandbox/plugin_samples.py`. A cell says "ok", the number of wrong results, "no install" where there is no fitting
release, or "no start" where that pytest does not run on that Python even without the plug-in.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "sandbox")]

from plugin_samples import EXPECTED, STATUSES, differences, run_pytest, write  # noqa: E402 - needs the path above

from miner.sandbox.outcomes import read_run  # noqa: E402

VERSIONS = "4.6,5.4,6.2,7.4,8.4,9.0"


def interpreters(folder: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield the version and the executable of each installation, oldest first; of the running one where none is named.

    The running one is taken without its virtual environment, whose own pytest would be in the way.
    """
    if folder is None:
        yield platform.python_version(), Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}"
        return
    found = [(path.name, path / "bin" / "python") for path in folder.iterdir() if (path / "bin" / "python").exists()]
    yield from sorted(found, key=lambda item: [int(part) for part in item[0].split(".") if part.isdigit()])


def install(name: str, python: Path, version: str, target: Path, *extra: str) -> bool:
    """Install a pytest beside the interpreter, not into it: by its own pip, and by uv where that pip is too old."""
    wanted = [f"pytest=={version}.*", *extra]
    own = [python, "-m", "pip", "install", "--quiet", "--target", target, *wanted]
    short = ".".join(name.split(".")[:2])
    other = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python-version", short, "--target", target]
    for command in (own, [*other, *wanted]):
        if subprocess.run(command, capture_output=True, check=False, timeout=300).returncode == 0:
            return True
    return False


def starts(python: Path, folder: Path, packages: Path) -> bool:
    """Whether this pytest runs on this Python at all."""
    write(folder, {"test_one.py": "def test_one(): assert 1\n"})
    environment = {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, "-m", "pytest", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode == 0


def cell(name: str, python: Path, version: str, xdist: bool) -> tuple[str, list[str]]:
    """Return what the table says about one pair, and the wrong results."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        packages = work / "packages"
        if not install(name, python, version, packages, *(["pytest-xdist"] if xdist else [])):
            return "no install", []
        if not starts(python, work / "bare", packages):
            return "no start", []
        write(work / "plain")
        data, done = run_pytest(python, work / "plain", "--continue-on-collection-errors", packages=[packages])
        wrong = differences(read_run(data))
        if xdist:
            wrong += under_xdist(python, work / "spread", packages)
        if wrong and not data:
            wrong = [done.stderr.decode("utf-8", "replace")[-2000:]]
        return (f"{len(wrong)} wrong" if wrong else "ok"), wrong


def under_xdist(python: Path, folder: Path, packages: Path) -> list[str]:
    """Run a module in two workers; return the wrong results."""
    write(folder, {"test_statuses.py": STATUSES})
    data, _ = run_pytest(python, folder, "-p", "xdist.plugin", "-n2", packages=[packages])
    wanted = {nodeid: status for nodeid, status in EXPECTED.items() if nodeid.startswith("test_statuses.py")}
    said = {item.nodeid: str(item.status) for item in read_run(data).results}
    return [
        f"xdist: {key}: {said.get(key)} for {wanted[key]}" for key in sorted(wanted) if said.get(key) != wanted[key]
    ]


def main() -> int:
    """Print the table; the exit status is 1 where a pair that runs is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=os.environ.get("SWE_MINER_INTERPRETERS"))
    parser.add_argument("--pytest", default=VERSIONS)
    parser.add_argument("--xdist", action="store_true")
    options = parser.parse_args()
    versions = options.pytest.split(",")
    table = Table("Python", *[f"pytest {version}" for version in versions])
    failures: list[str] = []
    for name, python in interpreters(Path(options.folder) if options.folder else None):
        row = []
        for version in versions:
            said, wrong = cell(name, python, version, options.xdist)
            row.append(said)
            failures += [f"Python {name}, pytest {version}: {line}" for line in wrong]
            print(f"Python {name}, pytest {version}: {said}", file=sys.stderr)
        table.add_row(name, *row)
    Console().print(table)
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
