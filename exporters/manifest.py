"""`manifest.json`: the images of a release, one entry per task, so that no image and row are ever out of step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from exporters.interface import PublicItem, Task
from exporters.schema import SCHEMA_VERSION
from exporters.text import json_bytes


def manifest_bytes(items: Iterable[PublicItem], policy_hash: str) -> bytes:
    """Return the manifest of the accepted tasks' images."""
    images = [_image(item.instance_id, item.task) for item in items if item.task]
    images.sort(key=lambda image: str(image["instance_id"]))
    return json_bytes({"schema_version": SCHEMA_VERSION, "policy_hash": policy_hash, "images": images})


def _image(instance_id: str, task: Task) -> dict[str, Any]:
    environment = task.environment
    return {
        "instance_id": instance_id,
        "image": task.image_name,
        "digest": environment.image,
        "base_digest": environment.base_digest,
        "size": sum(layer.size for layer in environment.layers),
        "layers": [layer.model_dump(mode="json") for layer in environment.layers],
        "lock_sha256": environment.lock_sha256,
        "python": task.recipe.python,
        "install_mode": environment.mode.value,
    }
