# Plain Python 3.11+ and make; everything else is installed into .venv at first use.
PYTHON ?= python3
BIN := .venv/bin
export FOLTR_DATA ?= $(wildcard $(abspath ../shared/data))

.PHONY: demo test check slow bench clean

demo: .venv/installed
	$(BIN)/foltr demo

test: .venv/installed check
	$(BIN)/python -m pytest

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

slow: .venv/installed
	$(BIN)/python -m pytest -m slow

bench: .venv/installed
	$(BIN)/foltr bench

.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv
