# Everything is installed into .venv, once: a second call installs nothing.
#
#   make test TESTS=tests/domain ARGS="-k lease -x"    run some of the tests
#   make run DATA=/srv/penstock                        another data folder
#   make test PYTHON=python3.13                        another Python

VENV  := .venv
BIN   := $(VENV)/bin
DATA  ?= ./data
TESTS ?= tests
# Tests wait a third of their time, for processes, timers and disks: four share two cores.
JOBS  ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) '*' 2)
ARGS  ?=

# Tests start hundreds of Python processes: without bytecode files each compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

PIP := $(BIN)/python -m pip install -qq --no-input --disable-pip-version-check \
       --root-user-action=ignore -c constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test test-quick drill servers check dist docs bench bench-pipeline schema pictures format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.run ## start a server that keeps its messages in ./data; Ctrl-C stops it
	@$(BIN)/penstock serve --data $(DATA) $(ARGS)

test: $(VENV)/.dev servers ## run all tests, against servers of their own (PostgreSQL, MariaDB, RabbitMQ, Redis) and in Chromium
	@$(BIN)/python -m pytest -n $(JOBS) $(ARGS) $(TESTS)

test-quick: $(VENV)/.dev ## run the tests that need only one process and SQLite
	@$(BIN)/python -m pytest --quick -n $(JOBS) $(ARGS) $(TESTS)

drill: $(VENV)/.dev ## fail over a PostgreSQL cluster (Patroni, etcd, HAProxy, PgBouncer) under a node that sends
	@$(BIN)/python -m tests.support.postgres_binaries
	@$(BIN)/python -m tests.drill

servers: $(VENV)/.dev # install whatever `make test` starts and this machine does not have
	@$(BIN)/python -m tests.support.postgres_binaries
	@$(BIN)/python -m tests.support.mariadb
	@$(BIN)/python -m tests.support.rabbitmq
	@$(BIN)/python -m tests.support.pgbouncer
	@$(BIN)/python -m tests.support.redis_server
	@$(BIN)/python -m tests.support.chromium
	@$(BIN)/python -m tests.support.spark_cache

check: $(VENV)/.dev ## check formatting, lint, types, import rules and architecture rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q tests/architecture

dist: $(VENV)/.dev ## build the sdist and, from it, the wheel, into dist/
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --quiet .

docs: $(VENV)/.dev ## build the documentation as a site, into build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --config-file site/mkdocs.yml

schema: $(VENV)/.dev ## regenerate the schemas of all databases, after a new migration
	@$(BIN)/python -m tests.support.postgres_binaries
	@$(BIN)/python -m tests.support.mariadb
	@$(BIN)/python -m tests.store.schema

pictures: $(VENV)/.dev ## retake the pictures of docs/console.md
	@$(BIN)/python -m tests.support.chromium
	@$(BIN)/python -m tests.console.pictures $(ARGS)

bench: $(VENV)/.bench ## measure this tree and its peers
	@$(BIN)/python -m bench $(ARGS)

bench-pipeline: $(VENV)/.bench ## measure the pipeline on Spark beside DuckDB and Polars
	@$(BIN)/python -m bench.pipeline $(ARGS)

format: $(VENV)/.dev ## format the code and repair what ruff can repair
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the environment and all caches; the data folder stays
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- environments

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "Installing Penstock into $(VENV) …"
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "Installing Penstock and its test tools into $(VENV) …"
	@$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)/.made
	@echo "Installing Penstock and its peers into $(VENV) …"
	@$(PIP) -e '.[bench]'
	@touch $@ $(VENV)/.run

$(VENV)/.made:
	@recent='import sys; sys.exit(sys.version_info < (3, 11))'; \
	recent_only=; \
	for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	    $$python -c "$$recent" 2>/dev/null || continue; \
	    recent_only=$$python; \
	    $$python -c 'import ensurepip, venv' 2>/dev/null || continue; \
	    rm -rf $(VENV) && $$python -m venv $(VENV) && touch $@; \
	    exit; \
	done; \
	if [ -n "$$recent_only" ]; then \
	    echo "$$recent_only has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; \
	else \
	    echo "Penstock needs Python 3.11 or newer, and found none." \
	         "Install one, or name it: make PYTHON=/path/to/python3" >&2; \
	fi; \
	exit 1
