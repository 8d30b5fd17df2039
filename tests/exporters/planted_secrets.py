"""Tokens that look real, put together at run time: no text in this file has the shape of one."""

from __future__ import annotations

import base64
import json


def _b64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_LONG = _LETTERS.upper() + _LETTERS

SECRETS: dict[str, tuple[str, str]] = {
    "aws": ("AWS Access Key", "AK" + "IA" + "Q" + _LETTERS.upper()[:15]),
    "github": ("GitHub Token", "gh" + "p_" + _LETTERS),
    "github-fine": ("GitHub Token", "github" + "_pat_" + _LONG[:22] + "_" + _LONG[:59]),
    "gitlab": ("GitLab Token", "gl" + "pat-" + _LETTERS[:20]),
    "google": ("Google API Key", "AI" + "za" + _LONG[:35]),
    "hugging-face": ("Hugging Face Token", "h" + "f_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    "jwt": (
        "JSON Web Token",
        ".".join([_b64(json.dumps({"alg": "HS256"})), _b64(json.dumps({"sub": "1"})), _b64("signature")]),
    ),
    "npm": ("NPM tokens", "np" + "m_" + _LETTERS),
    "private-key": (
        "Private Key",
        "-----BEGIN " + "RSA PRIVATE KEY-----\n" + (_LONG[:64] + "\n") * 3 + "-----END RSA PRIVATE KEY-----",
    ),
    "pypi": ("PyPI Token", "py" + "pi-AgE" + _LONG),
    "sendgrid": ("SendGrid API Key", "S" + "G." + _LONG[:22] + "." + _LONG[:43]),
    "slack": ("Slack Token", "xo" + "xb-123456789012-" + _LETTERS[:24]),
    "square": ("Square OAuth Secret", "sq" + "0csp-" + _LONG[:43]),
    "stripe": ("Stripe Access Key", "sk" + "_live_" + _LETTERS[:24]),
    "twilio": ("Twilio API Key", "S" + "K" + _LETTERS[:32]),
}
