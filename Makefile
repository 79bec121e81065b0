# Plain Python 3.11+ and make; everything else is installed into .venv at first use.
PYTHON ?= python3
BIN := .venv/bin
# test files side by side, one worker a core
PYTEST := -m pytest --numprocesses logical --maxprocesses 4 --dist loadfile
export FOLTR_DATA ?= $(wildcard $(abspath ../shared/data))

.PHONY: demo test check slow lowest bench clean

demo: .venv/installed
	$(BIN)/foltr demo

test: .venv/installed check
	$(BIN)/python $(PYTEST)

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

slow: .venv/installed
	$(BIN)/python $(PYTEST) -m slow

# the lowest numba of the declared range
lowest: .venv-lowest/installed
	.venv-lowest/bin/python $(PYTEST) tests/golden tests/core/test_engines.py tests/core/test_intrinsics.py

bench: .venv/installed
	$(BIN)/foltr bench

.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

.venv-lowest/installed: pyproject.toml
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' 'numba==0.61.*'
	touch $@

clean:
	rm -rf .venv .venv-lowest
