"""Texts that hold a key or a token: they are not indexed, and the reason is shown.

Each pattern has a fixed beginning, so that a plain substring search rejects almost every text. What documentation
prints as a sample (AKIAIOSFODNN7EXAMPLE, a PEM header without a key below it) is no secret.
"""

import re

_PRIVATE_KEY = "looks like a private key"
_PASSWORDS = "looks like a list of passwords"
_CLOUD_KEY = "looks like a cloud key"
_TOKEN = "looks like an access token"  # noqa: S105 - the reason, not a token
PASSWORD_DATABASE = "a password database"  # noqa: S105 - the reason
REASONS = (_PRIVATE_KEY, _PASSWORDS, _CLOUD_KEY, _TOKEN, PASSWORD_DATABASE)  # why a file is a secret by its content

_PATTERNS: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (start, re.compile(pattern), reason)
    for start, pattern, reason in (
        # at least 100 characters of base64 below the header, across lines or escaped line ends (JSON)
        ("PRIVATE KEY", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\r|\\n)*"
                        r"(?:[\w-]{1,40}: [^\n\\]{0,200}(?:\n|\\r\\n|\\n)\s*){0,8}"
                        r"(?:[A-Za-z0-9+/=](?:\s|\\r|\\n)*){100}", _PRIVATE_KEY),
        ("PuTTY-User-Key-File-", r"PuTTY-User-Key-File-\d: [\s\S]{1,4000}?Private-Lines: \d", _PRIVATE_KEY),
        ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", _PRIVATE_KEY),
        # password hashes of accounts, as in a copy of /etc/shadow or a file of htpasswd
        (":$", r"(?m)^[\w.-]{1,64}:\$(?:1|2[abxy]|5|6|7|y|gy|apr1|argon2id?)\$[^:\s]{20,}(?::|$)", _PASSWORDS),
        ("AKIA", r"\bAKIA(?![0-9A-Z]{9}EXAMPLE)[0-9A-Z]{16}\b", _CLOUD_KEY),
        ("ASIA", r"\bASIA(?![0-9A-Z]{9}EXAMPLE)(?=[A-Z]{0,15}[0-9])[0-9A-Z]{16}\b", _CLOUD_KEY),
        ("aws_secret_access_key", r"aws_secret_access_key\W{1,8}(?![A-Za-z0-9/+]{0,40}EXAMPLE)[A-Za-z0-9/+]{40}\b",
         _CLOUD_KEY),
        ("AIza", r"\bAIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])", _CLOUD_KEY),
        ("AccountKey=", r"AccountKey=[A-Za-z0-9+/]{86}==", _CLOUD_KEY),
        ("ghp_", r"\bghp_[A-Za-z0-9]{36}", _TOKEN),
        ("gho_", r"\bgho_[A-Za-z0-9]{36}", _TOKEN),
        ("ghu_", r"\bghu_[A-Za-z0-9]{36}", _TOKEN),
        ("ghs_", r"\bghs_[A-Za-z0-9]{36}", _TOKEN),
        ("ghr_", r"\bghr_[A-Za-z0-9]{36}", _TOKEN),
        ("github_pat_", r"\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}", _TOKEN),
        ("glpat-", r"\bglpat-[\w-]{20}", _TOKEN),
        ("xox", r"\bxox[abprs]-\d{8,}-[A-Za-z0-9-]{10,}", _TOKEN),
        ("sk_live_", r"\b[sr]k_live_[A-Za-z0-9]{24}", _TOKEN),
        ("sk-", r"\bsk-(?:ant-|proj-)?(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Z])[\w-]{40}", _TOKEN),
        ("npm_", r"\bnpm_[A-Za-z0-9]{36}\b", _TOKEN),
        ("pypi-AgEIcHlwaS5vcmc", r"pypi-AgEIcHlwaS5vcmc[\w-]{50}", _TOKEN),
    )
)  # fmt: skip


def looks_secret(text: str) -> str | None:
    """Why a text must not be indexed; None: it looks like no secret."""
    for start, pattern, reason in _PATTERNS:
        if start in text and pattern.search(text):
            return reason
    return None
