# The one way to do each thing in this repository. `make` alone lists them.
# Needs Debian (or alike), Python >= 3.11, pip and make; everything else is installed on first use.

VENV := .venv
BIN := $(VENV)/bin
CHECKED := src tests benchmarks scripts

.DEFAULT_GOAL := help
.PHONY: help demo test lint types unit test-crowd test-agents coverage bench format clean runtime dev

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: runtime ## Watch a small fleet work, in a private tmux server (under a minute)
	@$(BIN)/cafleet demo

test: lint types unit ## Everything that must hold: lint, types, then all tests

lint: dev ## Check style and formatting
	@$(BIN)/ruff check --quiet $(CHECKED)
	@$(BIN)/ruff format --quiet --check --diff $(CHECKED)

types: dev ## Check types, strictly
	@$(BIN)/mypy --no-error-summary

unit: dev ## Run all tests, in parallel and in random order (ARGS="-k name" narrows)
	@$(BIN)/python -m pytest -q -n 6 --dist worksteal $(ARGS)

test-crowd: dev ## Let 32 processes send 25 messages each into one pane (two minutes; CROWD_MESSAGES=n)
	@CROWD_MESSAGES=$${CROWD_MESSAGES:-25} $(BIN)/python -m pytest -q -n0 tests/faults/test_crowd.py

test-agents: dev ## Prove it with the real agent programs (1.2 GB, needs npm; loopback only)
	@scripts/test-agents.sh

coverage: dev ## Run all tests and show which branches they miss
	@$(BIN)/python -m pytest -q -n auto --dist worksteal --cov --cov-report=term-missing $(ARGS)

bench: runtime ## Measure speed and size against yardsticks, write docs/benchmarks.md
	@$(BIN)/python -m benchmarks

format: dev ## Rewrite the code in the project's style
	@$(BIN)/ruff check --quiet --fix $(CHECKED)
	@$(BIN)/ruff format --quiet $(CHECKED)

clean: ## Remove the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage dist build

runtime:
	@scripts/system-packages.sh tmux
	@scripts/environment.sh runtime

dev:
	@scripts/system-packages.sh tmux chromium zsh fish
	@scripts/environment.sh dev
