"""Secrets are taken out before anything is stored; on decoded text with its key as context.

RULES is the policy: a kind, the literals that must occur for its pattern to be tried, and the
pattern. Group 1, where there is one, is the secret; else the whole match. What is replaced
leaves `[redacted:KIND]`, so that a reader sees that something stood there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret; `literals` are the cheap test that comes before the pattern."""

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(kind: str, literals: str, pattern: str, flags: int = 0) -> Rule:
    return Rule(kind, tuple(literals.split(" ")), re.compile(pattern, flags))


RULES: tuple[Rule, ...] = (
    _rule("private-tag", "<private>", r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE),
    _rule("pem", "-----BEGIN", r"-----BEGIN[ A-Z0-9]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END[ A-Z0-9]*-----|\Z)", re.DOTALL),
    _rule("anthropic-key", "sk-ant-", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    _rule("openai-key", "sk-", r"\bsk-(?!ant-)(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})"),
    _rule("gitlab-token", "glpat-", r"\bglpat-[A-Za-z0-9_-]{16,}"),
    _rule("aws-key-id", "AKIA ASIA", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    _rule("aws-secret", "aws_secret aws-secret AWS_SECRET secretAccessKey SecretAccessKey",
          r"(?i)aws.?secret.?access.?key[\"'\s:=]+([A-Za-z0-9/+]{40})\b"),
    _rule("google-key", "AIza", r"\bAIza[A-Za-z0-9_-]{35}\b"),
    _rule("google-token", "ya29.", r"\bya29\.[A-Za-z0-9_-]{20,}"),
    _rule("slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xapp-", r"\b(?:xox[bpars]|xapp)-[A-Za-z0-9-]{10,}"),
    _rule("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/services/([A-Za-z0-9/_-]{20,})"),
    _rule("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"\b(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}"),
    _rule("npm-token", "npm_", r"\bnpm_[A-Za-z0-9]{30,}"),
    _rule("pypi-token", "pypi-", r"\bpypi-[A-Za-z0-9_-]{30,}"),
    _rule("huggingface-token", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    _rule("sendgrid-key", "SG.", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _rule("jwt", "eyJ", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    _rule("bearer", "earer", r"(?i)\bbearer\s+([A-Za-z0-9._~+/-]{20,}=*)"),
    _rule("basic-auth", "asic ", r"(?i)authorization[\"']?\s*[:=]\s*[\"']?basic\s+([A-Za-z0-9+/]{12,}=*)"),
    _rule("url-password", "://", r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,120}:([^\s/@\"'<>]{1,200})@"),
    _rule("assigned-secret", "ecret asswor asswd oken pikey pi_key pi-key SECRET PASSWOR PASSWD TOKEN API_KEY APIKEY PRIVATE_KEY rivate_key",
          r"(?i)(?<![A-Za-z0-9])[\w.-]{0,40}(?:secret|password|passwd|token|api[_-]?key|private[_-]?key)[\w.-]{0,20}"
          r"[\"']?\s{0,3}(?:=|:|=>)\s{0,3}[\"'`]?"
          r"((?=[^\s\"'`,;]*\d)(?=[^\s\"'`,;]*[A-Za-z])[A-Za-z0-9_\-+/=.!@#%^&*~]{16,200})(?=[\"'`\s,;)\]}]|\Z)"),
)  # fmt: skip

#: A field of this name holds a secret whatever its value looks like.
SECRET_KEY = re.compile(
    r"(?i)(?:^|[_.-])(?:password|passwd|passphrase|secret|client_secret|api_?key|access_?token|refresh_?token|"
    r"auth_?token|private_?key|credentials?)$"
)
#: What a value of such a field may be without being one.
HARMLESS_VALUE = re.compile(r"^(?:|true|false|null|none|\*+|<[^>]*>|\$\{?\w+\}?|[a-z ]{1,12})$", re.IGNORECASE)


def redact(text: str, counts: Counter[str], *, key: str = "") -> str:
    """`text` without secrets; `counts` gains one for each by kind. `key` is the field it stood in."""
    if key and SECRET_KEY.search(key) and not HARMLESS_VALUE.match(text.strip()):
        counts["secret-field"] += 1
        return "[redacted:secret-field]"
    for rule in RULES:
        if any(literal in text for literal in rule.literals):
            text = _apply(rule, text, counts)
    return text


def _apply(rule: Rule, text: str, counts: Counter[str]) -> str:
    mark = f"[redacted:{rule.kind}]"
    found = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal found
        secret = match.group(1) if rule.pattern.groups else match.group(0)
        if secret.startswith("[redacted:"):
            return match.group(0)
        found += 1
        if not rule.pattern.groups:
            return mark
        start, end = match.start(1) - match.start(0), match.end(1) - match.start(0)
        whole = match.group(0)
        return whole[:start] + mark + whole[end:]

    changed = rule.pattern.sub(replace, text)
    if found:
        counts[rule.kind] += found
    return changed


def redact_tree(value: Any, counts: Counter[str], *, key: str = "") -> Any:
    """A decoded JSON value with every string in it redacted, names of fields included."""
    if isinstance(value, str):
        return redact(value, counts, key=key)
    if isinstance(value, Mapping):
        return {redact(str(k), counts): redact_tree(v, counts, key=str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [redact_tree(item, counts, key=key) for item in value]
    return value
