"""Which declaration files of a tree are kept when there are too many of them."""

from hypothesis import given
from hypothesis import strategies as st

from miner.crawlers.declarations import MAX_BYTES, bounded
from miner.crawlers.git_repo import TreeFile


def file(path, size=10, mode="100644"):
    return TreeFile(path=path, mode=mode, oid="0" * 40, size=size)


def kept(files, total):
    notes = []
    return [one.path for one in bounded(files, notes, total)], notes


def test_only_declarations_that_are_files():
    files = [file("README.md"), file("setup.py"), file("setup.cfg", mode="120000"), file("pyproject.toml")]
    assert kept(files, 100) == (["pyproject.toml", "setup.py"], [])


def test_the_nearest_to_the_root_first_and_locks_last():
    files = [file("a/b/setup.py"), file("uv.lock"), file("setup.py"), file("a/setup.py")]
    found, notes = kept(files, 30)
    assert found == ["a/b/setup.py", "a/setup.py", "setup.py"]
    assert notes == ["1 of 4 declaration files are not kept: they are more than 30 bytes"]
    assert kept(files, 20)[0] == ["a/setup.py", "setup.py"]


def test_what_is_too_large_on_its_own_takes_no_room_from_others():
    files = [file("requirements.txt", size=MAX_BYTES + 1), file("setup.py")]
    assert kept(files, 10)[0] == ["requirements.txt", "setup.py"]


@given(st.lists(st.tuples(st.sampled_from(["setup.py", "a/setup.py", "a/b/tox.ini", "uv.lock"]), st.integers(0, 50))))
def test_the_bound_holds(sizes):
    files = [file(path, size) for path, size in dict(sizes).items()]
    names, _ = kept(files, 60)
    assert sum(one.size for one in files if one.path in names) <= 60
