# Every word works on a fresh clone with Python 3.11+, make and git: what it needs is installed first.
#   make test PYTHON=python3.13 VENV=.venv-py313 PYTEST_ARGS="-k claim"
# With FLEXIQ_TEST_POSTGRES_URL or FLEXIQ_TEST_MARIADB_URL in the environment the tests run there too.

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
BENCH_ARGS ?=

python := $(VENV)/bin/python
extra = $(VENV)/.installed-$(1)
drivers = $(if $(FLEXIQ_TEST_POSTGRES_URL),$(call extra,postgres)) $(if $(FLEXIQ_TEST_MARIADB_URL),$(call extra,mysql))

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-all architecture lint format types imports migrations-check docs bench bench-million bench-sweep bench-flatness bench-memory clean

help: ## list these words
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(call extra,dev) $(call extra,docs) $(call extra,example) ## install all that a contributor needs, with the pre-commit hooks
	@$(python) -m pre_commit install

demo: $(call extra,example) ## import a real file with a real worker, step by step
	@$(python) example_project/manage.py demo

test: which = not slow
test: $(call extra,test) $(drivers) ## run the quick tests on SQLite, and on each database whose URL is given
	@$(run_tests)

test-slow: which = slow
test-slow: $(call extra,test) $(call extra,browser) $(drivers) ## run the slow tests only
	@$(run_tests)

test-all: which = slow or not slow
test-all: $(call extra,test) $(call extra,browser) $(drivers) ## run every test
	@$(run_tests)

architecture: $(call extra,test) ## check the rules that imports cannot show
	@$(python) -m pytest -q tests/test_architecture.py

lint: $(call extra,dev) ## check style and format
	@$(python) -m ruff check . && $(python) -m ruff format --check .

format: $(call extra,dev) ## mend style and format
	@$(python) -m ruff check --fix . ; $(python) -m ruff format .

types: $(call extra,dev) ## check the types
	@$(python) -m mypy

imports: $(call extra,dev) ## check who imports whom
	@$(VENV)/bin/lint-imports

migrations-check: $(call extra,test) ## check that no project's settings make migrations of ours
	@for setting in AUTO_FIELD=AutoField AUTO_FIELD=BigAutoField USE_TZ=False LANGUAGE_CODE=de; do \
	  echo "$$setting" && env "FLEXIQ_TEST_$$setting" DJANGO_SETTINGS_MODULE=tests.settings sh -c '\
	    $(python) -m django makemigrations --check --dry-run flexiq_django testapp && \
	    $(python) -m django check --tag models --fail-level WARNING' || exit 1; done

docs: $(call extra,docs) ## build the documentation into .docs-site
	@NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --strict --config-file .mkdocs.yml

bench: $(call extra,bench) ## measure, side by side with other queues
	@$(python) -m tests.benchmarks $(BENCH_ARGS)

bench-million: $(call extra,bench) ## measure how long reading takes among a million jobs
	@$(python) -m tests.benchmarks.million $(BENCH_ARGS)

bench-sweep: $(call extra,bench) ## measure what the first sweep of a million rows costs a busy worker
	@$(python) -m tests.benchmarks.sweep $(BENCH_ARGS)

bench-flatness: $(call extra,bench) ## measure claims beside a thousand and a million other jobs
	@$(python) -m tests.benchmarks.flatness $(BENCH_ARGS)

bench-memory: $(call extra,bench) ## measure the memory of a worker over a hundred thousand jobs
	@$(python) -m tests.benchmarks.memory $(BENCH_ARGS)

clean: ## remove what these words made
	rm -rf .venv* .docs-site .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find flexiq_django tests example_project -name __pycache__ -prune -exec rm -rf {} +

# core touches no database, and for some mechanics of processes and browsers any will do: on the first
define run_tests
set -f; failed=0; for url in "" $$FLEXIQ_TEST_POSTGRES_URL $$FLEXIQ_TEST_MARIADB_URL; do \
  FLEXIQ_TEST_DATABASE_URL="$$url" $(python) -m pytest -m "($(which))$${url:+ and not mechanics}" $${url:+--ignore=tests/core} $(PYTEST_ARGS) || failed=1; done; exit $$failed
endef

$(VENV)/.installed-%: pyproject.toml | $(python)
	@echo "installing flexiq-django[$*] into $(VENV) ..."
	@$(python) -m pip install -qq --disable-pip-version-check --editable '.[$*]'
	@touch $@

$(python):
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %s; name another: make PYTHON=python3.12" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)
