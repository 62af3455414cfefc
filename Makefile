# Every target makes .venv from requirements.lock by itself: with uv when it is installed, else with plain venv and pip.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= auto
E2E_JOBS ?= 3# control planes at a time: tests on them wait more than they compute

.PHONY: help setup demo test charts e2e check bench docs lock fmt clean

help: ## list the targets
	@grep -hE '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s '	'

setup: .venv/.installed ## make .venv from requirements.lock

.venv/.installed: requirements.lock pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
	  test -x $(BIN)/python || uv venv --quiet --python $(PYTHON) .venv; \
	  uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock && \
	  uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .; \
	else \
	  test -x $(BIN)/python || $(PYTHON) -m venv .venv; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	fi
	@$(BIN)/python -m compileall -q src # so that the first start is quick, whatever PYTHONDONTWRITEBYTECODE says
	@touch $@

demo: setup ## the main job on the embedded world: a claim becomes a node, and is taken down again
	@$(BIN)/karpenter-linode simulate examples/one-gpu --seed 7

test: setup ## every test but the end-to-end ones
	@$(BIN)/python -m pytest -n $(JOBS)

charts: setup ## render and check the charts with Helm 3 and 4, which come from npm, and lint the Containerfile
	@$(BIN)/python -m pytest -q -m charts tests/charts

e2e: setup ## the tests on a real control plane, built with Go in many minutes the first time; E2E_KUBERNETES=1.34 for the oldest
	@$(BIN)/python tests/e2e/controlplane_binary.py
	@$(BIN)/python -m pytest -v -m e2e -n $(E2E_JOBS) --dist loadgroup tests/e2e tests/charts

check: setup ## format, lint, types, layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup ## measure; prints a table with the machine named
	@$(BIN)/python bench/run.py

docs: setup ## build the documentation into site/
	@$(BIN)/mkdocs build --strict --quiet

fmt: setup ## format the tree and apply safe fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: ## resolve requirements.lock again (needs uv)
	uv pip compile pyproject.toml --group dev --group docs --universal --python-version 3.11 \
	  --generate-hashes --no-header --quiet -o requirements.lock

clean: ## remove what the targets made
	rm -rf .venv site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
