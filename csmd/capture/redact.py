"""Secrets are taken out before anything is stored; on decoded text with its key as context.

RULES is the policy: a kind, the literals (lower case) of which one must occur for the pattern
to be tried, the pattern, and where a pattern alone cannot tell, what the secret must also be.
Group 1, where there is one, is the secret; else the whole match. What is replaced leaves
`[redacted:KIND]`, so that a reader sees that something stood there, and is never replaced again.
Text is hostile: every pattern's work is bounded per character (possessive or counted repeats).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret; `literals` are the cheap test that comes before the pattern."""

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = bool
    paired: bool = False
    """The pattern is a tag (group 1 holds the slash of a closing one); what stands between two goes, too."""


_DIGIT = re.compile(r"[0-9]")
_RANDOM_RUN = re.compile(r"(?=[A-Za-z]{0,40}+[0-9])(?=[0-9]{0,40}+[A-Za-z])[A-Za-z0-9+/]{8}")
_NAME = re.compile(r"[A-Za-z_]\w{0,23}(?:\.[A-Za-z_]\w{0,23})*+|[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++", re.ASCII)
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@-]++){2,}+|[\w-]++(?:[./][\w-]++)*\.[a-z]{1,4}[0-9]?", re.ASCII)
_PLACEHOLDER = re.compile(r"\$.*|%.*|\{.*|\*+|x+|\.{3}", re.IGNORECASE | re.DOTALL)


def _has_digit(secret: str) -> bool:
    return _DIGIT.search(secret) is not None


def _looks_random(secret: str) -> bool:
    """Letters and digits mixed in one run, and neither a name in a program nor a path."""
    return bool(_RANDOM_RUN.search(secret)) and not _NAME.fullmatch(secret) and not _PATH.fullmatch(secret)


def _is_chosen(secret: str) -> bool:
    """A password that somebody made up, not the place where one would stand."""
    return _has_digit(secret) and _is_filled_in(secret)


def _is_mixed(secret: str) -> bool:
    """Letters and digits together, as nobody writes a word; a version, a path or a call is none."""
    letters = sum(char.isalpha() for char in secret)
    return (
        letters >= 3
        and _has_digit(secret)
        and _is_filled_in(secret)
        and not _PATH.fullmatch(secret)
        and "." not in secret[1:-1]
    )


def _is_filled_in(secret: str) -> bool:
    return _PLACEHOLDER.fullmatch(secret) is None


def _rule(
    kind: str,
    literals: str,
    pattern: str,
    accepts: Callable[[str], bool] = bool,
    *,
    flags: int = 0,
    paired: bool = False,
) -> Rule:
    # ASCII: a letter of another script before a key does not hide it.
    return Rule(kind, tuple(literals.split(" ")), re.compile(pattern, flags | re.ASCII), accepts, paired)


#: Nothing of a word stands before; `\b` would miss a key behind an underscore.
_AT = r"(?<![A-Za-z0-9])"

RULES: tuple[Rule, ...] = (
    # A tag alone between backticks is talk about the tag.
    _rule("private-tag", "<private </private", r"(?!(?<=`)</?private>`)<(/?)private(?:\s[^<>]{0,200}+)?>", flags=re.IGNORECASE, paired=True),
    _rule("pem", "-----begin", r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END[ A-Z0-9]{0,60}-----|\Z)", flags=re.DOTALL),
    _rule("anthropic-key", "sk-ant-", _AT + r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    _rule("openai-key", "sk-", _AT + r"sk-(?!ant-)[A-Za-z0-9_-]{20,}+", _has_digit),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", _AT + r"(?:gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{30,}+)"),
    _rule("gitlab-token", "glpat-", _AT + r"glpat-[A-Za-z0-9_.-]{16,}+"),
    _rule("aws-key-id", "akia asia", _AT + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _rule("aws-secret", "secret",
          r"aws.?secret.?access.?key[\"'\s:=]{1,20}+([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])", flags=re.IGNORECASE),
    _rule("google-key", "aiza", _AT + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _rule("google-token", "ya29.", _AT + r"ya29\.[A-Za-z0-9_-]{20,}+"),
    _rule("slack-token", "xox xapp-", _AT + r"(?:xox[abcdeprs]|xapp)[-.][A-Za-z0-9.-]{10,}+", _has_digit),
    _rule("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,}+)"),
    _rule("stripe-key", "k_live_ k_test_ whsec_", _AT + r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}+"),
    _rule("npm-token", "npm_", _AT + r"npm_[A-Za-z0-9]{30,}+"),
    _rule("pypi-token", "pypi-", _AT + r"pypi-[A-Za-z0-9_-]{30,}+", _has_digit),
    _rule("huggingface-token", "hf_", _AT + r"hf_[A-Za-z0-9]{30,}+"),
    _rule("sendgrid-key", "sg.", r"(?<![A-Za-z0-9_.-])SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    _rule("jwt", "eyj", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"),
    _rule("bearer", "bearer", _AT + r"bearer\s{1,20}+([A-Za-z0-9._~+/-]{20,}+=*+)", _has_digit, flags=re.IGNORECASE),
    _rule("basic-auth", "basic",
          r"authorization[\"']?\s{0,9}[:=]\s{0,9}[\"']?basic\s{1,9}([A-Za-z0-9+/]{12,}+=*+)", flags=re.IGNORECASE),
    _rule("url-password", "://", r"[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@\"'<>\[]{0,120}+:([^\s/?#@\"'<>]{1,200}+)@", _is_filled_in),
    _rule("assigned-secret", "secret passwor passwd token api_key api-key apikey private_key private-key privatekey",
          r"(?:secret|password|passwd|token|api[_-]?key|private[_-]?key)[\w.-]{0,20}"
          r"[\"']?\s{0,3}(?:=>|=|:)\s{0,3}[\"'`]?"
          r"([A-Za-z0-9_\-+/=.!@#%^&*~]{16,512}+)(?![A-Za-z0-9_\-+/=.!@#%^&*~(\[])", _looks_random, flags=re.IGNORECASE),
    # Shorter than a token, so only where it is written as a value: quoted, in an environment file, behind an option.
    _rule("assigned-password", "passwor passwd passphrase",
          r"(?:(?:password|passwd|passphrase)[\"']?\s{0,3}(?:=>|=|:)\s{0,3}[\"'`]|(?-i:PASSWORD|PASSWD|PASSPHRASE)=|--password[= ])"
          r"([^\s\"'`<>{}()\[\],;]{8,200}+)(?=[\"'`\s,;]|\Z)", _is_chosen, flags=re.IGNORECASE),
    # As people say it: "the password is hunter2xyz", "passwd: Tr0ub4dor&3".
    _rule("spoken-password", "passwor passwd passphrase",
          r"(?:password|passwd|passphrase)(?:\s{0,3}(?:=|:)\s{0,3}|\s{1,3}(?:is|was)\s{1,3}(?:now\s{1,3})?)[\"'`]?"
          r"([^\s\"'`<>{}()\[\],;]{6,200}+)(?=[\"'`\s,;]|\Z)", _is_mixed, flags=re.IGNORECASE),
    _rule("environment-secret", "token= secret= _key= apikey= pass=",
          r"(?<![A-Za-z0-9])[A-Z0-9_]{0,40}(?:TOKEN|SECRET|API_KEY|APIKEY|ACCESS_KEY|SECRET_KEY|PASS)=[\"'`]?"
          r"([^\s\"'`$<>{}()\[\],;]{8,200}+)(?=[\"'`\s,;]|\Z)", _is_mixed),
    _rule("user-password", "-u --user",
          r"(?<!\S)(?:-u|--user)[ =][\"']?[\w.@-]{1,60}:([^\s\"'`@/:]{6,200}+)(?=[\"'`\s]|\Z)", _is_mixed),
)  # fmt: skip

#: A field of this name (lower case, words joined by `_`) holds a secret whatever its value looks like.
SECRET_KEY = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|secret|secret_?key|api_?key|access_?token|refresh_?token|auth_?token|"
    r"private_?key|credentials?|authorization)$"
)
#: What a value of such a field may be without being one: nothing, a placeholder, the name of a type.
HARMLESS_VALUE = re.compile(
    r"|true|false|null|none|\*+|x{3,}|<[^>]*>|\$\{?\w+\}?|\{\{?[^{}]*\}?\}|\[redacted:[a-z-]+\]|"
    r"str|string|text|number|int|integer|bool|boolean|object|array|any|unknown|optional|required|yes|no",
    re.IGNORECASE,
)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-.\s]")


def redact(text: str, counts: Counter[str], *, key: str = "") -> str:
    """`text` without secrets; `counts` gains one for each by kind. `key` is the field it stood in."""
    if key and is_secret_key(key) and not HARMLESS_VALUE.fullmatch(text.strip()):
        counts["secret-field"] += 1
        return "[redacted:secret-field]"
    folded = text.lower()
    for rule in RULES:
        if any(literal in folded for literal in rule.literals):
            text = _apply_paired(rule, text, counts) if rule.paired else _apply(rule, text, counts)
    return text


def is_secret_key(key: str) -> bool:
    """Whether a field's name says that its value is a secret: `apiKey`, `db_password`, `Authorization`."""
    return SECRET_KEY.search(_WORD_START.sub("_", key[-80:]).lower()) is not None


def _apply(rule: Rule, text: str, counts: Counter[str]) -> str:
    mark = f"[redacted:{rule.kind}]"
    found = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal found
        group = 1 if rule.pattern.groups else 0
        secret, whole = match.group(group), match.group(0)
        if secret.startswith("[redacted:") or not rule.accepts(secret):
            return whole
        found += 1
        start, end = match.start(group) - match.start(0), match.end(group) - match.start(0)
        return whole[:start] + mark + whole[end:]

    changed = rule.pattern.sub(replace, text)
    if found:
        counts[rule.kind] += found
    return changed


def _apply_paired(rule: Rule, text: str, counts: Counter[str]) -> str:
    """Takes out what stands between tags, those inside included; what is never closed goes to the end."""
    kept: list[str] = []
    at, start, depth = 0, 0, 0
    for tag in rule.pattern.finditer(text):
        if not tag.group(1):
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                kept += [text[at:start], f"[redacted:{rule.kind}]"]
                at = tag.end()
                counts[rule.kind] += 1
    if depth:
        kept += [text[at:start], f"[redacted:{rule.kind}]"]
        at = len(text)
        counts[rule.kind] += 1
    return "".join(kept) + text[at:]


def redact_tree(value: Any, counts: Counter[str], *, key: str = "") -> Any:
    """A decoded JSON value with every string in it redacted, names of fields included; numbers in secret fields go."""
    if isinstance(value, str):
        return redact(value, counts, key=key)
    if isinstance(value, Mapping):
        return {redact(str(k), counts): redact_tree(v, counts, key=str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [redact_tree(item, counts, key=key) for item in value]
    if type(value) in (int, float) and key and is_secret_key(key):
        return redact(str(value), counts, key=key)
    return value
