"""Secrets in text that is about to leave: deterministic, by the shape of the token, never asking a network.

Only detectors of structured tokens are used (detect-secrets' plug-ins for private keys, AWS, GitHub, Slack and the
like, and patterns of our own for what they lack). Its entropy and keyword detectors are left out on purpose: a patch is
full of hashes, fixtures and lines such as `password = "x"`, and a rule that refuses those would refuse good tasks
without finding more real tokens. Credentials in URLs are looked for only in text that our own machinery wrote
(commands, error messages, locks), where they could be ours; in patches of URL parsers they are test data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

_TOKENS: tuple[RegexBasedDetector, ...] = (
    AWSKeyDetector(),
    DiscordBotTokenDetector(),
    GitHubTokenDetector(),
    NpmDetector(),
    PrivateKeyDetector(),
    SendGridDetector(),
    SlackDetector(),
    SquareOAuthDetector(),
    StripeDetector(),
    TwilioKeyDetector(),
)
_URLS = BasicAuthDetector()

_B64 = "[A-Za-z0-9_-]"

# What the plug-ins lack, or find in time that grows with the square of the text's length (JSON Web Tokens, RFC 7515,
# whose header and payload begin with `{"`). Shapes from the vendors' documentation of their token prefixes.
_PATTERNS: dict[str, re.Pattern[str]] = {
    "Private Key": re.compile(
        r"BEGIN[A-Z0-9 ]{0,40} PRIVATE KEY(?: BLOCK)?-{3,}[\s\"'\\nrb+,()-]{0,80}[A-Za-z0-9+/]{40}"
    ),
    "GitHub Token": re.compile(r"\bgithub_pat_[0-9A-Za-z]{22}_[0-9A-Za-z]{59}\b"),
    "GitLab Token": re.compile(r"\bglpat-[0-9A-Za-z_-]{20}\b"),
    "Google API Key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "Hugging Face Token": re.compile(r"\bhf_[A-Za-z]{34}\b"),
    "JSON Web Token": re.compile(rf"(?<![A-Za-z0-9_])(?<!{_B64}-)eyJ{_B64}{{10,4000}}\.eyJ{_B64}{{5,4000}}"),
    "PyPI Token": re.compile(r"\bpypi-AgE[0-9A-Za-z_-]{50}"),
}

# AWS marks the keys in its documentation by this word (AWS General Reference, "Access keys").
_PLACEHOLDER = "EXAMPLE"


def find_secrets(text: str, *, ours: bool = False) -> tuple[str, ...]:
    """Return the kinds of secrets that a text seems to hold, sorted; never the secrets themselves.

    Args:
        text: a text, or a diff.
        ours: the text was written by our own machinery, so that credentials in URLs count too.
    """
    return tuple(sorted(set(_kinds(text, ours=ours))))


def _kinds(text: str, *, ours: bool) -> Iterator[str]:
    for detector in _TOKENS:
        if any(_PLACEHOLDER not in found for found in detector.analyze_string(text)):
            yield str(detector.secret_type)
    for kind, pattern in _PATTERNS.items():
        if pattern.search(text):
            yield kind
    if ours and any(True for _ in _URLS.analyze_string(text)):
        yield str(_URLS.secret_type)
