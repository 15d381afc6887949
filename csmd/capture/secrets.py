"""What a secret looks like: the policy that capture/redact.py walks.

A rule is tried only where one of its literals stands, and its pattern begins at that literal, or
`back` characters before it. Group 1, where there is one, is the secret; else the whole match. Where a
pattern alone cannot tell, `accepts` says what the secret must also be. Earlier rules name what later
ones find, too. Literals of a rule that ignores case are lower case.

Text is hostile: every pattern's work at one literal is bounded, by counted repeats, or by possessive
ones that end where they fail. Shapes are those that the issuers document.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass

from csmd.capture.passwords import (
    PATH,
    has_digit,
    is_chosen,
    is_filled_in,
    is_mixed,
    is_phrase,
    is_said,
    is_signed,
    is_told,
    is_told_barely,
    is_told_of_account,
)


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
          r"([^\s\"'`<>{}()\[\],;\\]{6,200}+)(?=[\"'`\s,;\\]|\Z)", is_said, flags=_I),
    # With what it is for: "Password for the test user: ...", "the wifi key is ...".
    _rule("spoken-password", "passwor|passwd|passphrase|passcode|kennwort|pwd|pw:|pw |wifi key|wi-fi key|wlan key|wpa key|wpa2 key",
          rf"(?:passwor[dt]|passwd|passphrase|passcode|kennwort|(?<![A-Za-z0-9_$./-])pwd?|w(?:i-?fi|lan|pa2?) key){FOR}{TOLD}{WORD}", is_told, flags=_I),
    _rule("spoken-password", "passwor|passwd|passphrase|passcode|kennwort|pwd",
          rf"(?:passwor[dt]|passwd|passphrase|passcode|kennwort|(?<![A-Za-z0-9_$./-])pwd)[ \t]{{1,2}}(?:to[ \t]{{1,2}})?[\"'`]?{WORD}", is_told_barely, flags=_I),
    # "the password is correct-horse-battery", "passphrase: correct horse battery staple": up to the end of what is said.
    _rule("spoken-password", "passwor|passphrase",
          rf"(?:passwor[dt]|passphrase){FOR}[ \t]{{1,2}}(?:is|was|ist)[ \t]{{1,2}}(?:now[ \t])?[\"'`]?((?:[a-z]{{4,12}}-){{2,7}}[a-z]{{4,12}})"
          r"(?=[\"'`]?(?:[.,;:!?)\r\n]|\s{0,3}\Z|[ \t](?:and|but|for|on|in|if|until|so|not|please)[ \t]))", is_phrase, flags=_I),
    _rule("spoken-password", "passphrase",
          rf"passphrase{FOR}{TOLD}((?:(?:[a-z]{{3,10}} ){{3,9}}|(?:[a-z]{{3,10}}-){{2,9}})[a-z]{{3,10}})(?=[\"'`]?(?:[.,;!?)\r\n]|[ \t]{{0,3}}\Z))", is_phrase, flags=_I),
    # `pass` is said of tests and of compilers, too: only where a line or a part of a sentence begins with it; no PASS, no name of a test.
    _rule("spoken-password", "pass:",
          rf"(?:(?<![^\r\n\t(\"'`*])|(?<=[.!?,;/|>*-] )|(?<=[ \t][ \t])|(?<=\\n))(?-i:[Pp]ass):[*_]{{0,2}}[ \t]{{0,3}}[*\"'`]{{0,3}}"
          rf"(?!(?-i:[Tt]ests?|[Ss]pec|[Cc]ase)(?-i:[-_A-Z])){WORD}", is_told_of_account, flags=_I),
    # Behind the name of an account, where it is said to be what one gets in with: "admin:Sup3rSecret is the login".
    _rule("spoken-password", "admin:|administrator:|root:|user:|test:|guest:|demo:|deploy:|postgres:|ubuntu:|dev:|service:",
          rf"{ACCOUNT}:{WORD}(?=[\"'`]{{0,3}},?[ \t](?:is|are|as|=)[ \t](?:what[ \t](?:you|we|I|they)[ \t](?:log|sign)[ \t-]?in\b|"
          r"(?:the|your|my|our)[ \t](?:[\w'-]{1,20}[ \t])?(?:log-?in|sign-?in|credentials?|creds|account)\b))", is_told_of_account, flags=_I),
    _rule("spoken-password", "admin:|administrator:|root:|user:|test:|guest:|demo:|deploy:|postgres:|ubuntu:|dev:|service:",
          rf"(?:(?<=use )|(?<=with )|(?<=use [\"'`])|(?<=with [\"'`])){ACCOUNT}:{WORD}(?=[\"'`]{{0,3}},?[ \t]to[ \t](?:log|sign)[ \t-]?in\b)", is_told_of_account, flags=_I),
    _rule("spoken-password", "log in as|login as|sign in as|signing in as|logging in as",
          rf"(?:log(?:ging)?|sign(?:ing)?) ?in as [\"'`]?[\w.@+-]{{1,60}}[\"'`]?,?[ \t](?:with|using|/)[ \t][\"'`]?{WORD}", is_signed, flags=_I),
    # Behind the name it goes with: "login is admin / ...".
    _rule("spoken-password", "login|log in|credentials|creds",
          rf"(?:log ?in|credentials|creds){FOR}[*_]{{0,2}}[ \t]{{0,2}}(?:[:=]|is\b|are\b|was\b|were\b|with\b|as\b)[*_]{{0,2}}[ \t]{{0,3}}[\"'`]?"
          rf"[\w.@+-]{{1,60}}[\"'`]?(?:[ \t]/[ \t]|/(?=[^\s/]{{0,60}}[!@#$%^&*?])|:[ \t]?)[\"'`]?{WORD}", is_told_barely, flags=_I),
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
