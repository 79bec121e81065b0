"""Python files for tests that read sources."""

import textwrap


def written(folder, **files):
    """Writes NAME.py for every NAME = "text", and returns the folder."""
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder
