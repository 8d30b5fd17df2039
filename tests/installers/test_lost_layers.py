"""Layers that were evicted: nothing is done while nobody needs them, and they come back with the bytes they had."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench import PROJECT, Known, case_of, recipe_of

from installers.eviction import AGAIN, regained
from installers.ground import ground
from installers.health import KIND as HEALTH
from installers.image import remove_image
from installers.ladder import install
from installers.workshop import Workshop
from miner.core.memo import Memo

TESTS = {"tests/test_demo.py": "import demo\n\ndef test_answer():\n    assert demo.answer == 42\n"}


class Remembered(Known):
    """A memo's memory that knows whether what its facts name is still there."""

    def __init__(self, workshop: Workshop) -> None:
        super().__init__()
        self._blobs = workshop.blobs

    def memo(self, *_) -> Memo:
        return Memo(self._find, self.facts.append, whole=lambda fact: all(map(self._blobs.has, fact.blobs.values())))


@pytest.mark.docker
@pytest.mark.index
def test_lost_layers_are_made_again_from_their_locks_when_they_are_needed(workshop: Workshop, tmp_path: Path) -> None:
    measure = workshop.settings.measure
    ladder = measure.ladder.model_copy(update={"order": ("declared",)})
    settings = workshop.settings.model_copy(update={"measure": measure.model_copy(update={"ladder": ladder})})
    shop, known = replace(workshop, settings=settings), Remembered(workshop)
    case = replace(case_of(PROJECT, tmp_path, TESTS), instance_id="pypi__demo-lost")
    first = install(shop, known.memo(), case)
    assert first.environment is not None

    on_ground = {fact.key for fact in ground(shop, known.memo(), recipe_of()).facts}
    lost = regained(fact for fact in known.facts if fact.key not in on_ground)
    assert len(lost) >= 3
    for digest in lost:
        workshop.blobs.remove(digest)
    for image in workshop.client.images.list():
        if any(f"sha256:{digest}" in image.attrs["RootFS"]["Layers"] for digest in lost):
            for tag in image.tags:
                remove_image(workshop.client, tag)

    nobody = replace(shop, room=lambda: pytest.fail("an engine was asked for"))
    assert install(nobody, known.memo(), case) == first

    known.facts = [fact for fact in known.facts if fact.key.kind != HEALTH]
    before = len(known.facts)
    again = install(shop, known.memo(), case)
    assert again.environment == first.environment
    assert all(workshop.blobs.has(layer) for layer in _layers(again.facts))
    assert {fact.key.ordinal for fact in known.facts[before:] if AGAIN & fact.blobs.keys()} == {1}
    assert [one.number for one in again.attempts] == [one.number for one in first.attempts]


def _layers(facts) -> set[str]:
    return {fact.blobs["layer"] for fact in facts if "layer" in fact.blobs}
