"""A desktop whose programs write down what they are given."""

import os
import select

PROGRAM = r"""#!/bin/sh
(IFS='|'; printf '%s\0' "{begin}$*" > '{pipe}')
exit {code}
"""
MIME_TYPES = """\
50:application/pdf:*.pdf
50:text/x-python:*.py
50:text/markdown:*.md
50:text/plain:*.txt
50:application/x-shellscript:*.sh
50:message/rfc822:*.eml
50:application/x-desktop:*.desktop
50:application/vnd.debian.binary-package:*.deb
"""
SUBCLASSES = "application/x-shellscript text/plain\napplication/x-desktop text/plain\n"


class Desktop:
    """Programs in a folder of their own, in front of all others, and associations of nobody else."""

    def __init__(self, folder, set_variable):
        self._programs, self._share, self._pipe = folder / "programs", folder / "share", folder / "pipe"
        self._programs.mkdir(parents=True)
        (self._share / "applications").mkdir(parents=True)
        (self._share / "mime").mkdir()
        (self._share / "mime" / "globs2").write_text(MIME_TYPES)
        (self._share / "mime" / "subclasses").write_text(SUBCLASSES)
        os.mkfifo(self._pipe)
        set_variable("PATH", f"{self._programs}:{os.environ['PATH']}")
        for variable in ("XDG_DATA_DIRS", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            set_variable(variable, str(self._share))
        for variable in ("VISUAL", "EDITOR", "TERMINAL", "XDG_CURRENT_DESKTOP"):
            set_variable(variable, "")
        self._descriptor = os.open(self._pipe, os.O_RDWR | os.O_CLOEXEC)  # to write too, so that no program waits

    def program(self, name, code=0):
        """A program that writes down its name and arguments, and ends with an exit code."""
        file = self._programs / name
        begin = "" if name in ("xdg-open", "open") else f"{name}|"
        file.write_text(PROGRAM.format(begin=begin, pipe=self._pipe, code=code))
        file.chmod(0o755)

    def entry(self, name, command, types="", **values):
        """A desktop entry for a program; `default` names the types that it is the default of."""
        default = values.pop("default", "")
        lines = {"Type": "Application", "Name": name, "Exec": command, "MimeType": types, **values}
        text = "\n".join(["[Desktop Entry]", *(f"{key}={value}" for key, value in lines.items())])
        (self._share / "applications" / f"{name}.desktop").write_text(text + "\n")
        with (self._share / "mimeapps.list").open("a") as file:
            file.write("[Default Applications]\n" + "".join(f"{kind}={name}.desktop\n" for kind in default.split()))

    def without_entries(self):
        """Takes all entries and associations away."""
        for file in [*(self._share / "applications").iterdir(), *self._share.glob("mimeapps.list")]:
            file.unlink()

    def __call__(self):
        """Waits for a program and returns its arguments, joined by |, after its name unless it is the desktop's own."""
        written = b""
        while not written.endswith(b"\0"):
            assert select.select([self._descriptor], [], [], 60)[0], "nothing was opened"
            written += os.read(self._descriptor, 1)
        return os.fsdecode(written[:-1])

    def nothing(self):
        """Whether no program was started that has not been read."""
        return not select.select([self._descriptor], [], [], 0)[0]
