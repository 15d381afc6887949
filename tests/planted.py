"""Secrets to plant in tests: made from seeds, so that nothing that looks like a real one stands in the repository.

Not a test: found through tests/conftest.py. What surrounds them is in tests/data/secrets: `seen.txt` was there
while the rules were made, `held_out.txt` was written afterwards and is what recall is honestly measured on.
"""

from __future__ import annotations

import base64
import hashlib
import json
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "data" / "secrets"
LOWER = "abcdefghijklmnopqrstuvwxyz"
UPPER = LOWER.upper()
DIGITS = "0123456789"
HEX = DIGITS + "abcdef"
ALNUM = UPPER + LOWER + DIGITS
BASE32 = UPPER + "234567"
BASE64 = ALNUM + "+/"
URLSAFE = ALNUM + "-_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A text with a secret in it; `secret` must be gone, and `kind` be named."""

    kind: str
    text: str
    secret: str


def drawn(alphabet: str, length: int, seed: object = "") -> str:
    """Characters that look random and are the same in every run."""
    digest = hashlib.shake_256(f"{alphabet}{length}{seed}".encode()).digest(length)
    return "".join(alphabet[byte % len(alphabet)] for byte in digest)


def uuid_like(seed: object) -> str:
    """The shape of a uuid."""
    return "-".join(drawn(HEX, length, f"{seed}{place}") for place, length in enumerate((8, 4, 4, 4, 12)))


def pem(seed: object, name: str = "RSA PRIVATE KEY") -> str:
    """A block like a private key's."""
    body = "\n".join(drawn(BASE64, 64, f"{seed}{line}") for line in range(4))
    return f"-----BEGIN {name}-----\n{body}\n{drawn(BASE64, 22, seed)}==\n-----END {name}-----"


def card(seed: object) -> str:
    """A number with a right check digit."""
    body = "4" + drawn(DIGITS, 14, seed)
    for last in DIGITS:
        number = [int(char) for char in body + last]
        doubled = sum(sum(divmod(2 * digit, 10)) for digit in number[-2::-2])
        if (doubled + sum(number[-1::-2])) % 10 == 0:
            return body + last
    raise AssertionError("one of ten is right")


