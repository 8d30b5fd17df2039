"""Tokens are found by their shape, wherever they stand in a diff; ordinary code is not mistaken for one."""

from __future__ import annotations

import time

import pytest
from planted_secrets import SECRETS
from release_items import GOLD, LOCK_TEXT, TESTS

from exporters.secret_scan import find_secrets


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("prefix", ["+", "-", " ", "+    key = "])
def test_token_in_a_line_of_a_diff_is_found(name: str, prefix: str) -> None:
    kind, secret = SECRETS[name]
    diff = GOLD + prefix + f"\n{prefix[0]}".join(secret.splitlines()) + "\n"
    assert find_secrets(diff) == (kind,)


def test_private_key_in_quoted_lines_of_code_is_found() -> None:
    _, key = SECRETS["private-key"]
    code = "\n".join(f'+    "{line}\\n"' for line in key.splitlines())
    assert find_secrets(code) == ("Private Key",)


@pytest.mark.parametrize(
    "text",
    [
        GOLD,
        TESTS,
        LOCK_TEXT,
        "",
        "index 1f3c9a7..8b2d4e6 100644\n+assert sha1(b'') == 'da39a3ee5e6b4b0d3255bfef95601890afd80709'\n",
        '+    password = "hunter2"\n+    api_key = "not-a-real-key"\n',
        "+    client = Client(token=os.environ['TOKEN'])\n",
        "a PEM file begins with BEGIN RSA PRIVATE KEY, see the documentation of the module\n",
        "+    id = 'AKIA" + "IOSFODNN7EXAMPLE'\n",
    ],
)
def test_ordinary_text_holds_no_secret(text: str) -> None:
    assert find_secrets(text, ours=True) == ()


@pytest.mark.parametrize("piece", ["eyJ", "=eyJ", "eyJ-.", "BEGIN", "BEGIN ", "://a:", "aws key "])
def test_hostile_text_takes_no_time_that_grows_with_its_square(piece: str) -> None:
    started = time.monotonic()
    assert find_secrets(piece * (600_000 // len(piece)), ours=True) == ()
    assert time.monotonic() - started < 5.0  # it was half a minute and more


def test_credentials_in_a_url_count_only_in_our_own_words() -> None:
    line = "curl: cannot reach https://user" + ":pass" + "word@index.internal/simple\n"
    assert find_secrets(line) == ()
    assert find_secrets(line, ours=True) == ("Basic Auth Credentials",)
