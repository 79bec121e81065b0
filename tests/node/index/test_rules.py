"""Rules: secrets stay out whoever says otherwise, every verdict names its rule."""

import pytest

from foltr.errors import SpecError
from foltr.node import settings as node_settings
from foltr.node.index.rules import GROUPS, Rules
from foltr.node.settings import Settings


def verdict(root, path, **options):
    target = root / path
    if not target.exists():
        if path.endswith("/"):
            target.mkdir(parents=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("x")
    return Rules(Settings(roots=(str(root),), **options)).verdict(str(target))


@pytest.mark.parametrize(
    ("path", "group"),
    [
        (".git/config", "version control"), ("x/.svn/entries", "version control"),
        ("__pycache__/a.txt", "caches"), (".cache/a.txt", "caches"), ("a.txt~", "caches"),
        ("node_modules/x/readme.md", "build output"), ("a.pyc", "build output"),
        (".venv/lib/a.py", "virtual environments"),
        (".config/app/notes.txt", "hidden folders"), (".ssh/config", "secrets"), (".gnupg/x", "secrets"),
        (".env", "secrets"), (".env.local", "secrets"), ("server.pem", "secrets"), ("server.KEY", "secrets"),
        ("pass.kdbx", "secrets"), ("id_rsa", "secrets"), ("id_rsa.pub", "secrets"),
        ("logins.json", "secrets"), ("ID_ED25519", "secrets"),
        (".password-store/x.gpg", "secrets"),
        (".netrc", "secrets"), (".bash_history", "secrets"), (".mozilla/firefox/x/places.txt", "browser profiles"),
        ("google-chrome-beta/x", "browser profiles"), ("sub/.SSH/known_hosts", "secrets"),
    ],
)  # fmt: skip
def test_default_rules_name_their_group(tmp_path, path, group):
    assert verdict(tmp_path, path).startswith(group + ": ")


@pytest.mark.parametrize(
    "path",
    [
        "notes.txt", "build/report.txt", "target/x.md", ".bashrc", "docs/env.md", "keys.txt", "picture.PNG", "lib.so.6",
        "ID_card front.pdf", "id_photos.zip", "ld.so.8.gz", "credentials", "Credentials", "Shadow", "gshadow.txt",
    ],
)  # fmt: skip
def test_ordinary_files_are_not_excluded(tmp_path, path):
    assert verdict(tmp_path, path) is None


@pytest.mark.parametrize(
    ("content", "ordinary"),
    [
        (b"PK\3\4 a presentation", True),
        (b"1. The answer is b, since the sum of all angles is one hundred and eighty degrees", True),
        (b"-----BEGIN PRIVATE KEY-----\n the words of this file are many but it is a key all the same", False),
        (b"0\x82\4\xa4\2\1\0\2\x82", False),
        (b"yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\n", False),
        (b"", False),
    ],
)
def test_a_file_with_the_ending_of_keys_is_looked_into(tmp_path, content, ordinary):
    (tmp_path / "talk.key").write_bytes(content)
    assert verdict(tmp_path, "talk.key") == (None if ordinary else "secrets: *.key")


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("id_rsa.old", "secrets: id_rsa.*"), (".env.local", "secrets: .env*"), ("client_secret_7.json",
        "secrets: client_secret*.json"), ("google-chrome-beta/x", "browser profiles: google-chrome*/"),
        ("draft.txt~", "caches: *~"), ("server.pem", "secrets: *.pem"),
    ],
)  # fmt: skip
def test_a_verdict_names_the_pattern_and_not_the_file(tmp_path, path, rule):
    assert verdict(tmp_path, path) == rule


def test_a_profile_of_thunderbird_is_added_on_purpose_and_its_keys_stay_out(tmp_path):
    profile = tmp_path / "mail/x.default"
    (profile / "Mail/Local Folders").mkdir(parents=True)
    for name in ("key4.db", "logins.json", "cert9.db", "Mail/Local Folders/Inbox"):
        (profile / name).write_text("x")
    inbox = str(profile / "Mail/Local Folders/Inbox")
    refused = Rules(Settings(roots=(str(tmp_path),))).verdict(inbox)
    assert refused == "browser profiles: a folder with key4.db; it holds mail: add this folder itself to search it"
    added = Rules(Settings(roots=(str(tmp_path), str(profile))))
    assert added.verdict(inbox) is None
    for name in ("key4.db", "logins.json", "cert9.db"):
        assert added.verdict(str(profile / name)) == f"secrets: {name}"


