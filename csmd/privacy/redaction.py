"""Takes secrets out of decoded text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_DIGIT = re.compile(r"[0-9]")
PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@-]++){2,}+|[\w-]++(?:[./][\w-]++)*\.[a-z]{1,4}[0-9]?", re.ASCII)
_SIGN = re.compile(r"(?<=[A-Za-z])[!@$%^&*](?=[A-Za-z])")
#: A sign that no word and no name has, in what has a digit and eight characters at least.
_SIGNED = re.compile(r"(?=.{8})(?=[^0-9]{0,60}[0-9])[^!@#$%^&*?]{0,60}[!@#$%^&*?]")
#: A word with a capital and its number, at its end or inside, or several such words.
_NUMBERED = re.compile(
    r"(?=.{8})(?=[^A-Z]{0,60}[A-Z])(?=[^a-z]{0,60}[a-z])(?:[A-Za-z0-9]{2,40}|(?:[A-Z][a-z]{1,15}-){2,4})[0-9]{2}[a-z]{0,12}[.?!:]?"
)
#: A word that is no name for its digits: two of them, or one among letters of both cases.
_SPRINKLED = re.compile(
    r"(?=.{8})(?:(?=[^0-9]{1,60}[0-9][^0-9]{0,60}[0-9])|(?=[^A-Z]{0,60}[A-Z])(?=[^0-9]{0,60}[a-z][0-9][a-z]))[A-Za-z0-9]{2,60}[.?!:]?"
)
#: Names and numbers with slashes between them.
_SLASHED = re.compile(r"[^A-Z]*|[^0-9]*|[/~].*|(?:[A-Za-z_-]+[0-9]*/)+[A-Za-z_-]+[0-9]*\W?")
#: What is said of a password and is none: how it is hashed, how long it is, who keeps it.
_SAID_OF_ONE = re.compile(
    r"\w{0,8}crypt(?:$|[-_\d\W])|(?:argon|pbkdf|sha|md|aes|base|utf|rsa|oauth|iso|rfc)[-_]?\d|hmac-|1password|0x|a-z|"
    r"(?:at|min|max|level|step|type|option|version|section|phase|chapter|field|column|line)-?\d{1,2}\W?$|"
    r"\d+-(?:character|char|digit|letter|word|byte|bit|minute|hour|day|week|month|year|step|factor)",
    re.IGNORECASE,
)
#: Words of sentences about a passphrase and of examples for one; none has them.
_OF_SENTENCES = re.compile(
    r"[a-z]{0,20}(?:ed|ing|ly|able|ible|less|wide|side|based|only|time|text|word|phrase|level|safe|free)|"
    r"the|this|that|these|those|your|you|our|their|its|his|her|one|two|all|any|each|not|never|always|also|too|still|just|"
    r"and|but|for|from|with|when|then|than|where|what|which|who|how|out|over|into|onto|until|before|after|about|only|same|"
    r"must|should|can|could|will|would|may|has|have|had|was|were|are|does|did|been|being|empty|none|null|set|wrong|right|"
    r"here|there|now|yet|more|less|than|some|every|very|new|old|default|example|change|changeme|secret|user|users|admin|"
    r"kept|sent|held|given|taken|shown|hidden|written|read|known|made|part|place|holder|key|keys|token|value|string|file|stdin|"
    r"environment|variable|config|server|client|characters?|prompt|login",
    re.IGNORECASE,
)
#: A name in a program, an anchor of YAML, a ticket's number.
_JOINED = re.compile(
    r"_*[a-z0-9]+(?:_+[a-z0-9]+)+\W?|_*[A-Z0-9]+(?:_+[A-Z0-9]+)+\W?|[&*@][A-Za-z_]\w*|[A-Z]{2,8}-[0-9]{1,6}\W?",
    re.ASCII,
)
_PLACEHOLDER = re.compile(r"\$.*|%.*|\{.*|<.*|\*+|x+|\.{3}", re.IGNORECASE | re.DOTALL)
#: Words of an example without a digit of its own: `your-strong-password`, `super-fake-password`.
_OF_EXAMPLES = re.compile(
    r"fake|dummy|example|sample|placeholder|change|changeme|replace|your|x{3,}|real|strong|secure|super|test|user|"
    r"database|root|admin|password|passwd|passphrase|passcode|passwort|secret|token|login|value|string|here|this|with",
    re.IGNORECASE,
)
#: A name in a program: several words, each with a capital, and a number between two of them.
_CODE = re.compile(r"[A-Za-z][a-z]*(?:[A-Z][a-z]*)*[0-9]+(?:[A-Z][a-z]*[0-9]*)+[.?!:]?", re.ASCII)


def has_digit(secret: str) -> bool:
    """A digit, which a word has not."""
    return _DIGIT.search(secret) is not None


def is_chosen(secret: str) -> bool:
    """A password that somebody made up, not the place where one would stand."""
    return has_digit(secret) and is_filled_in(secret)


def is_mixed(secret: str) -> bool:
    """Letters and digits together, as nobody writes a word; a version, a path or a call is none."""
    letters = sum(char.isalpha() for char in secret)
    return (
        letters >= 3
        and has_digit(secret)
        and is_filled_in(secret)
        and not PATH.fullmatch(secret)
        and "." not in secret[1:-1]
    )


def is_spoken_password(secret: str) -> bool:
    """A password as somebody says one: letters mixed with digits or with a sign inside; no name, path, option or hash."""
    letters = sum(char.isalpha() for char in secret)
    return (
        letters >= 3
        and (has_digit(secret) or _SIGN.search(secret) is not None)
        and is_filled_in(secret)
        and not secret.startswith(("-", ".", "#", "@", "[redacted"))
        and not any(sign in secret[:-1] for sign in ".=")
        and not ("/" in secret[:-1] and _SLASHED.fullmatch(secret))
        and is_no_name(secret)
    )


def is_no_name(secret: str) -> bool:
    """Neither a name in a program nor what is said of a password and is none."""
    return _SAID_OF_ONE.match(secret) is None and _JOINED.fullmatch(secret) is None


def is_labelled_secret(secret: str) -> bool:
    """Mixed, right behind the word that says what it is."""
    return is_mixed(secret) and is_no_name(secret)


def is_unlabelled_password(secret: str) -> bool:
    """One that can be known where nothing but a blank says that it comes: `Sommer2024!`, `Blaubeer77`."""
    return is_spoken_password(secret) and (_SIGNED.search(secret) or _NUMBERED.fullmatch(secret)) is not None


def is_account_password(secret: str) -> bool:
    """One behind a word that is said of much else, too: `hunter22x` behind `pass:`, `Sup3rSecret` behind `admin:`."""
    return (
        is_spoken_password(secret)
        and (_SIGNED.search(secret) or _NUMBERED.fullmatch(secret) or _SPRINKLED.fullmatch(secret)) is not None
        and _CODE.fullmatch(secret) is None
    )


def is_signed(secret: str) -> bool:
    """One with a sign that no name has, where names stand, too: `Lemon#4482`, but not `Chrome120?`."""
    return is_spoken_password(secret) and _SIGNED.search(secret.rstrip(".,:?")) is not None


def is_phrase(secret: str) -> bool:
    """Words that make no sentence, as a phrase for a password has them."""
    words = re.split(r"[- ]", secret)
    return (
        sum(map(len, words)) >= 14
        and not any(_OF_SENTENCES.fullmatch(word) for word in words)
        and not all(_OF_EXAMPLES.fullmatch(word) for word in words)
    )


def is_filled_in(secret: str) -> bool:
    """No placeholder; `changeme` is none where the syntax says that it is a password: many are in use."""
    return _PLACEHOLDER.fullmatch(secret) is None


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret; `literals` are what the prefilter looks for."""

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = bool
    back: int = 0
    """The literal stands this many characters into the match."""
    paired: bool = False
    """The pattern is a tag (group 1 holds the slash of a closing one); what stands between two goes, too."""

    @property
    def ignores_case(self) -> bool:
        return bool(self.pattern.flags & re.IGNORECASE)


