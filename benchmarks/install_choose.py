"""Choose the packages of the corpus by popularity, before anything is built; `benchmarks/corpus/README.md` has it all.

    python benchmarks/install_choose.py --ranking top-packages.json [--wanted 160] [--folder var/bench-choose]

The ranking is JSON as the published list of the most downloaded packages has it: `rows` of `project` and
`download_count`, the first one first. Each package is asked for once and its source distribution downloaded once; an
interrupted choice goes on where it stopped. Nothing of a package is executed or unpacked on the disk.
"""

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from packaging.utils import canonicalize_name
from rich.console import Console
from rich.table import Table

from installers.describe import LEGACY_BACKEND
from miner.core.hashing import canonical_json
from miner.core.records import Record, SourceFile
from miner.core.settings import ArchiveLimits, load_settings
from miner.crawlers.archive import read_archive
from miner.crawlers.index import IndexClient, IndexFile, choose_sdist
from miner.crawlers.interface import Refused
from miner.crawlers.testtree import TestTree
from miner.project.facts import is_declaration, project_folder, read_project
from miner.project.pytest_config import read_pytest_config
from miner.project.versions import version_of

CORPUS = Path(__file__).with_name("corpus")
PACKAGES = CORPUS / "packages.jsonl"
YEARS = range(2017, 2027)
FAMILY = 3
"""Packages of one family that are taken at most: `google-cloud-...` alone would be a tenth of any ranking."""


class Row(Record):
    """One package of the corpus.

    Attributes:
        rank: in the ranking, from 1.
        backend: as the source distribution declares it.
        tests: number of files that pytest would collect.
        left_out: why it does not count in the denominator ("no tests", "no sdist", "too large", ...); "" where it does.
    """

    name: str
    rank: int
    half: str
    version: str = ""
    year: int = 0
    filename: str = ""
    sha256: str = ""
    size: int = 0
    uploaded_at: datetime | None = None
    backend: str = ""
    tests: int = 0
    left_out: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is in the denominator."""
        return not self.left_out

    @property
    def uploaded(self) -> datetime:
        """The time of the upload, which every row of the denominator has."""
        if self.uploaded_at is None:
            raise ValueError(f"{self.name} is not in the denominator: {self.left_out}")
        return self.uploaded_at


def read_rows(path: Path = PACKAGES) -> list[Row]:
    """Return the frozen list."""
    return [Row.model_validate_json(line) for line in path.read_text(encoding="utf-8").splitlines()]


def number_of(name: str, what: str) -> int:
    """Return a number that depends on nothing but a package's name and what it is for."""
    return int.from_bytes(hashlib.sha256(f"{what}:{canonicalize_name(name)}".encode()).digest()[:8], "big")


def half_of(name: str) -> str:
    """Return the half of the corpus that a package is in."""
    return ("tuning", "reporting")[number_of(name, "half") % 2]


def year_of(name: str, years: Iterable[int]) -> int | None:
    """Return the year that is taken of those in which there was a release: the nearest one, the earlier of two."""
    wanted = YEARS[number_of(name, "year") % len(YEARS)]
    known = [year for year in years if year in YEARS]
    return min(known, key=lambda year: (abs(year - wanted), year), default=None)


def sdists(files: Iterable[IndexFile]) -> dict[str, IndexFile]:
    """Return the source distribution of each release that is neither a pre-release nor yanked, by version."""
    groups: dict[str, list[IndexFile]] = {}
    for file in files:
        version = version_of(file.version)
        if version is None or version.is_prerelease or file.yanked or file.uploaded_at is None or file.sha256 is None:
            continue
        groups.setdefault(str(version), []).append(file)
    found = {version: choose_sdist(tuple(group)) for version, group in groups.items()}
    return {version: file for version, file in found.items() if file is not None}


