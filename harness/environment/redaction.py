"""Secrets taken out of environment values and URLs before they are written anywhere."""

from __future__ import annotations

import re

REDACTED = "[redacted]"

_SECRET = r"(?:token|key|secret|passw(?:or)?d|credential|signature)"

_NAME = re.compile(_SECRET, re.IGNORECASE)

# scheme://user:password@host, and scheme://token@host; the last @ before the path ends the user part.
_USER_INFO = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/?#\s]+@", re.IGNORECASE)

# token=..., "api_key": "...", --api-key ...: a name that ends like a secret, and a value.
_ASSIGNMENT = re.compile(
    rf"(?P<name>[\w.-]*{_SECRET}s?[\"']?\s*[=:]\s*|-[\w-]*{_SECRET}s?\s+)"
    r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'&;,#}\]]+)",
    re.IGNORECASE,
)

_BEARER = re.compile(r"(?P<name>\b(?:bearer|basic)\s+)[^\s\"',;]+", re.IGNORECASE)

# Tokens known by their look: Hugging Face, OpenAI and its imitators, GitHub, GitLab, AWS.
_KNOWN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|AKIA[A-Z0-9]{16})"
)


def redact(text: str) -> str:
    """`text` less what looks secret: credentials in URLs, values after secret names, well-known tokens."""
    text = _USER_INFO.sub(rf"\g<scheme>{REDACTED}@", text)
    text = _ASSIGNMENT.sub(rf"\g<name>{REDACTED}", text)
    text = _BEARER.sub(rf"\g<name>{REDACTED}", text)
    return _KNOWN.sub(REDACTED, text)


def redact_variable(name: str, value: str) -> str:
    """The value of an environment variable: nothing of it when the name speaks of a secret, else `redact`."""
    return REDACTED if value and _NAME.search(name) else redact(value)
