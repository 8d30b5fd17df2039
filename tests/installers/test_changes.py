"""What a box has changed, read piece by piece: the same as by reading everything."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from bench import small

from installers.changes import Changed, apply, changed_below, changed_layer
from installers.image import ensure_layers, remove_image
from installers.interface import TooLarge
from installers.layer import OWNER, Tree, load, store
from installers.workshop import Workshop
from miner.core.records import Layer
from miner.sandbox.image_archive import TarEntry, deterministic_tar

FILES = {
    "lib/a.py": "a",
    "lib/b.py": "b",
    "lib/sub/c.py": "c",
    "lib/sub/deep/d.py": "d",
    "lib/x.dist-info/RECORD": "../other/e,,\n",
    "bin/tool": "tool",
    "other/e": "e",
}

# Each is a command in `/opt/env`; together they do everything that may be done to a file system.
CHANGES = {
    "nothing": "true",
    "new file": "echo n > lib/new.py",
    "new folder": "mkdir -p lib/fresh/er; echo n > lib/fresh/er/f.py; ln lib/fresh/er/f.py lib/fresh/hard",
    "other content": "echo changed > lib/a.py",
    "same content": "printf a > /tmp/a; cat /tmp/a > lib/a.py",
    "executable": "chmod 755 lib/b.py",
    "gone file": "rm lib/b.py",
    "gone folder": "rm -r lib/sub",
    "folder made again, empty": "rm -r lib/sub; mkdir lib/sub",
    "folder made again": "rm -r lib/sub; mkdir -p lib/sub/deep; echo o > lib/sub/o.py; printf d > lib/sub/deep/d.py",
    "folder renamed": "mv lib/sub lib/moved",
    "file for folder": "rm -r lib/sub; echo f > lib/sub",
    "folder for file": "rm lib/a.py; mkdir lib/a.py; echo f > lib/a.py/f",
    "link for folder": "rm -r lib/sub; ln -s /etc lib/sub",
    "link for file": "ln -sf b.py lib/a.py",
    "hard link to what was there": "ln lib/a.py lib/hard.py",
    "byte code": "mkdir lib/__pycache__; echo x > lib/__pycache__/a.pyc",
    "record": "mkdir lib/y.dist-info; echo n > lib/new.py; printf 'new.py,,\\ngone,,\\n' > lib/y.dist-info/RECORD",
    "touched folder": "echo t > lib/sub/t; rm lib/sub/t",
    "everything gone": "rm -r lib bin other",
    "many": "for n in $(seq 60); do echo $n > lib/n$n; done",
    "no utf-8": "touch \"$(printf 'lib/\\377')\"",
}


@pytest.fixture(scope="module")
def layer(workshop: Workshop) -> Layer:
    entries = [
        TarEntry(f"opt/env/{path}", "file", 0o644, OWNER, OWNER, content=text.encode()) for path, text in FILES.items()
    ]
    folders = {f"opt/env/{path}".rpartition("/")[0] for path in FILES} | {"opt/env", "opt/env/lib"}
    folders |= {"opt/env/lib/sub"}
    entries += [TarEntry(path, "dir", 0o755, OWNER, OWNER) for path in folders]
    return store(entries, workshop.blobs, workshop.scratch)


@pytest.fixture(scope="module")
def image(workshop: Workshop, layer: Layer):
    tag = ensure_layers(workshop, "test-changes", [layer], ["environment"])
    yield tag
    remove_image(workshop.client, tag)


@pytest.mark.docker
@pytest.mark.parametrize("name", CHANGES)
def test_changes_read_one_by_one_are_those_of_the_whole_folder(
    name: str, workshop: Workshop, layer: Layer, image: str, tmp_path: Path
) -> None:
    with workshop.box(image, network=False) as box:
        assert box.run(["bash", "-ec", CHANGES[name]], workdir="/opt/env").ok
        layers = []
        for most in (1000, 0):
            with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
                (changed,) = changed_below(workshop, box, ["/opt/env"], Path(folder), most=most)
                made = changed_layer(changed, "/opt/env", lambda at=folder: load(layer, workshop.blobs, Path(at)))
                with (tmp_path / "layer.tar").open("wb") as out:
                    layers.append((deterministic_tar(made, out).diff_id, sorted(entry.path for entry in made)))
    assert layers[0] == layers[1]


@pytest.mark.docker
def test_more_than_a_box_may_hold_is_not_read(workshop: Workshop, image: str, tmp_path: Path) -> None:
    bounded = small(workshop.settings, disk_mb=64)
    with workshop.box(image, network=False) as box:
        box.run(["truncate", "-s", "100M", "/opt/env/sparse"])
        shop = Workshop(**{**vars(workshop), "settings": bounded})
        with pytest.raises(TooLarge):
            changed_below(shop, box, ["/opt/env"], tmp_path)


def tree(*paths: str) -> Tree:
    return {path: TarEntry(path, "file") for path in paths}


def test_what_is_gone_takes_what_was_in_it_along() -> None:
    changed = Changed(entries=[TarEntry("a/b", "dir"), TarEntry("a/b/new", "file")], gone=["a/b", "c"])
    assert set(apply(tree("a/b/x", "a/b2", "c", "d"), changed)) == {"a/b", "a/b/new", "a/b2", "d"}


def test_whole_folder_is_taken_as_it_is() -> None:
    assert set(apply(tree("a", "b"), Changed(entries=[TarEntry("c", "file")], whole=True))) == {"c"}