def choose(name: str, rank: int, index: IndexClient, limits: ArchiveLimits) -> Row:
    """Return a package's row: its release, and what it statically holds."""
    row = Row(name=canonicalize_name(name), rank=rank, half=half_of(name))
    releases = sdists(index.release_files(name).files)
    year = year_of(name, (file.uploaded_at.year for file in releases.values() if file.uploaded_at))
    if year is None:
        return row.model_copy(update={"left_out": "no sdist"})
    dated = [(file.uploaded_at, version, file) for version, file in releases.items() if file.uploaded_at]
    uploaded, version, file = max((item for item in dated if item[0].year == year), key=lambda item: item[:2])
    row = row.model_copy(
        update={
            "version": version,
            "year": year,
            "filename": file.filename,
            "sha256": file.sha256,
            "size": file.size or 0,
            "uploaded_at": uploaded,
        }
    )
    source = SourceFile(filename=file.filename, sha256=row.sha256, size=file.size, uploaded_at=uploaded, url=file.url)
    try:
        entries = read_archive(index.download(source), file.filename, limits).entries
    except Refused as refusal:
        return row.model_copy(update={"left_out": refusal.reason.value})
    paths = list(entries)
    texts = {path: entries[path].data for path in paths if is_declaration(path) and entries[path].mode != "120000"}
    facts = read_project(texts, paths, folder := project_folder(paths))
    tests = collected(paths, texts, folder)
    backend = facts.build_backend or LEGACY_BACKEND
    return row.model_copy(update={"backend": backend, "tests": len(tests), "left_out": "" if tests else "no tests"})


def collected(paths: list[str], texts: dict[str, bytes], folder: str) -> list[str]:
    """Return the files of a tree that pytest would collect, by its own configuration of python_files and testpaths."""
    config = read_pytest_config(texts, folder)
    prefix = f"{folder}/" if folder else ""
    places = [f"{prefix}{path}" for path in config.testpaths]
    return list(TestTree(paths, python_files=config.python_files, testpaths=places).collected)


def walk(names: Iterable[str], wanted: int, known: dict[str, Row], index: IndexClient) -> Iterator[Row]:
    """Yield the rows of a ranking in order, until so many count."""
    limits = load_settings().measure.archive
    families: Counter[str] = Counter()
    found = 0
    for rank, name in enumerate(names, start=1):
        family = canonicalize_name(name).split("-")[0]
        families[family] += 1
        if families[family] > FAMILY:
            continue
        row = known.get(canonicalize_name(name)) or choose(name, rank, index, limits)
        yield row
        found += row.counts
        if found == wanted:
            return


def summary(rows: list[Row]) -> Table:
    """Return how the corpus is made up."""
    table = Table("", "tuning", "reporting", "all", title="corpus", title_justify="left")
    counted = [row for row in rows if row.counts]
    lines = {"in the denominator": counted}
    lines |= {f"  {year}": [row for row in counted if row.year == year] for year in YEARS}
    backends = Counter(row.backend for row in counted)
    lines |= {f"  {name}": [row for row in counted if row.backend == name] for name, _ in backends.most_common()}
    reasons = Counter(row.left_out for row in rows if row.left_out)
    lines |= {f"left out: {name}": [row for row in rows if row.left_out == name] for name, _ in reasons.most_common()}
    for title, some in lines.items():
        halves = [sum(row.half == half for row in some) for half in ("tuning", "reporting")]
        table.add_row(title, *map(str, halves), str(len(some)))
    return table


def main() -> int:
    """Choose, write the list and print how it is made up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranking", type=Path, help="JSON file with the ranking; without one the list is summed up")
    parser.add_argument("--wanted", type=int, default=160, help="packages in the denominator")
    parser.add_argument(
        "--folder", type=Path, default=Path("var/bench-choose"), help="of downloads and of what is known"
    )
    options = parser.parse_args()
    if options.ranking is not None:
        names = [row["project"] for row in json.loads(options.ranking.read_text(encoding="utf-8"))["rows"]]
        options.folder.mkdir(parents=True, exist_ok=True)
        state = options.folder / "known.jsonl"
        known = {row.name: row for row in (read_rows(state) if state.is_file() else [])}
        index = IndexClient(load_settings().index, options.folder / "downloads")
        chosen: list[Row] = []
        with state.open("a", encoding="utf-8") as log:
            for row in walk(names, options.wanted, known, index):
                chosen.append(row)
                if row.name not in known:
                    log.write(canonical_json(row) + "\n")
                    log.flush()
                    print(row.rank, row.name, row.version, row.tests, row.left_out, file=sys.stderr)
        PACKAGES.write_text("".join(canonical_json(row) + "\n" for row in chosen), encoding="utf-8")
    Console().print(summary(read_rows()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