def test_output_folders_are_known_by_what_stands_beside_them(tmp_path):
    (tmp_path / "Cargo.toml").write_text("")
    assert verdict(tmp_path, "target/x.md") == "build output: target/ beside cargo.toml"


def test_environments_profiles_and_caches_are_known_by_what_is_in_them(tmp_path):
    for name, file in (("env", "pyvenv.cfg"), ("Default", "Login Data"), ("p", "key4.db"), ("tmp", "CACHEDIR.TAG")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("")
        assert verdict(tmp_path, f"{name}/a.txt").endswith(f"a folder with {file}")


def test_an_ignore_file_cannot_include_a_secret(tmp_path):
    for name in (".gitignore", ".foltrignore"):
        (tmp_path / name).write_text("!.ssh\n!.ssh/\n!*.pem\n!**\n")
    assert verdict(tmp_path, ".ssh/id_rsa").startswith("secrets")
    assert verdict(tmp_path, "a.pem").startswith("secrets")
    assert verdict(tmp_path, ".hidden/x").startswith("hidden folders")


def test_settings_can_include_what_the_defaults_exclude(tmp_path):
    assert verdict(tmp_path, ".ssh/config", allow=(".ssh",)) is None
    assert verdict(tmp_path, ".ssh/id_rsa", allow=(".ssh",)).startswith("secrets")
    assert verdict(tmp_path, ".notes/a.txt", allow=("hidden folders",)) is None
    assert verdict(tmp_path, "a.pem", exclude=("!a.pem",)) is None


def test_ignore_files_name_file_and_line_and_the_innermost_decides(tmp_path):
    (tmp_path / ".gitignore").write_text("# drafts\n*.draft\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/.foltrignore").write_text("!kept.draft\n")
    assert verdict(tmp_path, "a.draft") == f"{tmp_path}/.gitignore, line 2: *.draft"
    assert verdict(tmp_path, "inner/kept.draft") is None
    assert verdict(tmp_path, "inner/b.draft") == f"{tmp_path}/.gitignore, line 2: *.draft"


def test_rules_of_the_settings_come_first(tmp_path):
    assert verdict(tmp_path, "a.log", exclude=("*.log",)) == "settings, exclude: *.log"
    assert verdict(tmp_path, "old/a.txt", exclude=("/old/",)) == "settings, exclude: /old/"
    with pytest.raises(SpecError, match="line break"):
        node_settings.changed(Settings(), exclude=("a\nb",))


def test_a_root_in_a_secret_folder_is_refused_also_through_a_link(tmp_path):
    secret = tmp_path / ".ssh"
    secret.mkdir()
    link = tmp_path / "link"
    link.symlink_to(secret)
    for root in (secret, link):
        assert Rules(Settings(roots=(str(root),))).root_verdict(str(root)) == "secrets: .ssh/"
        assert Rules(Settings(roots=(str(root),), allow=(".ssh",))).root_verdict(str(root)) is None
    assert Rules(Settings()).root_verdict("/proc") == "system folder: /proc"


def test_an_ignore_file_that_is_a_link_or_a_pipe_is_not_read(tmp_path):
    import os

    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / ".foltrignore").symlink_to("/dev/zero")
    assert verdict(tmp_path, "a.txt") is None


def test_settings_are_read_back_and_unknown_keys_refused(tmp_path):
    path = tmp_path / "settings.toml"
    chosen = Settings(
        roots=('/home/me/with "quotes"\x7f', "/srv/ä"), exclude=("*.log",), workers=2, learning=False,
        limits=node_settings.Limits(words=10),
    )  # fmt: skip
    node_settings.save(path, chosen)
    assert node_settings.load(path) == chosen
    assert node_settings.load(tmp_path / "absent.toml") == Settings()
    for text, expected in (
        ("root = []", "no key root; there are roots, exclude"),
        ("[limits]\nseconds_ = 1", "no key limits.seconds_; there are limits.file_mb"),
        ("workers = 0", "between 1 and 64"),
        ("roots = ['a']", "write the whole path"),
        ("workers = 'x'", "Expected `int`"),
        ("workers = ", "is not valid TOML"),
    ):
        path.write_text(text)
        with pytest.raises(SpecError, match=expected.replace(".", r"\.")):
            node_settings.load(path)


def test_groups_are_documented_patterns():
    assert set(GROUPS) >= {"secrets", "version control", "caches", "build output", "virtual environments"}
