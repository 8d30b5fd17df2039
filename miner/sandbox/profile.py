"""The locked-down profile: pure, from settings to what the engine is asked for.

A box is kept alive by the *keeper* (pid 1 and its child), which runs as `nobody` and only waits; commands run beside it
as uid 1000. So the code in a box cannot signal the keeper, and a box that ends without our doing is a fault of the
engine or of the host, never a result.

Not read-only: tests write into the working tree and into the environment. What they write lies in the container's own
layer, is bounded by `disk_mb` and goes away with the container.
"""

from __future__ import annotations

from typing import Any, Literal

from docker.types import LogConfig, Mount, Ulimit

from miner.core.records import Record
from miner.core.settings import Limits, Measure, Settings
from miner.sandbox.interface import LABEL

USER = "1000:1000"
KEEPER = "65534:65534"
HOSTNAME = "testbed"
CACHE_VOLUME = "swe-miner-uv-cache"
CACHE = "/cache"

_MB = 1024 * 1024
_OPEN_FILES = 16384


class Profile(Record):
    """Bounds and surroundings of a box.

    Attributes:
        cache: "shared" mounts the volume with uv's cache, only for commands that run no code of packages; "private" is
            a folder of the container, so that such code cannot poison what others will use.
        owner: id of the ledger on whose behalf the box exists.
    """

    limits: Limits
    env: dict[str, str]
    cache: Literal["shared", "private"] = "private"
    runtime: str | None = None
    owner: str = "nobody"


def profile_of(
    settings: Settings, limits: Limits, *, cache: Literal["shared", "private"] = "private", owner: str
) -> Profile:
    """Return the profile for these limits, with the clock zone, locale and hash seed of the settings."""
    return Profile(
        limits=limits,
        env={"HOME": "/home/miner", **suite_env(settings.measure)},
        cache=cache,
        runtime=settings.docker.runtime,
        owner=owner,
    )


def suite_env(measure: Measure) -> dict[str, str]:
    """Return the variables that tests run with, and that those who run them again set too."""
    return {
        "LANG": measure.locale,
        "LC_ALL": measure.locale,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": str(measure.hash_seed),
        "TZ": measure.timezone,
    }


def hardening(limits: Limits, *, owner: str, runtime: str | None) -> dict[str, Any]:
    """Return what every container of ours is created with, the proxy included."""
    return {
        "use_config_proxy": False,  # else the SDK copies proxies, logins and all, from the user's settings of Docker
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "init": True,
        "mem_limit": limits.memory_mb * _MB,
        "memswap_limit": limits.memory_mb * _MB,
        "nano_cpus": int(limits.cpus * 1e9),
        "pids_limit": limits.pids,
        "ulimits": [
            Ulimit(name="nofile", soft=_OPEN_FILES, hard=_OPEN_FILES),
            Ulimit(name="fsize", soft=limits.disk_mb * _MB, hard=limits.disk_mb * _MB),
            Ulimit(name="core", soft=0, hard=0),
        ],
        "oom_score_adj": 500,  # where the host itself runs out of memory, rather a box than the engine or us
        "runtime": runtime,
        "labels": {LABEL: owner},
        "stop_signal": "SIGKILL",
    }


def container_options(profile: Profile) -> dict[str, Any]:
    """Return the keyword arguments for `client.containers.create`."""
    limits = profile.limits
    return {
        **hardening(limits, owner=profile.owner, runtime=profile.runtime),
        "user": KEEPER,
        "command": ["sleep", "infinity"],
        "entrypoint": [],
        "environment": profile.env,
        "hostname": HOSTNAME,
        "network_mode": "none",
        # No name service: neither the host's resolvers nor its search list are visible, and a look-up fails at once.
        "dns": ["127.0.0.1"],
        "dns_search": ["."],
        "dns_opt": ["timeout:1", "attempts:1"],
        "ipc_mode": "private",  # not "none": multiprocessing's locks live in /dev/shm
        "shm_size": min(limits.memory_mb, 256) * _MB,
        "tmpfs": {"/tmp": f"size={_tmp_mb(limits)}m,mode=1777,exec,nosuid,nodev"},  # noqa: S108 - in the container
        "mounts": _cache_mount(profile),
        "log_config": LogConfig(type=LogConfig.types.NONE),
        "working_dir": "/",
    }


def _tmp_mb(limits: Limits) -> int:
    """`/tmp` is memory: half of it, so that a full `/tmp` is an error of the writer and not the end of a process."""
    return min(limits.disk_mb, limits.memory_mb // 2)


def _cache_mount(profile: Profile) -> list[Mount]:
    return [Mount(CACHE, CACHE_VOLUME, type="volume")] if profile.cache == "shared" else []