def bare(seed: object = "") -> dict[str, str]:
    """A secret of every kind that is known by its own shape, wherever it stands."""

    def a(length: int, alphabet: str = ALNUM) -> str:
        return "7" + drawn(alphabet, length - 1, seed)

    return {
        "age-key": "AGE-SECRET-KEY-" + "1" + drawn(BASE32, 58, seed),
        "anthropic-key": "sk-ant" + "-api03-" + a(80, URLSAFE),
        "openai-key": "sk-" + "proj-" + a(60, URLSAFE),
        "huggingface-token": "hf" + "_" + a(34),
        "replicate-token": "r8" + "_" + a(37),
        "groq-key": "gsk" + "_" + a(52),
        "xai-key": "xai" + "-" + a(80),
        "perplexity-key": "pplx" + "-" + a(48),
        "github-token": "ghp" + "_" + a(36),
        "gitlab-token": "glpat" + "-" + a(20),
        "atlassian-token": "ATATT3" + a(180),
        "npm-token": "npm" + "_" + a(36),
        "pypi-token": "pypi" + "-AgEIcHlwaS5vcmc" + a(70),
        "rubygems-key": "rubygems" + "_" + a(48, HEX),
        "docker-token": "dckr" + "_pat_" + a(27),
        "circleci-token": "CCIPAT" + "_" + a(22) + "_" + drawn(HEX, 40, seed),
        "buildkite-token": "bkua" + "_" + a(40, HEX),
        "sonar-token": "squ" + "_" + a(40, HEX),
        "postman-key": "PMAK" + "-" + a(24, HEX) + "-" + drawn(HEX, 34, seed),
        "aws-key-id": "AKIA" + a(16, BASE32),
        "google-key": "AIza" + a(35, URLSAFE),
        "google-token": "ya29" + "." + a(60, URLSAFE),
        "google-refresh-token": "1/" + "/0" + a(50, URLSAFE),
        "google-client-secret": "GOCSPX" + "-" + a(28, URLSAFE),
        "azure-client-secret": drawn(ALNUM, 3, seed) + "8Q~" + a(34),
        "digitalocean-token": "dop" + "_v1_" + a(64, HEX),
        "heroku-key": "HRKU" + "-" + a(60),
        "cloudflare-token": "v1.0" + "-" + a(24, HEX) + "-" + drawn(HEX, 146, seed),
        "databricks-token": "dapi" + a(32, HEX),
        "supabase-key": "sbp" + "_" + a(40, HEX),
        "planetscale-token": "pscale" + "_tkn_" + a(43),
        "netlify-token": "nfp" + "_" + a(36),
        "vercel-token": "vcp" + "_" + a(40),
        "fly-token": "fm2" + "_" + a(90, BASE64),
        "tailscale-key": "tskey" + "-auth-" + a(16) + "-" + drawn(ALNUM, 32, seed),
        "vault-token": "hvs" + "." + a(90),
        "doppler-token": "dp" + ".pt." + a(43),
        "terraform-token": drawn(ALNUM, 14, seed) + ".atlasv1" + "." + a(67),
        "pulumi-token": "pul" + "-" + a(40, HEX),
        "onepassword-token": "ops" + "_eyJ" + a(200),
        "newrelic-key": "NRAK" + "-" + a(27, UPPER + DIGITS),
        "grafana-token": "glsa" + "_" + a(32) + "_" + drawn(HEX, 8, seed),
        "sentry-token": "sntrys" + "_" + a(80),
        "slack-token": "xoxb" + "-" + drawn(DIGITS, 12, seed) + "-" + a(24),
        "twilio-key": "SK" + a(32, HEX),
        "sendgrid-key": "SG" + "." + a(22, URLSAFE) + "." + drawn(URLSAFE, 43, seed),
        "mailgun-key": "key" + "-" + a(32, HEX),
        "mailchimp-key": a(32, HEX) + "-us" + "14",
        "brevo-key": "xkeysib" + "-" + a(64, HEX) + "-" + drawn(ALNUM, 16, seed),
        "linear-key": "lin" + "_api_" + a(40),
        "notion-token": "ntn" + "_" + a(46),
        "figma-token": "figd" + "_" + a(40, URLSAFE),
        "hubspot-token": "pat" + "-na1-" + uuid_like(seed),
        "shopify-token": "shpat" + "_" + a(32, HEX),
        "square-token": "sq0" + "atp-" + a(22),
        "braintree-token": "access_token" + "$production$" + a(16, LOWER + DIGITS) + "$" + drawn(HEX, 32, seed),
        "stripe-key": "sk" + "_live_" + a(24),
        "jwt": "eyJ" + a(30) + ".eyJ" + a(60) + "." + drawn(URLSAFE, 43, seed),
        "pem-base64": base64.b64encode(pem(seed).encode()).decode(),
        "slack-webhook": "https://hooks.slack" + ".com/services/T0" + drawn(UPPER, 9, seed) + "/B0" + a(24),
        "discord-webhook": "https://discord" + ".com/api/webhooks/" + drawn(DIGITS, 18, 1) + "/" + a(68),
        "teams-webhook": "https://x.webhook" + ".office.com/webhookb2/" + uuid_like(seed) + "@" + uuid_like(2) + "/IncomingWebhook/" + a(32),
        "telegram-token": "1" + drawn(DIGITS, 9, seed) + ":AA" + a(33),
        "url-password": "postgres://app:" + a(12) + "@db.internal:5432/app",
        "sentry-dsn": "https://" + a(32, HEX) + "@o12345.ingest.sentry.io/678",
        "otp-seed": "otpauth://totp/x:me?secret=" + drawn(BASE32, 32, seed) + "&issuer=x",
        "azure-sas": "https://x.blob.core.windows.net/c?sv=2022&sp=r&sig=" + a(42) + "%3D",
    }  # fmt: skip


def inner(kind: str, value: str) -> str:
    """The secret in a value of a kind: of a URL its password, signature or token."""
    cuts = {
        "url-password": ("app:", "@"), "sentry-dsn": ("://", "@"), "otp-seed": ("secret=", "&"), "azure-sas": ("sig=", "%"),
        "telegram-token": (":", ""), "slack-webhook": ("services/", ""), "discord-webhook": ("/" + drawn(DIGITS, 18, 1) + "/", ""),
        "teams-webhook": ("webhookb2/", ""),
    }  # fmt: skip
    if kind not in cuts:
        return value
    before, after = cuts[kind]
    rest = value.partition(before)[2]
    return rest.partition(after)[0] if after else rest


