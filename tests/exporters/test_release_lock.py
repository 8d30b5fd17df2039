"""A lock says what a release was made from, and a damaged one is told from a good one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_items import VERSIONS, accepted, environment, rejected, settings

from exporters.lock import ReleaseLock, content_versions, lock_bytes, make_lock, merkle_root, read_lock, seal
from exporters.publish import select
from miner.core.errors import ReleaseError
from miner.core.hashing import sha256_bytes
from miner.core.ledger import content_hash, fact_id


def make() -> ReleaseLock:
    draft = make_lock(select([rejected(), accepted()], ["pypi"]), settings(), VERSIONS)
    return seal(draft, {"README.md": b"words"})


def test_lock_names_everything_that_the_release_rests_on() -> None:
    lock = make()
    assert (lock.name, lock.sources, lock.versions) == ("words", ("pypi",), VERSIONS)
    assert lock.settings == settings().portable()
    assert (lock.settings_hash, lock.policy_hash) == (settings().hash, settings().policy_hash)
    assert lock.base_images == (environment().base_digest,)
    assert [item.instance_id for item in lock.items] == ["pypi__shapes-2.0", "pypi__wordlib-1.1.0"]
    named = {fact.id: fact.content_hash for item in lock.items for fact in item.facts}
    assert named == {fact_id(f.key): content_hash(f) for item in (rejected(), accepted()) for f in item.trail}
    assert [(file.path, file.sha256, file.size) for file in lock.files] == [("README.md", sha256_bytes(b"words"), 5)]


def test_lock_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "release.lock"
    path.write_bytes(lock_bytes(make()))
    assert read_lock(path) == make()
    assert lock_bytes(read_lock(path)) == path.read_bytes()
    assert path.read_text().endswith("}\n")


def test_lock_of_another_run_over_the_same_inputs_is_the_same() -> None:
    other = make_lock(select([accepted(run=5), rejected(run=5)], ["pypi"]), settings(), VERSIONS)
    assert lock_bytes(seal(other, {"README.md": b"words"})) == lock_bytes(make())


def test_lock_of_other_facts_is_another() -> None:
    changed = rejected().trail[0].model_copy(update={"payload": {"of": "something else"}})
    other = make_lock(select([accepted(), rejected(trail=(changed,))], ["pypi"]), settings(), VERSIONS)
    assert other.facts_root != make().facts_root


def edited(**changes: Any) -> bytes:
    return json.dumps({**json.loads(lock_bytes(make())), **changes}).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "damaged, or not a release.lock"),
        (b"[]", "damaged, or not a release.lock"),
        (lock_bytes(make())[:-200], "damaged, or not a release.lock"),
        (lock_bytes(make()).replace(b"nothing-fails-before", b"patch-does-not-apply"), "its seal does not fit"),
        (edited(name="other"), "its seal does not fit"),
        (edited(files=[]), "its seal does not fit"),
        (edited(colour="red"), "colour: Extra inputs are not permitted"),
        (edited(schema_version=99), "has schema 99, this program knows 1"),
        ('{"schema_version": 1, "name": "\u00e9"}'.encode("latin-1"), "damaged, or not a release.lock"),
    ],
)
def test_damaged_lock_is_refused_in_clear_words(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "release.lock"
    path.write_bytes(data)
    with pytest.raises(ReleaseError, match=message) as caught:
        read_lock(path)
    assert str(path) in str(caught.value)


def test_lock_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"release\.lock: cannot be read \(No such file"):
        read_lock(tmp_path / "release.lock")


def test_decision_on_facts_that_are_not_at_hand_is_refused() -> None:
    with pytest.raises(ReleaseError, match="rests on facts that are not at hand"):
        make_lock(select([accepted(trail=())], ["pypi"]), settings(), VERSIONS)


hashes = st.text("0123456789abcdef", min_size=4, max_size=4)
facts = st.dictionaries(hashes, hashes, min_size=1, max_size=9)


@given(facts, st.data())
def test_root_does_not_depend_on_order_and_changes_with_any_fact(names: dict[str, str], data: st.DataObject) -> None:
    shuffled = dict(data.draw(st.permutations(list(names.items()))))
    assert merkle_root(shuffled) == merkle_root(names)
    victim = data.draw(st.sampled_from(sorted(names)))
    assert merkle_root({**names, victim: names[victim] + "0"}) != merkle_root(names)
    assert merkle_root({k: v for k, v in names.items() if k != victim}) != merkle_root(names)


def test_versions_name_the_code_that_decides_the_bytes() -> None:
    assert {"swe-miner", "pyarrow"} <= set(content_versions())
