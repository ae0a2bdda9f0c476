# Targets for people and for CI. Needs python3 (>= 3.11) with its venv module, and make.

.DEFAULT_GOAL := help
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input

# Two stamps on one environment: the demo needs the runtime packages only.
RUN_STAMP := $(VENV)/.stamp-run
DEV_STAMP := $(VENV)/.stamp-dev

PYTEST_ARGS ?=

# Prints the first usable interpreter, or says what is missing.
define FIND_PYTHON
for candidate in $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3; do \
  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
    python="$$candidate"; break; \
  fi; \
done; \
if [ -z "$${python:-}" ]; then \
  echo "error: ddtui needs Python 3.11 or newer, and none was found on PATH." >&2; \
  echo "       Install it (Debian, Ubuntu: apt-get install python3 python3-venv)," >&2; \
  echo "       or name one: make PYTHON=/path/to/python3.11" >&2; \
  exit 1; \
fi; \
if ! "$$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
  version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
  echo "error: $$python has no working venv module (ensurepip is missing)." >&2; \
  echo "       Install it (Debian, Ubuntu: apt-get install python$$version-venv)." >&2; \
  exit 1; \
fi
endef

.PHONY: help
help:
	@echo "make demo         run ddtui against a simulated host"
	@echo "make test         linters, type checks, import contracts and tests"
	@echo "make lint         the checks of 'make test' without the tests"
	@echo "make format       format the sources and apply safe lint fixes"
	@echo "make bench        run the benchmarks"
	@echo "make engine       tests against a real SGLang on the CPU (3.3 GB, built once)"
	@echo "make modules      print what each module is for (WORDS: those that have them)"
	@echo "make screenshots  regenerate the pictures in the documentation"
	@echo "make snapshots    accept the current screens as UI test snapshots"
	@echo "make env-run      create .venv with the runtime packages"
	@echo "make env-dev      create .venv with the development packages too"
	@echo "make lock         regenerate the lock files from pyproject.toml"
	@echo "make clean        remove the environment, caches and build results"

# ---- environment ----------------------------------------------------------------------------

.PHONY: env-run env-dev
env-run: $(RUN_STAMP)
env-dev: $(DEV_STAMP)

$(BIN)/python:
	@set -eu; $(FIND_PYTHON); \
	echo "Creating $(VENV) with $$("$$python" --version) ..."; \
	"$$python" -m venv --clear $(VENV)

$(RUN_STAMP): requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing the runtime packages ..."
	@$(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# requirements-dev.lock holds everything that requirements.lock does, in the same versions.
$(DEV_STAMP): requirements-dev.lock requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing the development packages ..."
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $(RUN_STAMP) $@

# ---- use ------------------------------------------------------------------------------------

.PHONY: demo
demo: $(RUN_STAMP)
	@$(BIN)/ddtui connect demo

# ---- checks ---------------------------------------------------------------------------------

.PHONY: test lint format bench engine snapshots modules screenshots
test: lint
	@echo "== pytest: units and screens"
	@$(BIN)/python -m pytest -n 4 --dist loadfile tests/unit tests/ui $(PYTEST_ARGS)
	@echo "== pytest: on real systemd hosts"
	@$(BIN)/python -m pytest -n 3 --dist worksteal tests/host $(PYTEST_ARGS)

lint: $(DEV_STAMP)
	@echo "== ruff check"
	@$(BIN)/ruff check
	@echo "== ruff format"
	@$(BIN)/ruff format --check
	@echo "== mypy"
	@$(BIN)/mypy
	@echo "== import contracts"
	@$(BIN)/lint-imports --no-logo

format: $(DEV_STAMP)
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(DEV_STAMP)
	@$(BIN)/python -m tests.bench

engine: $(DEV_STAMP)
	@$(BIN)/python -m pytest tests/engine $(PYTEST_ARGS)

snapshots: $(DEV_STAMP)
	@$(BIN)/python -m pytest tests/ui --snapshot-update $(PYTEST_ARGS)

modules:
	@python3 docs/list_modules.py $(WORDS)

screenshots: $(DEV_STAMP)
	@$(BIN)/python -m docs.make_screenshots

# ---- lock files -----------------------------------------------------------------------------

# Keeps the locked versions where it can; LOCK_ARGS=--upgrade moves them all.
LOCK_ARGS ?=
UV_VERSION := 0.13.9
LOCK_VENV := build/lock-venv
# Options of the machine's own (indexes, folders of packages) must not reach the lock files.
UV_COMPILE := env -u PIP_FIND_LINKS -u UV_FIND_LINKS UV_NO_CONFIG=1 \
  $(LOCK_VENV)/bin/uv --quiet pip compile pyproject.toml \
  --group build --universal --python-version 3.11 --generate-hashes --no-annotate \
  --no-emit-index-url --no-emit-find-links --no-header $(LOCK_ARGS)

.PHONY: lock
lock:
	@set -eu; $(FIND_PYTHON); \
	[ -x $(LOCK_VENV)/bin/uv ] || { \
	  "$$python" -m venv --clear $(LOCK_VENV); \
	  $(LOCK_VENV)/bin/python -m pip install -qq --disable-pip-version-check uv==$(UV_VERSION); \
	}
	@$(UV_COMPILE) --output-file requirements.lock >/dev/null
	@$(UV_COMPILE) --extra dev --constraint requirements.lock \
	  --output-file requirements-dev.lock >/dev/null
	@echo "requirements.lock and requirements-dev.lock are up to date."

# ---- tidy -----------------------------------------------------------------------------------

.PHONY: clean
clean:
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache \
	  .hypothesis snapshot_report.html
	@find ddtui tests docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