def framed(seed: object = "") -> dict[str, dict[str, str]]:
    """Kind -> the names that templates of data/secrets/framed may use; {v} is the secret."""
    word = "Kestrel" + drawn(DIGITS, 3, seed) + drawn(LOWER, 4, seed)
    hexes = "4f" + drawn(HEX, 30, seed)
    return {
        "pem": pem(seed),
        "putty-key": "\n".join(drawn(BASE64, 64, f"{seed}{line}") for line in range(3)),
        "npm-auth": "7" + drawn(BASE64, 30, seed),
        "docker-auth": base64.b64encode(f"me:{word}{hexes}".encode()).decode(),
        "aws-secret": "7" + drawn(BASE64, 39, seed),
        "aws-session-token": "7" + drawn(BASE64, 200, seed),
        "google-key-id": "4" + drawn(HEX, 39, seed),
        "azure-storage-key": "7" + drawn(BASE64, 85, seed) + "==",
        "heroku-key": uuid_like(seed),
        "cloudflare-token": "7" + drawn(ALNUM, 39, seed),
        "vercel-token": "7" + drawn(ALNUM, 23, seed),
        "kubeconfig-key": drawn(BASE64, 120, seed) + "7==",
        "okta-token": "00" + drawn(URLSAFE, 40, seed),
        "datadog-key": hexes,
        "discord-token": "M" + drawn(ALNUM, 23, seed) + "." + drawn(ALNUM, 6, seed) + "." + drawn(URLSAFE, 38, seed),
        "card-number": card(seed),
        "bearer": "7" + drawn(ALNUM, 40, seed),
        "basic-auth": base64.b64encode(f"me:{word}".encode()).decode(),
        "cookie": "s7" + drawn(ALNUM, 40, seed),
        "seed-phrase": " ".join(drawn(LOWER, 4 + place % 4, f"{seed}{place}") for place in range(12)),
        "netrc-password": word,
        "pgpass-password": word,
        "connection-password": word,
        "assigned-secret": "7" + drawn(ALNUM, 39, seed),
        "assigned-password": word,
        "spoken-password": word,
        "environment-secret": word,
        "user-password": word,
        "private-tag": f"my sister is called {word}",
    }  # fmt: skip


def templates(name: str) -> Iterator[tuple[str, str]]:
    """(label, text with {v}) of a file of templates: a line `== label`, then the text."""
    for part in (FOLDER / name).read_text().split("== ")[1:]:
        label, _, text = part.partition("\n")
        yield label.strip(), text.rstrip("\n")


def planted(which: str, seed: object = "") -> list[Planted]:
    """Every secret in every surrounding of a set: `seen` or `held_out`."""
    secrets = []
    for kind, value in bare(seed).items():
        for _, text in templates(f"{which}.txt"):
            secrets.append(Planted(kind=kind, text=text.replace("{v}", value), secret=inner(kind, value)))
    values = framed(seed)
    for label, text in templates(f"{which}_framed.txt"):
        kind, _, form = label.partition(" ")
        value = values[kind]
        shown = {"": value, "escaped": value.replace("\n", "\\n"), "json": json.dumps(value)[1:-1]}[form]
        secrets.append(
            Planted(kind=kind, text=text.replace("{v}", shown), secret=shown[40:70] if len(shown) > 200 else shown)
        )
    return secrets


def forms(secret: str) -> list[bytes]:
    """How a secret could stand in a file: as it is, as JSON has it, as a URL has it, in UTF-16, in base64."""
    whole = secret.encode()
    forms = [
        whole,
        json.dumps(secret)[1:-1].encode(),
        urllib.parse.quote(secret, safe="").encode(),
        secret.encode("utf-16-le"),
    ]
    # base64 depends on where in three bytes it begins; the ends depend on the neighbours
    forms += [base64.b64encode(b"\0" * shift + whole)[4:-4] for shift in range(3)]
    return list(dict.fromkeys(form for form in forms if len(form) >= 8))
