"""How long an endpoint asks to wait, read from the headers of its answer. Pure.

`Retry-After` is seconds or a date (RFC 9110, 10.2.3). `x-ratelimit-reset-*` is a duration such as "1s" or "6m0s"
(https://platform.openai.com/docs/guides/rate-limits, "Rate limits in headers"), or a time since the epoch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_RESET = "x-ratelimit-reset"
_REMAINING = "x-ratelimit-remaining"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_EPOCH_S = 1e9
_EPOCH_MS = 1e12


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that an endpoint asks to wait, None where it does not say.

    Args:
        headers: by lower-case name.
        now: seconds since the epoch.
    """
    if (exact := _number(headers.get("retry-after-ms", ""))) is not None:
        return exact / 1000
    if (said := _retry_after(headers.get("retry-after", ""), now)) is not None:
        return said
    resets = {
        name.removeprefix(_RESET): _reset(value, now) for name, value in headers.items() if name.startswith(_RESET)
    }
    known = {name: wait for name, wait in resets.items() if wait is not None}
    used_up = [wait for name, wait in known.items() if _number(headers.get(_REMAINING + name, "")) == 0]
    if used_up:
        return max(used_up)
    return min(known.values(), default=None)


def _retry_after(text: str, now: float) -> float | None:
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        return max(parsedate_to_datetime(text).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None


def _reset(text: str, now: float) -> float | None:
    text = text.strip()
    if (number := _number(text)) is not None:
        if number >= _EPOCH_S:
            number = (number / 1000 if number >= _EPOCH_MS else number) - now
        return max(number, 0.0)
    parts = _PART.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        return None
    return sum(float(amount) * _UNITS[unit] for amount, unit in parts)


def _number(text: str) -> float | None:
    """Return a number that is finite and not negative."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= 0 else None
