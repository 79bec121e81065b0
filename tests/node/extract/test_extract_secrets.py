"""Texts with keys are skipped and the reason is given; texts about keys are not."""

import string

import pytest
from sample_files import result_of

from foltr.node.extract import Extracted, Failure, looks_secret

LETTERS = (string.ascii_letters + string.digits) * 3
BASE64 = "\n".join(LETTERS[:64] for _ in range(5))
HEAD, TAIL = "-----BEGIN {}PRIVATE KEY-----\n", "\n-----END {}PRIVATE KEY-----\n"  # apart, so that this file has no key


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEAD.format("") + BASE64 + TAIL.format(""), "looks like a private key"),
        (HEAD.format("RSA ") + "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES,00\n\n" + BASE64, "looks like a private key"),
        ("indented:\n    " + HEAD.format("EC ") + BASE64.replace("\n", "\n    "), "looks like a private key"),
        ('{"private_key": "' + (HEAD.format("") + BASE64).replace("\n", "\\n") + '"}', "looks like a private key"),
        ((HEAD.format("OPENSSH ") + BASE64).replace("\n", "\r\n"), "looks like a private key"),
        (HEAD.format("PGP ").replace("KEY", "KEY BLOCK") + "Version: 1\n\n" + BASE64, "looks like a private key"),
        ("PuTTY-User-Key-File-3: ssh-ed25519\nPublic-Lines: 2\nPrivate-Lines: 1\nAAA", "looks like a private key"),
        ("x\nroot:$6$saltsalt$" + LETTERS[:43] + ":19000:0:99999:7:::\n", "looks like a list of passwords"),
        ("AGE-SECRET-KEY-1" + "Q" * 58, "looks like a private key"),
        ("key = AKIA" + "ABCDEFGH12345678", "looks like a cloud key"),
        ("aws_secret_access_key = " + LETTERS[:40], "looks like a cloud key"),
        ("AIza" + LETTERS[:35], "looks like a cloud key"),
        ("AccountKey=" + LETTERS[:86] + "==", "looks like a cloud key"),
        ("token: ghp_" + LETTERS[:36], "looks like an access token"),
        ("github_pat_" + LETTERS[:22] + "_" + LETTERS[:59], "looks like an access token"),
        ("glpat-" + LETTERS[:20], "looks like an access token"),
        ("xoxb-" + "1234567890-" + LETTERS[:20], "looks like an access token"),
        ("sk_live_" + LETTERS[:24], "looks like an access token"),
        ("sk-ant-" + LETTERS[20:70], "looks like an access token"),
    ],
)
def test_secrets(tmp_path, text, reason):
    assert looks_secret(f"before {text} after") == reason
    assert result_of(tmp_path, "notes.txt", text.encode()) == Failure("skipped", reason, unnamed=True)


@pytest.mark.parametrize(
    "text",
    [
        "A file that begins with " + HEAD.format("") + " holds a key; see openssl(1) for what follows it.",
        HEAD.format("") + "...\n" + TAIL.format(""),
        "AKIAIOSFODNN7EXAMPLE and wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "-----BEGIN PUBLIC KEY-----\n" + BASE64,
        "-----BEGIN CERTIFICATE-----\n" + BASE64,
        "task-list sk-learn npm_config_registry gho_st AKIA",
        "SOUTHEASIA" + "A" * 16,
    ],
)
def test_texts_about_secrets(tmp_path, text):
    assert looks_secret(text) is None
    assert isinstance(result_of(tmp_path, "notes.txt", text.encode()), Extracted)


@pytest.mark.parametrize(
    "text",
    [
        "sk-" * 300_000,
        HEAD.format("") * 20_000,
        (HEAD.format("") + "a: b: c: " * 20) * 1_000,
        HEAD.format("") + "A" * 99 + "!" + "\\n" * 100_000,
        "PuTTY-User-Key-File-1: " * 2_000,
        "aws_secret_access_key" * 20_000 + "=" * 20_000,
        "xoxb-" + "1" * 300_000,
    ],
)
def test_patterns_are_linear_enough_for_forged_texts(text):
    assert looks_secret(text) is None  # ends at all: no pattern backtracks without bound
