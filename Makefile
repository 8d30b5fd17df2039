# swe-miner: everything a person runs. `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.set-up
REAL := docker or index
FAST := not ($(REAL)) and not slow and not loopback and not model

.PHONY: help setup docker mine test-fast test test-all test-model lint bench bench-install bench-models lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## the project's own environment in .venv, from requirements.lock

docker: setup ## git, mmdebstrap and a container engine; does nothing where an engine answers
	@PYTHON=$(BIN)/python bash configs/machine-setup.sh

mine: docker ## the whole pipeline on the packages of configs/demo.toml
	@$(BIN)/swe-miner run --config configs/demo.toml

test-fast: setup ## tests that need neither an engine nor the network (a minute or two)
	@$(BIN)/pytest -n auto -m "$(FAST)"

test: docker test-fast ## one of everything, in real containers (under 15 minutes)
	@$(BIN)/pytest -n auto -m "loopback and not ($(REAL)) and not slow"
	@$(BIN)/pytest -m "($(REAL)) and not slow and not model"

test-all: docker setup ## with the long kills, faults and corpora, and ten times the examples of property tests
	@HYPOTHESIS_PROFILE=thorough $(BIN)/pytest -n auto -m "not ($(REAL)) and not slow and not model"
	@$(BIN)/pytest -m "(($(REAL)) or slow) and not model"

test-model: docker ## a small language model and tests with its tokens (3 minutes); needs node 20, and says so where it is not
	@$(BIN)/python tests/smollm/set_up.py || { status=$$?; [ $$status -eq 3 ] && exit 0 || exit $$status; }; \
		$(BIN)/pytest -m model -s

lint: setup ## format, style, types, direction of imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports

bench: docker ## run every script in benchmarks/ on this machine, those of installing and of models aside
	@for file in $(filter-out benchmarks/install_% benchmarks/model_%,$(wildcard benchmarks/*.py)); do \
		echo "== $$file"; $(BIN)/python "$$file"; done

HALF ?= tuning
bench-install: docker ## the ladder on real packages (hours when cold; HALF=tuning, reporting or all)
	@$(BIN)/python benchmarks/install_corpus.py --half $(HALF)

MODELS ?=
FROM ?= var/bench-install
bench-models: docker ## compare language models where the ladder fails (MODELS="a b"; FROM=folder of bench-install)
	@$(BIN)/python benchmarks/model_compare.py --half $(HALF) --from $(FROM) --models $(MODELS)

lock: setup ## resolve requirements.lock again, after a change of dependencies
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--no-annotate --group dev pyproject.toml -o requirements.lock

clean: ## remove caches of tools; var/ (ledger, blobs, base image) and out/ (releases) stay
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist var/base/build-*
	@find . -path ./.venv -prune -o -path ./var -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "kept: .venv var out (remove them by hand; what var holds was measured, and has to be measured again)"

# uv comes by pip at the locked version and hash, and installs the rest.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "swe-miner needs Python 3.11 or newer; $(PYTHON) is: $$($(PYTHON) --version 2>&1 || true)"; \
		echo "install one (Debian 12, Ubuntu 24.04: apt-get install python3 python3-venv), then: make setup PYTHON=python3.11"; \
		exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@test -x $(BIN)/python || { rm -rf .venv; $(PYTHON) -m venv .venv; }
	@awk '/^[^ ]/ { ours = /^uv==/ } ours' requirements.lock > .venv/uv.lock
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.lock
	@VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip sync --quiet --require-hashes requirements.lock
	@VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install --quiet --no-deps -e .
	@touch $@
