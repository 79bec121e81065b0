"""Reads specs as JSON from stdin and prints the modules of foltr that are loaded, and those that each spec executes.

A module is executed when one of its functions is called after the imports, or one of its kernels is used.
"""

import json
import os
import sys

from foltr.lab.runs import on_texts
from foltr.lab.runs.single import run_setting
from foltr.lab.simulation.population import folds_of, load
from foltr.lab.spec.setting import TextSetting

LOADED = sorted(name for name in sys.modules if name.split(".")[0] == "foltr")


def run(one):
    if isinstance(one, TextSetting):
        return list(on_texts.run_setting(one, 1))
    return list(run_setting(one, load(one.data, folds_of(one)[0]), 1))


def executed(one):
    called = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_name != "<module>":
            called.add(frame.f_globals.get("__name__", ""))

    before = used_kernels()
    sys.setprofile(note)
    run(one)
    sys.setprofile(None)
    called |= {module for module, _ in used_kernels() - before}
    return sorted(name for name in called if name.split(".")[0] == "foltr")


def used_kernels():
    """(module, name) of each; the profiler does not see machine code."""
    values = [value for name in LOADED for value in vars(sys.modules[name]).values()]
    functions = [value.py_func for value in values if hasattr(value, "py_func") and value.signatures]
    return {(function.__module__, function.__name__) for function in functions}


def main():
    from foltr.lab.spec.parse import setting  # loads more than a run does

    found = {}
    for name, spec in json.load(sys.stdin).items():
        reader, writer = os.pipe()
        child = os.fork()  # what one setting caches must not hide calls of the next
        if child == 0:
            with os.fdopen(writer, "w") as file:
                json.dump(executed(setting(spec)), file)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            found[name] = json.loads(file.read() or "null")
        os.waitpid(child, 0)
    json.dump([LOADED, found], sys.stdout)


if __name__ == "__main__":
    main()
