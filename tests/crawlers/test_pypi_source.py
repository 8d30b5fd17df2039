"""The source from the index to the candidate, on packages of our own and, marked `index`, on real ones."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_server import IndexServer, make_sdist
from packaging.utils import canonicalize_name
from packaging.version import Version

from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError, IndexUnreachable, InfrastructureFault
from miner.core.hashing import canonical_json
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Candidate, Fact, Observation, ReleasePair, SourceFile
from miner.core.settings import ArchiveLimits, Index
from miner.crawlers import SOURCES
from miner.crawlers.candidate import compute_candidate, declared_files, split_of
from miner.crawlers.index import IndexClient
from miner.crawlers.interface import Rejection
from miner.crawlers.pypi import PypiSource, ensure_repo, extract, repo_path
from miner.crawlers.releases import ANSWER, instance_id, look_up, source_files

PAIR = ReleasePair(name="My.Pkg", old="1.0", new="1.1")
OLD = {
    "pyproject.toml": b"[project]\nname = 'my-pkg'\n",
    "PKG-INFO": b"Name: my-pkg\nVersion: 1.0\nProject-URL: Source, https://github.com/me/my-pkg\n",
    "CHANGES.md": b"## 1.0\n\n- first\n",
    "my_pkg.py": b"def add(a, b):\n    return a\n",
    "tests/test_add.py": b"def test_add():\n    pass\n",
    "caf\udce9.txt": b"x",
}
NEW = {
    **OLD,
    "PKG-INFO": OLD["PKG-INFO"].replace(b"1.0", b"1.1"),
    "CHANGES.md": b"## 1.1\n\n- adds both numbers (#7, https://github.com/python/cpython/issues/9)\n\n"
    + OLD["CHANGES.md"],
    "my_pkg.py": b"def add(a, b):\n    return a + b  # \xe9\r\n",
    "tests/test_add.py": b"from my_pkg import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
}


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


def publish(server: IndexServer, old: dict[str, bytes] = OLD, new: dict[str, bytes] = NEW) -> None:
    server.release("my_pkg", "1.0", old, uploaded="2024-01-01T10:00:00Z")
    server.release("my_pkg", "1.1", new, uploaded="2024-02-01T10:00:00Z")


class Bench:
    """The source with what it needs."""

    def __init__(self, server: IndexServer, index: IndexClient, tmp_path: Path, limits: ArchiveLimits) -> None:
        self.server, self.index, self.limits = server, index, limits
        self.repos = tmp_path / "repos"
        self.blobs = BlobStore(str(tmp_path / "blobs"))

    def look_up(self, pair: ReleasePair = PAIR) -> Observation:
        return look_up(pair, self.index, self.blobs)

    def extract(self, pair: ReleasePair = PAIR) -> Observation:
        seen = self.look_up(pair)
        assert seen.outcome == "ok", seen
        return extract(pair, self.files(seen), self.index, self.blobs, self.repos, self.limits)

    def files(self, seen: Observation) -> tuple[SourceFile, SourceFile]:
        return source_files(seen.payload, seen.logs, self.blobs)

    def candidate(self, pair: ReleasePair = PAIR) -> Candidate | Rejection:
        seen = self.extract(pair)
        assert seen.outcome == "ok", seen
        return compute_candidate(pair, self.look_up(pair).payload, seen.payload, seen.blobs, self.blobs)


@pytest.fixture
def bench(server: IndexServer, index: IndexClient, tmp_path: Path, limits: ArchiveLimits) -> Bench:
    return Bench(server, index, tmp_path, limits)


def test_a_pair_becomes_a_candidate(bench: Bench) -> None:
    publish(bench.server)
    candidate = bench.candidate()
    assert isinstance(candidate, Candidate)
    assert candidate.instance_id == "pypi__my-pkg-1.1"
    assert (candidate.source, candidate.repo, candidate.version) == ("pypi", "pypi/my-pkg", "1.1")
    assert candidate.created_at == datetime(2024, 2, 1, 10, tzinfo=UTC)
    assert candidate.statement == "- adds both numbers (#7, https://github.com/python/cpython/issues/9)"
    assert [(link.number, link.where, link.provenance) for link in candidate.links] == [
        (7, "CHANGES.md:3", "changelog")
    ]
    assert candidate.test_files == ("tests/test_add.py",)
    assert candidate.gold_files == ("CHANGES.md", "my_pkg.py")
    assert "my_pkg.py" in candidate.patch
    assert "PKG-INFO" in candidate.patch
    assert "tests/" not in candidate.patch
    assert b"# \xe9\r\n" in candidate.patch.encode("utf-8", "surrogateescape")


def test_facts_are_json_and_the_same_again(bench: Bench, tmp_path: Path) -> None:
    publish(bench.server)
    first = bench.extract()
    assert json.loads(canonical_json(first)) == json.loads(json.dumps(first.model_dump(mode="json")))
    bench.repos = tmp_path / "elsewhere"
    assert bench.extract() == first
    assert str(tmp_path) not in canonical_json(first)
    again = bench.look_up()
    assert bench.look_up() == again
    assert again.network


def test_declarations_of_both_trees_are_kept_as_bytes(bench: Bench) -> None:
    publish(
        bench.server,
        {**OLD, "setup.py": b"# \xe9\nsetup()", "deep/a/b/c/d/setup.py": b"", "req/test-requirements.txt": b"x"},
    )
    seen = bench.extract()
    base = declared_files(bench.blobs, seen.blobs["base_files"])
    assert base["setup.py"] == b"# \xe9\nsetup()"
    assert sorted(base) == ["PKG-INFO", "pyproject.toml", "req/test-requirements.txt", "setup.py"]
    assert "setup.py" not in declared_files(bench.blobs, seen.blobs["target_files"])


def test_the_projects_own_pytest_configuration_steers_the_split(bench: Bench) -> None:
    config = {"pyproject.toml": b"[tool.pytest.ini_options]\npython_files = ['check_*.py']\ntestpaths = ['checks']\n"}
    publish(
        bench.server,
        {**OLD, **config, "checks/check_add.py": b"1"},
        {**NEW, **config, "checks/check_add.py": b"2"},
    )
    candidate = bench.candidate()
    assert isinstance(candidate, Candidate)
    assert candidate.test_files == ("checks/check_add.py",)


def test_a_change_log_that_is_not_utf8_is_read_and_noted(bench: Bench) -> None:
    publish(bench.server, OLD, {**NEW, "CHANGES.md": b"## 1.1\n\n- caf\xe9\n"})
    candidate = bench.candidate()
    assert isinstance(candidate, Candidate)
    assert candidate.statement == "- caf\u00e9"
    assert any("CHANGES.md: is not UTF-8" in note for note in bench.extract().payload["notes"])


def test_without_a_change_log_the_statement_is_empty_and_no_error(bench: Bench) -> None:
    publish(bench.server, OLD, {path: data for path, data in NEW.items() if path != "CHANGES.md"})
    candidate = bench.candidate()
    assert isinstance(candidate, Candidate)
    assert (candidate.statement, candidate.links) == ("", ())


def test_no_changed_test_is_a_reason_with_its_evidence(bench: Bench) -> None:
    publish(bench.server, OLD, {**NEW, "tests/test_add.py": OLD["tests/test_add.py"]})
    rejection = bench.candidate()
    assert isinstance(rejection, Rejection)
    assert rejection.reason is Reason.NO_TEST_CHANGE
    assert "tests/test_add.py" in rejection.detail


def negative(seen: Observation, reason: Reason) -> str:
    assert seen.outcome == reason.value
    assert seen.network
    return str(seen.payload["detail"])


def test_unknown_package(bench: Bench) -> None:
    assert "My.Pkg" in negative(bench.look_up(), Reason.UNKNOWN_PACKAGE)


def test_unknown_version_names_those_near_it(bench: Bench) -> None:
    publish(bench.server)
    detail = negative(bench.look_up(ReleasePair(name="my-pkg", old="1.0", new="1.0.5")), Reason.UNKNOWN_VERSION)
    assert detail == "my-pkg has no version 1.0.5; near it are 1.0, 1.1"


def test_versions_are_compared_as_versions_and_not_as_text(bench: Bench) -> None:
    publish(bench.server)
    assert bench.look_up(ReleasePair(name="my-pkg", old="v1.0.0", new="1.1.0")).outcome == "ok"


def test_a_version_with_wheels_only(bench: Bench) -> None:
    bench.server.release("my_pkg", "1.0", OLD)
    bench.server.release("my_pkg", "1.1", archive=b"x", filename="my_pkg-1.1-py3-none-any.whl")
    assert "my_pkg-1.1-py3-none-any.whl" in negative(bench.look_up(), Reason.NO_SDIST)


def test_a_yanked_release_that_is_asked_for_is_taken(bench: Bench) -> None:
    bench.server.release("my_pkg", "1.0", OLD)
    bench.server.release("my_pkg", "1.1", NEW, yanked="a mistake")
    answer = json.loads(bench.blobs.get(bench.look_up().logs[ANSWER]))
    assert answer["new"][0]["yanked"] is True
    assert bench.extract().outcome == "ok"


def test_what_identifies_the_archives_is_content_and_the_rest_of_the_answer_a_log(bench: Bench) -> None:
    publish(bench.server)
    first = bench.look_up()
    assert set(first.payload) == {"name", "old", "new"}
    assert set(first.payload["new"]) == {"filename", "sha256", "size", "uploaded_at"}
    bench.server.release("my_pkg", "1.1", archive=b"x", filename="my_pkg-1.1-py3-none-any.whl")
    with IndexServer() as mirror:
        publish(mirror)
        index = IndexClient(Index(url=mirror.url, tries=1), bench.repos.parent / "other-downloads")
        seen = [bench.look_up(), look_up(PAIR, index, bench.blobs)]
    assert [one.payload for one in seen] == [first.payload] * 2
    assert len({one.logs[ANSWER] for one in (first, *seen)}) == 3


@pytest.mark.parametrize("missing", ["upload-time", "hashes"])
def test_an_index_that_states_too_little_is_a_fault(bench: Bench, missing: str) -> None:
    bench.server.release("my_pkg", "1.0", OLD)
    bench.server.release("my_pkg", "1.1", NEW, **{missing: {} if missing == "hashes" else None})
    with pytest.raises(InfrastructureFault, match="states no") as caught:
        bench.extract()
    assert caught.value.reason is Reason.INDEX_ERROR


def test_a_corrupt_archive_is_a_finding_about_the_release(bench: Bench) -> None:
    bench.server.release("my_pkg", "1.0", OLD)
    bench.server.release("my_pkg", "1.1", archive=make_sdist("my_pkg-1.1", NEW)[:-30])
    seen = bench.extract()
    assert seen.outcome == Reason.ARCHIVE_CORRUPT.value
    assert seen.payload["detail"].startswith("my_pkg-1.1.tar.gz: ")
    assert not seen.network
    assert not repo_path(PAIR, bench.repos).exists()


def test_a_hostile_archive_writes_nothing_anywhere(bench: Bench, tmp_path: Path) -> None:
    bench.server.release("my_pkg", "1.0", OLD)
    bench.server.release("my_pkg", "1.1", archive=make_sdist("my_pkg-1.1", {**NEW, "../../../escaped": b"x"}))
    assert bench.extract().outcome == Reason.ARCHIVE_ESCAPES.value
    assert list(tmp_path.rglob("escaped")) == []


def test_a_hook_in_an_archive_never_reaches_the_repository(bench: Bench) -> None:
    publish(
        bench.server, OLD, {**NEW, ".git/hooks/post-checkout": b"#!/bin/sh\ntouch /tmp/hooked\n", ".git/config": b""}
    )
    seen = bench.extract()
    assert not any(".git/" in path for path in seen.payload["target_paths"])
    assert sum("git refuses" in note for note in seen.payload["notes"]) == 2


def test_a_wrong_hash_is_a_finding_that_wants_a_second_attempt(bench: Bench) -> None:
    publish(bench.server)
    bench.server.fail("/files/my_pkg-1.1", "wrong")
    assert "my_pkg-1.1.tar.gz" in negative(bench.extract(), Reason.HASH_MISMATCH)


@pytest.mark.parametrize(("fault", "kind"), [("cut", InfrastructureFault), ("reset", IndexUnreachable)])
def test_an_index_that_fails_half_way_is_a_fault_and_goes_on_later(
    bench: Bench, fault: str, kind: type[InfrastructureFault]
) -> None:
    publish(bench.server)
    bench.server.fail("/files/my_pkg-1.1", fault)
    with pytest.raises(kind):
        bench.extract()
    assert not bench.repos.exists() or list(bench.repos.iterdir()) == []
    bench.server.heal()
    assert bench.extract().outcome == "ok"
    assert bench.server.requests.count("/files/my_pkg-1.0.tar.gz") == 1


def test_a_lost_or_damaged_repository_is_made_again(bench: Bench) -> None:
    publish(bench.server)
    looked_up, seen = bench.look_up(), bench.extract()
    path = repo_path(PAIR, bench.repos)

    def again() -> str:
        files = partial(bench.files, looked_up)
        repo = ensure_repo(PAIR, files, seen.payload, bench.index, bench.repos, bench.limits)
        return repo.tree_of(seen.payload["base_commit"])

    assert again() == seen.payload["base_tree"]
    for pack in (path / "objects/pack").glob("*.pack"):
        pack.chmod(0o644)
        pack.write_bytes(pack.read_bytes()[:-25])
    assert again() == seen.payload["base_tree"]
    shutil.rmtree(path)
    assert again() == seen.payload["base_tree"]


def test_a_repository_that_comes_out_differently_is_a_fault(bench: Bench) -> None:
    publish(bench.server)
    looked_up, seen = bench.look_up(), bench.extract()
    other = {**seen.payload, "base_commit": "0" * 40}
    with pytest.raises(InfrastructureFault, match="other commits"):
        ensure_repo(PAIR, partial(bench.files, looked_up), other, bench.index, bench.repos, bench.limits)


def test_the_registered_source_answers_as_its_protocol_says(bench: Bench) -> None:
    publish(bench.server)
    twice = [PAIR, PAIR.model_copy(update={"name": "my-pkg"})]
    source = SOURCES["pypi"](twice, bench.index, bench.blobs, bench.repos, bench.limits)
    assert isinstance(source, PypiSource)
    memo = Memo(lambda _key: [], lambda _fact: None)
    (unit,) = source.units(memo)
    (item,) = source.discover(unit, memo).items

    def fact(kind: str, seen: Observation) -> Fact:
        seen = seen.model_copy(update={"payload": {**item.identity, **seen.payload}})
        return memo.measure(source.look_up_producer, kind, source.subject(item), item.inputs, lambda: seen)

    looked_up = fact("source.look_up", source.look_up(item))
    extracted = fact("source.extract", source.extract(item, looked_up))
    candidate = source.candidate(looked_up, extracted, bench.blobs)
    assert isinstance(candidate, Candidate)
    assert candidate.instance_id == source.subject(item)
    repo = source.repository(item, looked_up, extracted)
    assert source.crawled(looked_up, bench.blobs) is None
    assert repo.tree_of(candidate.base_commit) == candidate.base_tree


NAMES = st.from_regex(re.compile(r"[a-z0-9]([a-z0-9._-]{0,12}[a-z0-9])?", re.IGNORECASE | re.ASCII), fullmatch=True)
NUMBERS = st.integers(0, 30).map(str)
VERSIONS = st.builds(
    lambda epoch, release, pre, post, local: epoch + ".".join(release) + pre + post + local,
    st.sampled_from(["", "1!", "12!"]),
    st.lists(NUMBERS, min_size=1, max_size=4),
    st.sampled_from(["", "a1", "b2", "rc3", ".dev4"]),
    st.sampled_from(["", ".post1"]),
    st.sampled_from(["", "+1", "+local.7", "+1.local"]),
).filter(lambda text: not (".dev" in text and "post" in text))
RELEASES = st.tuples(NAMES, VERSIONS)


@given(RELEASES, RELEASES)
def test_ids_of_different_releases_differ(one: tuple[str, str], other: tuple[str, str]) -> None:
    def release(item: tuple[str, str]) -> tuple[str, str]:
        return canonicalize_name(item[0]), str(Version(item[1]))

    def name(item: tuple[str, str]) -> str:
        return instance_id(ReleasePair(name=item[0], old="0", new=item[1]))

    assert (name(one) == name(other)) == (release(one) == release(other))


@given(RELEASES)
def test_ids_are_valid_image_names(item: tuple[str, str]) -> None:
    name = instance_id(ReleasePair(name=item[0], old="0", new=item[1]))
    # https://distribution.github.io/distribution/spec/api/#overview
    assert re.fullmatch(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*", name)


def test_ids_that_look_alike_do_not_collide() -> None:
    pairs = [("foo-1", "2"), ("foo", "1.post2"), ("foo", "1!2"), ("foo", "1+2"), ("foo", "1.2"), ("foo-1", "1.2")]
    assert len({instance_id(ReleasePair(name=name, old="0", new=new)) for name, new in pairs}) == len(pairs)


@pytest.mark.parametrize(("name", "version"), [("-bad-", "1"), ("", "1"), ("pkg", "not a version"), ("../x", "1")])
def test_a_pair_that_cannot_be_is_an_error_of_the_configuration(name: str, version: str) -> None:
    with pytest.raises(ConfigError):
        instance_id(ReleasePair(name=name, old="0", new=version))


REAL = [
    ("sqlparse 0.4.3 0.4.4", 5, [694, 685], "* Revert a change from 0.4.0"),
    ("tomlkit 0.12.1 0.12.2", 1, [313, 312], "### Fixed"),
    ("pluggy 1.4.0 1.5.0", 3, [178, 481], "Features"),
    ("parse 1.19.1 1.20.0", 7, [], "Added support for strptime codes"),
    ("tabulate 0.8.9 0.8.10", 7, [], "Python 3.10 support. Bug fixes."),
    ("wcwidth 0.2.9 0.2.10", 2, [97], "* **Bugfix** accounting"),
    ("marshmallow 3.21.1 3.21.2", 3, [2133], "Bug fixes:"),
    ("humanize 4.8.0 4.9.0", 1, [], ""),
    ("packaging 23.1 23.2", 7, [716, 687, 120, 644, 570], "* Document calendar-based"),
]
REAL_REJECTED = [
    ("boltons 23.1.0 23.1.1", Reason.NO_TEST_CHANGE, "29 test files"),
    ("mistune 3.0.1 3.0.2", Reason.NO_TEST_CHANGE, "7 test files"),
    ("itsdangerous 2.1.1 2.1.2", Reason.NO_TEST_CHANGE, "5 test files"),
    ("python-slugify 8.0.2 8.0.3", Reason.NO_TEST_FILES, "found 6 Python modules"),
    ("jmespath 0.10.0 1.0.0", Reason.NO_TEST_FILES, "found 10 Python modules"),
    ("iniconfig 1.1.1 2.0.0", Reason.NO_TEST_FILES, "only the tree before the change has testing/test_iniconfig.py"),
]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("real")
    limits = ArchiveLimits(max_bytes=1 << 28, max_files=20000, max_file_bytes=1 << 26, max_ratio=200)
    return Bench(IndexServer(), IndexClient(Index(), folder / "cache"), folder, limits)


def pair_of(text: str) -> ReleasePair:
    name, old, new = text.split()
    return ReleasePair(name=name, old=old, new=new)


@pytest.mark.index
@pytest.mark.parametrize(("text", "tests", "links", "words"), REAL)
def test_real_pair_becomes_a_candidate(real: Bench, text: str, tests: int, links: list[int], words: str) -> None:
    candidate = real.candidate(pair_of(text))
    assert isinstance(candidate, Candidate)
    assert len(candidate.test_files) == tests
    assert [link.number for link in candidate.links] == links
    assert words in candidate.statement
    assert bool(candidate.statement) == bool(words)


@pytest.mark.index
@pytest.mark.parametrize(("text", "reason", "words"), REAL_REJECTED)
def test_real_pair_is_rejected_with_its_reason(real: Bench, text: str, reason: Reason, words: str) -> None:
    rejection = real.candidate(pair_of(text))
    assert isinstance(rejection, Rejection)
    assert rejection.reason is reason
    assert words in rejection.detail


@pytest.mark.index
def test_real_support_files_go_with_the_tests(real: Bench) -> None:
    seen = real.extract(pair_of("tabulate 0.8.9 0.8.10"))
    split = split_of(seen.payload, seen.blobs, real.blobs)
    assert split.support_files == ("test/common.py",)
    assert set(split.generated_files) == {"PKG-INFO", "tabulate.egg-info/PKG-INFO", "tabulate.egg-info/SOURCES.txt"}
