# `make bench` shows the first result and `make test` runs everything CI runs; both need only Python, pip and make.
# A second call finds the environment installed and starts at once.

PYTHON ?= python3
BIN := .venv/bin
EXTRAS := llm,local,train,rl,plots,tokens,dev
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= auto
PYTEST_FLAGS ?=

.PHONY: help bench test lint unit wheel types audit pins clean
.NOTPARALLEL:
.DEFAULT_GOAL := help

help:
	@echo "make bench   play the default suite with simulated models and show the table (light install)"
	@echo "make test    lint, tests, wheel, types: what CI runs (installs torch)"
	@echo "make lint | unit | wheel | types   one part of make test"
	@echo "make audit   attack every grader over many seeds (minutes)"
	@echo "make pins    pin what the tasks render, after raising the version of those that changed"
	@echo "make clean   remove what was installed and built here"

bench: .venv/light.stamp
	$(BIN)/ec2-env bench

test: lint unit wheel types

lint: .venv/full.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

unit: .venv/full.stamp
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_FLAGS)

# The wheel with its own dependencies only, in an environment that has never seen the checkout.
wheel: .venv/full.stamp
	rm -rf build dist .venv/wheel
	$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	$(PYTHON) -m venv .venv/wheel
	.venv/wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd / && $(CURDIR)/.venv/wheel/bin/ec2-env --version
	cd / && $(CURDIR)/.venv/wheel/bin/ec2-env run forward_invoice --strategy edge_only > /dev/null
	cd / && $(CURDIR)/.venv/wheel/bin/ec2-env run forward_invoice --strategy step_routing --language zh > /dev/null

# Types are checked on what ships: mypy cannot see through an editable install, and skips the mapped folders in silence.
types: .venv/full.stamp
	rm -rf build/typed
	$(INSTALL) --no-deps --target build/typed .
	cd build/typed && MYPYPATH=. ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache -p ec2_env

audit: .venv/light.stamp
	$(BIN)/ec2-env audit-tasks --seeds 100 --mutant-seeds 5

pins: .venv/light.stamp
	$(BIN)/python -m ec2_env.bench.pins --write

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/light.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -c constraints.txt -e .
	touch $@

.venv/full.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) -c constraints.txt -e '.[$(EXTRAS)]'
	touch $@ .venv/light.stamp