_RANDOM_RUN = re.compile(r"(?=[A-Za-z]{0,40}+[0-9])(?=[0-9]{0,40}+[A-Za-z])[A-Za-z0-9+/]{8}")
_NAME = re.compile(r"[A-Za-z_]\w{0,23}(?:\.[A-Za-z_]\w{0,23})*+|[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++", re.ASCII)


def looks_random(secret: str) -> bool:
    """Letters and digits mixed in one run, and neither a name in a program nor a path."""
    return bool(_RANDOM_RUN.search(secret)) and not _NAME.fullmatch(secret) and not PATH.fullmatch(secret)


def holds_private_key(secret: str) -> bool:
    """Base64 of a PEM block of a private key; of a certificate it is none."""
    head = re.sub(r"\\[rn]|\s", "", secret[:120])
    return b"PRIVATE KEY" in base64.b64decode(head[: len(head) // 4 * 4])


def is_card_number(secret: str) -> bool:
    """A number with the check digit of a payment card."""
    digits = [int(char) for char in secret if char.isdigit()]
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return 13 <= len(digits) <= 19 and len(set(digits)) > 2 and (doubled + sum(digits[-1::-2])) % 10 == 0


def is_session_cookie(secret: str) -> bool:
    """Pairs of which one is long and mixed enough to let somebody in."""
    values = [pair.partition("=")[2] for pair in secret.split(";")]
    return any(len(value) >= 16 and _RANDOM_RUN.search(value) for value in values)


#: Nothing of a word stands before; `\b` would miss a key behind an underscore.
AT = r"(?<![A-Za-z0-9])"
END = r"(?![A-Za-z0-9])"
#: A quote, also as it stands in JSON that is itself a string in JSON.
Q = r"(?:\\{0,3}[\"'`])"
#: Between a name and its value.
IS = rf"{Q}?\s{{0,3}}(?:=>|:=|=|:)\s{{0,3}}{Q}?"
#: What stands in a configuration file between a vendor's name and the value: the rest of the key, quotes, a sign.
NEAR = r"[\w.\- ]{0,30}[\"'`\\\s:=>]{1,8}"
#: Base64 over several lines, real or escaped.
WRAPPED = r"[A-Za-z0-9+/]{24,}+(?:(?:\\[rn]|\s){1,24}+[A-Za-z0-9+/]{24,}+)*+(?:(?:(?:\\[rn]|\s){1,24}+)?[A-Za-z0-9+/]{0,80}={1,2})?"
#: What is for a password: "for the test user", "of me@example.com", "on the staging host".
FOR = r"(?:[*_]{0,2}[ \t]{1,2}(?:for|of|on|in|at|to|f\u00fcr|von|zum)(?:[ \t]{1,2}[\w'@./-]{1,40}){1,5}?)?(?:[ \t]\([\w .-]{1,30}\))?"
#: What comes before a password where a person tells it, with the stars of Markdown.
TOLD = r"[*_`]{0,2}(?:[ \t]{0,2}(?:[:=]|->|\u2192)|(?:'s|[ \t]{1,2}(?:is|was|ist|war|(?:should|will|would|must)[ ]be))(?:[ \t](?:now|still|just|jetzt))?:?(?=[\s*`\"']))[*_]{0,2}[ \t]{0,3}[*\"'`]{0,3}"
#: A password and where it ends.
WORD = r"([^\s\"'`<>{}()\[\],;\\|]{6,64}+)(?=[\"'`\s,;\\)|]|\Z)"
#: The name that an account often has, alone before the colon.
ACCOUNT = r"(?<![A-Za-z0-9_$./:@-])(?:admin|administrator|root|user|test|guest|demo|deploy|postgres|ubuntu|dev|service)"
UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"


def _rule(
    kind: str,
    literals: str,
    pattern: str,
    accepts: Callable[[str], bool] = bool,
    *,
    flags: int = 0,
    back: int = 0,
    paired: bool = False,
) -> Rule:
    # ASCII: a letter of another script before a key does not hide it.
    return Rule(kind, tuple(literals.split("|")), re.compile(pattern, flags | re.ASCII), accepts, back, paired)


_I = re.IGNORECASE

RULES: tuple[Rule, ...] = (
    # --- whole passages. A tag alone between backticks is talk about the tag.
    _rule("private-tag", "<private|</private", r"(?!(?<=`)</?private>`)<(/?)private(?:\s[^<>]{0,200}+)?>", flags=_I, paired=True),
    _rule("pem", "-----BEGIN", r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END[ A-Z0-9]{0,60}-----|\Z)", flags=re.DOTALL),
    _rule("pem-base64", "LS0tLS1CRUdJTi", rf"LS0tLS1CRUdJTi{WRAPPED}", holds_private_key),
    _rule("putty-key", "Private-Lines:", r"Private-Lines: {0,3}[0-9]{1,4}(?:\\[rn]|\s){1,4}(" + WRAPPED + r")"),
    _rule("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,70}+"),
    # --- models
    _rule("anthropic-key", "sk-ant-", AT + r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    _rule("openai-key", "sk-", AT + r"sk-(?!ant-)[A-Za-z0-9_-]{20,}+", has_digit),
    _rule("huggingface-token", "hf_", AT + r"hf_[A-Za-z0-9]{30,}+"),
    _rule("replicate-token", "r8_", AT + r"r8_[A-Za-z0-9]{30,}+"),
    _rule("groq-key", "gsk_", AT + r"gsk_[A-Za-z0-9]{40,}+"),
    _rule("xai-key", "xai-", AT + r"xai-[A-Za-z0-9]{40,}+", has_digit),
    _rule("perplexity-key", "pplx-", AT + r"pplx-[A-Za-z0-9]{40,}+"),
    # --- code and packages
    _rule("github-token", "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_", AT + r"(?:gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{30,}+)"),
    _rule("gitlab-token", "glpat-|gldt-|glrt-|glcbt-|glptt-|glft-|glsoat-|glimt-|glagent-",
          AT + r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent)-[A-Za-z0-9_.-]{16,}+", has_digit),
    _rule("atlassian-token", "ATATT3|ATCTT3|ATBB", AT + r"(?:AT[AC]TT3[A-Za-z0-9_=-]{40,}+|ATBB[A-Za-z0-9]{28,}+)"),
    _rule("npm-token", "npm_", AT + r"npm_[A-Za-z0-9]{30,}+"),
    _rule("npm-auth", "_auth=|_authtoken=|:_password=", r"(?:_auth|_authtoken|:_password)= {0,2}[\"']?([A-Za-z0-9+/_=-]{12,}+)", looks_random, flags=_I),
    _rule("pypi-token", "pypi-", AT + r"pypi-[A-Za-z0-9_-]{30,}+", has_digit),
    _rule("rubygems-key", "rubygems_", AT + r"rubygems_[a-f0-9]{40,}+"),
    _rule("docker-token", "dckr_", AT + r"dckr_[po]at_[A-Za-z0-9_-]{20,}+"),
    _rule("docker-auth", "\"auth", r"\"auth\\{0,3}\"\s{0,3}:\s{0,3}\\{0,3}\"([A-Za-z0-9+/]{12,}+=*+)"),
    _rule("circleci-token", "CCIPAT_|CCIPRJ_", AT + r"CCIP(?:AT|RJ)_[A-Za-z0-9_]{20,}+"),
    _rule("buildkite-token", "bkua_", AT + r"bkua_[a-f0-9]{32,}+"),
    _rule("sonar-token", "sqp_|squ_|sqa_", AT + r"sq[pua]_[a-f0-9]{40}" + END),
    _rule("postman-key", "PMAK-", AT + r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    # --- clouds
    _rule("aws-key-id", "AKIA|ASIA", AT + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _rule("aws-secret", "secret_access_key|secretaccesskey|secret-access-key|secret access key|aws_secret_key",
          r"(?:secret.?access|aws_secret).?key[\"'`\\\s:=]{1,20}+([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])", flags=_I),
    _rule("aws-session-token", "session_token|sessiontoken", r"session_?token[\"'`\\\s:=]{1,20}+([A-Za-z0-9/+=]{100,}+)", has_digit, flags=_I),
    _rule("google-key", "AIza", AT + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _rule("google-token", "ya29.", AT + r"ya29\.[A-Za-z0-9_-]{20,}+"),
    _rule("google-refresh-token", "1//0", r"(?<![A-Za-z0-9/])1//0[A-Za-z0-9_-]{30,}+", has_digit),
    _rule("google-client-secret", "GOCSPX-", AT + r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
    _rule("google-key-id", "private_key_id", r"private_key_id\\{0,3}\"\s{0,3}:\s{0,3}\\{0,3}\"([a-f0-9]{40})"),
    _rule("azure-storage-key", "accountkey=|sharedaccesskey=", r"(?:account|sharedaccess)key=([A-Za-z0-9+/]{40,}+={0,2})", flags=_I),
    _rule("azure-sas", "sig=", r"(?<=[?&;])sig=([A-Za-z0-9%+/]{40,}+=?)", has_digit),
    _rule("azure-client-secret", "Q~", r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])", back=4),
    _rule("digitalocean-token", "dop_v1_|doo_v1_|dor_v1_", AT + r"do[opr]_v1_[a-f0-9]{40,}+"),
    _rule("heroku-key", "hrku-|heroku", AT + rf"(?:HRKU-[A-Za-z0-9_-]{{30,}}+|heroku{NEAR}({UUID}))", flags=_I),
    _rule("cloudflare-token", "cloudflare|cf_api|v1.0-", AT + rf"(?:(?:cloudflare|cf_api){NEAR}([A-Za-z0-9_-]{{37,40}}){END}|v1\.0-[a-f0-9]{{24}}-[a-f0-9]{{100,}}+)", flags=_I),
    _rule("databricks-token", "dapi", AT + r"dapi[a-f0-9]{32}(?:-[0-9])?" + END),
    _rule("supabase-key", "sbp_|sb_secret_", AT + r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,}+)"),
    _rule("planetscale-token", "pscale_", AT + r"pscale_(?:pw|tkn|oauth)_[A-Za-z0-9_.-]{30,}+"),
    _rule("netlify-token", "nfp_", AT + r"nfp_[A-Za-z0-9]{30,}+"),
    _rule("vercel-token", "vercel|vcp_", AT + rf"(?:vercel{NEAR}([A-Za-z0-9]{{24}}){END}|vcp_[A-Za-z0-9]{{24,}}+)", has_digit, flags=_I),
    _rule("fly-token", "fm1_|fm2_|fo1_", AT + r"(?:fm[12]_[A-Za-z0-9+/=_-]{40,}+|fo1_[A-Za-z0-9_-]{30,}+)"),
    _rule("tailscale-key", "tskey-", AT + r"tskey-[a-z]{2,12}-[A-Za-z0-9]{8,40}(?:-[A-Za-z0-9]{10,60}+)?"),
    _rule("kubeconfig-key", "client-key-data", rf"client-key-data{IS}(?:[|>]-?\s{{1,24}}+)?({WRAPPED})"),
    # --- keepers of secrets
    _rule("vault-token", "hvs.|hvb.|hvr.", AT + r"hv[sbr]\.[A-Za-z0-9_-]{24,}+"),
    _rule("doppler-token", "dp.pt.|dp.st.|dp.ct.|dp.sa.|dp.scim.", AT + r"dp\.(?:pt|ct|sa|scim|st\.[a-z0-9_-]{2,35})\.[A-Za-z0-9]{40,}+"),
    _rule("terraform-token", ".atlasv1.", AT + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}+", back=14),
    _rule("pulumi-token", "pul-", AT + r"pul-[a-f0-9]{40}" + END),
    _rule("onepassword-token", "ops_eyJ", AT + r"ops_eyJ[A-Za-z0-9_=-]{40,}+"),
    _rule("okta-token", "SSWS", AT + r"SSWS\s{1,3}([A-Za-z0-9_-]{40,44})" + END),
    # --- watching
    _rule("datadog-key", "dd_api|dd_app|dd-api|dd-app|datadog_a", AT + rf"(?:datadog_|dd[_-])(?:ap[ip]){NEAR}([a-f0-9]{{40}}|[a-f0-9]{{32}}){END}", flags=_I),
    _rule("newrelic-key", "NRAK-|NRJS-|NRII-|NRRA-|NRAL", AT + r"NR(?:AK|JS|II|RA)-[A-Za-z0-9_-]{18,}+|(?<=[0-9a-f]{36})NRAL"),
    _rule("grafana-token", "glsa_|glc_", AT + r"(?:glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_[A-Za-z0-9+/]{32,}+={0,2})"),
    _rule("sentry-token", "sntrys_|sntryu_", AT + r"sntry[su]_[A-Za-z0-9+/=_-]{40,}+"),
    _rule("sentry-dsn", "://", r"://([0-9a-f]{32}(?::[0-9a-f]{32})?)@[\w.-]{0,60}sentry"),
    # --- messages and mail
    _rule("slack-token", "xoxa|xoxb|xoxc|xoxd|xoxe|xoxp|xoxr|xoxs|xapp-", AT + r"(?:xox[abcdeprs]|xapp)[-.][A-Za-z0-9.-]{10,}+", has_digit),
    _rule("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,}+)"),
    _rule("discord-webhook", "/api/webhooks/", r"/api/webhooks/[0-9]{15,22}/([A-Za-z0-9_-]{40,}+)"),
    _rule("discord-token", "Bot |discord_", AT + rf"(?:(?i:discord_){NEAR}|Bot )([A-Za-z0-9_-]{{23,28}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,40}}){END}"),
    _rule("telegram-token", ":AA", r"(?<=[0-9]{8}):(AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
    _rule("teams-webhook", ".webhook.office.com/", rf"\.webhook\.office\.com/webhookb2/({UUID}[^\s\"'`<>]{{20,200}}+)"),
    _rule("twilio-key", "SK", AT + r"SK[0-9a-f]{32}" + END),
    _rule("sendgrid-key", "SG.", r"(?<![A-Za-z0-9_.-])SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    _rule("mailgun-key", "key-", AT + r"key-[0-9a-f]{32}" + END),
    _rule("mailchimp-key", "-us", AT + r"[0-9a-f]{32}-us[0-9]{1,2}" + END, back=32),
    _rule("brevo-key", "xkeysib-", AT + r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    # --- work and money
    _rule("linear-key", "lin_api_|lin_oauth_", AT + r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}+"),
    _rule("notion-token", "ntn_|secret_", AT + r"(?:ntn_[A-Za-z0-9]{40,}+|secret_[A-Za-z0-9]{43}" + END + ")", has_digit),
    _rule("figma-token", "figd_", AT + r"figd_[A-Za-z0-9_-]{30,}+"),
    _rule("hubspot-token", "pat-na|pat-eu", AT + rf"pat-(?:na|eu)[0-9]-{UUID}"),
    _rule("shopify-token", "shpat_|shpca_|shppa_|shpss_", AT + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32,}+"),
    _rule("square-token", "sq0|EAAA", AT + r"(?:sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}+|EAAA[A-Za-z0-9_-]{56,}+)"),
    _rule("braintree-token", "access_token$", AT + r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    _rule("stripe-key", "sk_live_|sk_test_|rk_live_|rk_test_|whsec_", AT + r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}+"),
    _rule("card-number", "card|visa", r"(?:card|visa)[\w \"'#:=.-]{0,24}?(?<![0-9.-])([0-9]{4}(?:[ -]?[0-9]{2,7}){2,4})(?![0-9.-])", is_card_number, flags=_I),
    # --- any issuer
    _rule("jwt", "eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+"),
    _rule("bearer", "bearer", AT + r"bearer\s{1,20}+([A-Za-z0-9._~+/-]{20,}+=*+)", has_digit, flags=_I),
    _rule("basic-auth", "authorization", rf"authorization{IS}basic\s{{1,9}}([A-Za-z0-9+/]{{12,}}+=*+)", flags=_I),
    _rule("cookie", "cookie:|cookie\":|cookie\\\":|cookie':|--cookie|-b ",
          rf"(?:(?:set-)?cookie{IS}|--cookie[ =]{Q}?|(?<=\s)-b {Q})([\w.-]{{1,60}}=[^\r\n\"'`\\]{{8,4000}}+)", is_session_cookie, flags=_I),
    _rule("otp-seed", "otpauth://", r"otpauth://[^\s\"'`<>]{0,200}?secret=([A-Za-z2-7]{10,}+)", flags=_I),
    _rule("seed-phrase", "mnemonic|seed phrase|recovery phrase", rf"(?:mnemonic|(?:seed|recovery) phrase){IS}((?:[a-z]{{3,8}} ){{11,23}}[a-z]{{3,8}})(?![a-z])", flags=_I),
    _rule("url-password", "://", r"(?<=[a-zA-Z0-9])://[^\s/:@\"'`<>\[]{0,120}+:([^\s/?#@\"'`<>]{1,200}+)@", is_filled_in),
    _rule("netrc-password", "login ", r"login\s{1,4}\S{1,100}\s{1,8}password\s{1,4}([^\s\"'`<>$]{4,200}+)", is_filled_in),
    _rule("pgpass-password", ":5432:|:5433:|:6432:|:3306:", r":[0-9]{4}:[\w*.-]{1,60}:[\w*.-]{1,60}:([^\s:\"'`<>]{4,200}+)(?=\s|\\n|[\"'`]|\Z)", is_filled_in),
    _rule("connection-password", "pwd=|password=", r"(?:(?<=;)|(?<=; ))(?:pwd|password)=([^\s;\"'`<>\\]{4,200}+)", is_filled_in, flags=_I),
    _rule("assigned-secret", "secret|passwor|passwd|token|api_key|api-key|apikey|private_key|private-key|privatekey",
          r"(?:secret|password|passwd|token|api[_-]?key|private[_-]?key)[\w.-]{0,20}" + IS +
          r"([A-Za-z0-9_\-+/=.!@#%^&*~]{16,512}+)(?![A-Za-z0-9_\-+/=.!@#%^&*~(\[])", looks_random, flags=_I),
    # Shorter than a token, so only where it is written as a value: quoted, in an environment file, behind an option.
    _rule("assigned-password", "passwor|passwd|passphrase",
          rf"(?:(?:password|passwd|passphrase){Q}?\s{{0,3}}(?:=>|:=|=|:)\s{{0,3}}{Q}|(?-i:PASSWORD|PASSWD|PASSPHRASE)=|(?<=--)password[= ])"
          r"([^\s\"'`<>{}()\[\],;\\]{8,200}+)(?=[\"'`\s,;\\]|\Z)", is_chosen, flags=_I),
    # As people say it: "the password is hunter2xyz", "passwd: Tr0ub4dor&3".
    _rule("spoken-password", "passwor|passwd|passphrase",
          r"(?:password|passwd|passphrase)(?:\s{0,3}(?:=|:)\s{0,3}|\s{1,3}(?:is|was)\s{1,3}(?:now\s{1,3})?(?:(?:the\s{1,3})?(?:password|passwd|passphrase)\s{0,3}[=:]\s{0,3})?)[\"'`]?"
          r"([^\s\"'`<>{}()\[\],;\\]{6,200}+)(?=[\"'`\s,;\\]|\Z)", is_labelled_secret, flags=_I),
    # With what it is for: "Password for the test user: ...", "the wifi key is ...".
    _rule("spoken-password", "passwor|passwd|passphrase|passcode|kennwort|pwd|pw:|pw |wifi key|wi-fi key|wlan key|wpa key|wpa2 key",
          rf"(?:passwor[dt]|passwd|passphrase|passcode|kennwort|(?<![A-Za-z0-9_$./-])pwd?|w(?:i-?fi|lan|pa2?) key){FOR}{TOLD}{WORD}", is_spoken_password, flags=_I),
    _rule("spoken-password", "passwor|passwd|passphrase|passcode|kennwort|pwd",
          rf"(?:passwor[dt]|passwd|passphrase|passcode|kennwort|(?<![A-Za-z0-9_$./-])pwd)[ \t]{{1,2}}(?:to[ \t]{{1,2}})?[\"'`]?{WORD}", is_unlabelled_password, flags=_I),
    # "the password is correct-horse-battery", "passphrase: correct horse battery staple": up to the end of what is said.
    _rule("spoken-password", "passwor|passphrase",
          rf"(?:passwor[dt]|passphrase){FOR}[ \t]{{1,2}}(?:is|was|ist)[ \t]{{1,2}}(?:now[ \t])?[\"'`]?((?:[a-z]{{4,12}}-){{2,7}}[a-z]{{4,12}})"
          r"(?=[\"'`]?(?:[.,;:!?)\r\n]|\s{0,3}\Z|[ \t](?:and|but|for|on|in|if|until|so|not|please)[ \t]))", is_phrase, flags=_I),
    _rule("spoken-password", "passphrase",
          rf"passphrase{FOR}{TOLD}((?:(?:[a-z]{{3,10}} ){{3,9}}|(?:[a-z]{{3,10}}-){{2,9}})[a-z]{{3,10}})(?=[\"'`]?(?:[.,;!?)\r\n]|[ \t]{{0,3}}\Z))", is_phrase, flags=_I),
    # `pass` is said of tests and of compilers, too: only where a line or a part of a sentence begins with it; no PASS, no name of a test.
    _rule("spoken-password", "pass:",
          rf"(?:(?<![^\r\n\t(\"'`*])|(?<=[.!?,;/|>*-] )|(?<=[ \t][ \t])|(?<=\\n))(?-i:[Pp]ass):[*_]{{0,2}}[ \t]{{0,3}}[*\"'`]{{0,3}}"
          rf"(?!(?-i:[Tt]ests?|[Ss]pec|[Cc]ase)(?-i:[-_A-Z])){WORD}", is_account_password, flags=_I),
    # Behind the name of an account, where it is said to be what one gets in with: "admin:Sup3rSecret is the login".
    _rule("spoken-password", "admin:|administrator:|root:|user:|test:|guest:|demo:|deploy:|postgres:|ubuntu:|dev:|service:",
          rf"{ACCOUNT}:{WORD}(?=[\"'`]{{0,3}},?[ \t](?:is|are|as|=)[ \t](?:what[ \t](?:you|we|I|they)[ \t](?:log|sign)[ \t-]?in\b|"
          r"(?:the|your|my|our)[ \t](?:[\w'-]{1,20}[ \t])?(?:log-?in|sign-?in|credentials?|creds|account)\b))", is_account_password, flags=_I),
    _rule("spoken-password", "admin:|administrator:|root:|user:|test:|guest:|demo:|deploy:|postgres:|ubuntu:|dev:|service:",
          rf"(?:(?<=use )|(?<=with )|(?<=use [\"'`])|(?<=with [\"'`])){ACCOUNT}:{WORD}(?=[\"'`]{{0,3}},?[ \t]to[ \t](?:log|sign)[ \t-]?in\b)", is_account_password, flags=_I),
    _rule("spoken-password", "log in as|login as|sign in as|signing in as|logging in as",
          rf"(?:log(?:ging)?|sign(?:ing)?) ?in as [\"'`]?[\w.@+-]{{1,60}}[\"'`]?,?[ \t](?:with|using|/)[ \t][\"'`]?{WORD}", is_signed, flags=_I),
    # Behind the name it goes with: "login is admin / ...".
    _rule("spoken-password", "login|log in|credentials|creds",
          rf"(?:log ?in|credentials|creds){FOR}[*_]{{0,2}}[ \t]{{0,2}}(?:[:=]|is\b|are\b|was\b|were\b|with\b|as\b)[*_]{{0,2}}[ \t]{{0,3}}[\"'`]?"
          rf"[\w.@+-]{{1,60}}[\"'`]?(?:[ \t]/[ \t]|/(?=[^\s/]{{0,60}}[!@#$%^&*?])|:[ \t]?)[\"'`]?{WORD}", is_unlabelled_password, flags=_I),
    # In capitals or somebody's: a pin of a board has a number, too.
    _rule("spoken-password", "pin is|pin was|pin:|pin =|pin=|pin for|pin code|pin ist|passcode",
          rf"(?:(?<![A-Za-z0-9_-])(?-i:PIN)|(?:(?<=my )|(?<=card )|(?<=phone )|(?<=sim )|(?<=meine ))pin|passcode)(?:[ -]code)?{FOR}{TOLD}([0-9]{{4,8}})(?![\w%]|[.:-][0-9])", flags=_I),
    _rule("environment-secret", "TOKEN=|SECRET=|_KEY=|APIKEY=|PASS=|PWD=|_PW=|PASSCODE=",
          r"(?:(?<![a-z])TOKEN|(?<![a-z])SECRET|(?<=API)_KEY|(?<=ACCESS)_KEY|(?<=SECRET)_KEY|(?<=ENCRYPTION)_KEY|(?<=SIGNING)_KEY|(?<=MASTER)_KEY|APIKEY|"
          r"(?<![A-Za-z])PASS|(?<=_)PWD|_PW|PASSCODE)=[\"'`]?([^\s\"'`$<>{}()\[\],;\\]{8,200}+)(?=[\"'`\s,;\\]|\Z)", is_mixed),
    _rule("user-password", "-u |-u=|--user ",
          r"(?<!\S)(?:-u|--user)[ =][\"']?[\w.@-]{1,60}:([^\s\"'`@/:]{6,200}+)(?=[\"'`\s]|\Z)", is_mixed),
)  # fmt: skip

#: What is replaced where no rule of the table says so: by the name of its field, or because the user chose the word.
OTHER_KINDS: tuple[str, ...] = ("secret-field", "chosen-word")

#: A field of this name (lower case, words joined by `_`) holds a secret whatever its value looks like.
SECRET_KEY = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|secret|secret_?key|api_?key|access_?token|refresh_?token|auth_?token|"
    r"id_?token|session_?token|bot_?token|private_?key|client_?key_?data|credentials?|authorization|set_?cookie|cookie|"
    r"connection_?string|account_?key|seed_?phrase|mnemonic)$"
)
#: A field of this name holds one when its value also looks like one.
MAYBE_SECRET_KEY = re.compile(r"(?:^|_)(?:token|pwd|pass|passcode|sas)$")
#: What a value of a secret field may be without being one: nothing, a placeholder, the name of a type.
HARMLESS_VALUE = re.compile(
    r"|true|false|null|none|\*+|x{3,}|<[^>]*>|\$\{?\w+\}?|\{\{?[^{}]*\}?\}|\[redacted:[a-z-]+\]|"
    r"str|string|text|number|int|integer|bool|boolean|object|array|any|unknown|optional|required|yes|no",
    re.IGNORECASE,
)


#: No secret with what makes it known is shorter.
SHORTEST = 8
#: What was taken out may let a rule see what stood beside it; a text that goes on longer is nobody's.
ROUNDS = 4
#: Letters of which every literal has one, the best to look for first: few and seldom in sessions (measured).
ANCHORS = '_AxkKS-<:gGvVpPQqyzZbB1"RcC'
_MARK = "[redacted:"
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-.\s]")

#: (start, end, place of its rule in the table, kind)
Span = tuple[int, int, int, str]
#: A literal (lower case where its rule ignores case), how far into it its anchor stands, whether case counts, its rules.
Hint = tuple[str, int, bool, tuple[int, ...]]


def _prefilter(rules: Sequence[Rule]) -> tuple[re.Pattern[str], dict[tuple[str, bool], list[Hint]]]:
    """A pattern that stops at one letter of every literal, its anchor, and what may stand there.

    A search passes by what is no such letter as fast as it can, and most others fail at the next letter: an
    alternation of the literals themselves stops at nearly every letter, and `in` reads the text for each of them.
    """
    by_literal: dict[tuple[str, bool], list[int]] = {}
    for number, rule in enumerate(rules):
        for literal in rule.literals:
            by_literal.setdefault((literal, rule.ignores_case), []).append(number)
    # By the anchor and the letter before it (True), or behind it where it is the first (False).
    hints: dict[tuple[str, bool], list[Hint]] = {}
    looks: dict[str, list[str]] = {}
    for (literal, ignores_case), numbers in by_literal.items():
        at = _anchor(literal, ignores_case)
        spelt = [_spelt(letter, ignores_case) for letter in literal]
        for letter in _cases(literal[at], ignores_case):
            for beside in _cases(literal[at - 1 if at else 1], ignores_case):
                pair = (beside + letter, True) if at else (letter + beside, False)
                hints.setdefault(pair, []).append((literal, at, ignores_case, tuple(numbers)))
            looks.setdefault(letter, []).append("".join(spelt[at + 1 :]) + (f"(?<={''.join(spelt)})" if at else ""))
    ordered = sorted(looks, key=ANCHORS.find, reverse=True)  # the commonest first
    return re.compile("|".join(f"{re.escape(one)}(?:{'|'.join(looks[one])})" for one in ordered)), hints


def _anchor(literal: str, ignores_case: bool) -> int:
    """Which letter of a literal is looked for; the last only where no other will do, or `_`, that stands last in many."""
    body = literal if literal.endswith("_") else literal[:-1]
    spelt = body.lower() + literal[-1] if ignores_case else body + literal[-1]
    return min(
        (ANCHORS.index(one), place)
        for place, one in enumerate(spelt)
        if one in ANCHORS and (place < len(body) or not set(body) & set(ANCHORS))
    )[1]


def _cases(letter: str, ignores_case: bool) -> tuple[str, ...]:
    return (letter, letter.upper()) if ignores_case and letter.isalpha() else (letter,)


def _spelt(letter: str, ignores_case: bool) -> str:
    return f"[{letter}{letter.upper()}]" if ignores_case and letter.isalpha() else re.escape(letter)


_HINTS, _AT_PAIR = _prefilter(RULES)
#: Marks, and in group 1 the user's own words; None for none.
_chosen: re.Pattern[str] | None = None


def choose_words(words: Sequence[str]) -> None:
    """Sets the words that this process takes out besides (`privacy.redact`); the daemon does once, at its start.

    Held here and not handed through: no caller of redact() can forget them.
    """
    global _chosen
    longest_first = sorted(words, key=len, reverse=True)
    chosen = "|".join(re.escape(word) for word in longest_first)
    _chosen = re.compile(rf"\[redacted:[a-z0-9-]{{1,40}}\]|({chosen})") if words else None


def redact(text: str, counts: Counter[str], *, key: str = "") -> str:
    """`text` without secrets; `counts` gains one for each by kind. `key` is the field it stood in."""
    if key and _is_secret_value(text, key):
        counts["secret-field"] += 1
        return f"{_MARK}secret-field]"
    if len(text) < SHORTEST and _chosen is None:
        return text
    for _ in range(ROUNDS):
        spans = _spans(text)
        if not spans:
            break
        text = _replaced(text, spans, counts)
    return text


def is_secret_key(key: str) -> bool:
    """Whether a field's name says that its value is a secret: `apiKey`, `db_password`, `Authorization`."""
    return SECRET_KEY.search(_words(key)) is not None


def _words(key: str) -> str:
    return _WORD_START.sub("_", key[-80:]).lower()


def _is_secret_value(text: str, key: str) -> bool:
    name = _words(key)
    if SECRET_KEY.search(name):
        return HARMLESS_VALUE.fullmatch(text.strip()) is None
    return MAYBE_SECRET_KEY.search(name) is not None and len(text) >= 8 and " " not in text and is_mixed(text)


def _spans(text: str) -> list[Span]:
    """What is to go, from all rules, in no order; places may overlap."""
    spans: list[Span] = []
    if _chosen is not None:
        spans += [(*word.span(), -1, "chosen-word") for word in _chosen.finditer(text) if word.group(1)]
    done: dict[int, int] = {}  # up to where a rule has read: it never reads a place twice
    hint = _HINTS.search(text)
    while hint is not None:
        place = hint.start()
        for literal, offset, ignores_case, numbers in _standing_at(text, place):
            start = place - offset
            if start < 0 or not (
                text[start : start + len(literal)].lower() == literal
                if ignores_case
                else text.startswith(literal, start)
            ):
                continue
            for number in numbers:
                if start >= done.get(number, 0):
                    done[number] = _try(RULES[number], number, text, start, spans)
        hint = _HINTS.search(text, place + 1)  # not from its end: another one may begin inside
    return spans


def _standing_at(text: str, place: int) -> Iterator[Hint]:
    """The hints whose anchor stands at `place`, by it and the letter beside it."""
    yield from _AT_PAIR.get((text[place : place + 2], False), ())
    if place:
        yield from _AT_PAIR.get((text[place - 1 : place + 1], True), ())


def _try(rule: Rule, number: int, text: str, start: int, spans: list[Span]) -> int:
    """Tries a rule at its literal's `start`; adds to `spans` and says up to where the rule has read."""
    if rule.paired:
        spans += [(begin, end, number, rule.kind) for begin, end in _between_tags(rule, text)]
        return len(text)
    match = rule.pattern.match(text, start - rule.back) if start >= rule.back else None
    if match is None:
        return 0
    group = 1 if match.lastindex else 0
    secret = match.group(group)
    if not secret.startswith(_MARK) and rule.accepts(secret):
        spans.append((*match.span(group), number, rule.kind))
    return match.end()


def _between_tags(rule: Rule, text: str) -> list[tuple[int, int]]:
    """What stands between tags, those inside included; what is never closed goes to the end."""
    found: list[tuple[int, int]] = []
    start = depth = 0
    for tag in rule.pattern.finditer(text):
        if not tag.group(1):
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                found.append((start, tag.end()))
    return [*found, (start, len(text))] if depth else found


def _replaced(text: str, spans: list[Span], counts: Counter[str]) -> str:
    """`text` with a mark in the place of each span; those that overlap are one, of the earliest rule's kind."""
    kept: list[str] = []
    at = 0
    spans.sort()
    start, end, best, kind = spans[0]
    for span in (*spans[1:], None):
        if span is not None and span[0] < end:
            end = max(end, span[1])
            if span[2] < best:
                best, kind = span[2:]
            continue
        kept += [text[at:start], f"{_MARK}{kind}]"]
        counts[kind] += 1
        at = end
        if span is not None:
            start, end, best, kind = span
    return "".join(kept) + text[at:]


def redact_tree(value: Any, counts: Counter[str], *, key: str = "") -> Any:
    """A decoded JSON value with every string in it redacted, names of fields included; numbers in secret fields go."""
    if isinstance(value, str):
        return redact(value, counts, key=key)
    if isinstance(value, Mapping):
        named = value.get("name") or value.get("key")  # {"name": "DB_PASSWORD", "value": ...}
        named = named if isinstance(named, str) else ""
        return {
            redact(str(k), counts): redact_tree(v, counts, key=named if k == "value" and named else str(k))
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [redact_tree(item, counts, key=key) for item in value]
    if type(value) in (int, float) and key and is_secret_key(key):
        return redact(str(value), counts, key=key)
    return value


def storable_path(path: str) -> str:
    """A file's path as a name that can be stored: itself, or redacted with a hash of the whole."""
    shown = redact(path, Counter())
    return path if shown == path else f"{shown}#{hashlib.sha256(path.encode('utf-8', 'replace')).hexdigest()[:16]}"
