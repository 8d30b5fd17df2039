"""How long an endpoint asks to wait is read from whatever header says it, and nonsense says nothing."""

from __future__ import annotations

import math
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.models.waits import asked_wait

NOW = 1_780_000_000.0
RESET, LEFT = "x-ratelimit-reset-", "x-ratelimit-remaining-"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, 90.0),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-7"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Mon, 99 Zzz 2026 00:00:00 GMT"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({f"{RESET}requests": "1s"}, 1.0),
        ({f"{RESET}requests": "6m0s"}, 360.0),
        ({f"{RESET}tokens": "7.66s"}, 7.66),
        ({f"{RESET}tokens": "120ms"}, 0.12),
        ({f"{RESET}tokens": "1d2h3m4s"}, 93784.0),
        ({f"{RESET}tokens": "12"}, 12.0),
        ({f"{RESET}tokens": "6 monkeys"}, None),
        ({f"{RESET}tokens": "s"}, None),
        ({"x-ratelimit-reset": str(int(NOW) + 30)}, 30.0),
        ({"x-ratelimit-reset": str((int(NOW) + 30) * 1000)}, 30.0),
        ({"x-ratelimit-reset": str(int(NOW) - 30)}, 0.0),
        ({f"{RESET}requests": "8h", f"{LEFT}requests": "99", f"{RESET}tokens": "6s", f"{LEFT}tokens": "0"}, 6.0),
        ({f"{RESET}requests": "8h", f"{LEFT}requests": "0", f"{RESET}tokens": "6s", f"{LEFT}tokens": "0"}, 28800.0),
        ({f"{RESET}requests": "8h", f"{LEFT}requests": "99", f"{RESET}tokens": "6s", f"{LEFT}tokens": "50"}, 6.0),
    ],
    ids=str,
)
def test_a_wait_is_read(headers: dict[str, str], wait: float | None) -> None:
    assert asked_wait(headers, NOW) == (None if wait is None else pytest.approx(wait))


names = st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", f"{RESET}tokens", f"{LEFT}tokens"])


@given(st.dictionaries(names, st.text(alphabet="0123456789.msdhe+-naif GMT,:", max_size=20) | st.text(max_size=8)))
def test_whatever_a_header_says_a_wait_is_a_time_or_nothing(headers: dict[str, str]) -> None:
    wait = asked_wait(headers, NOW)
    assert wait is None or (math.isfinite(wait) and wait >= 0)
