# Everything a developer or CI runs. It needs make and a Python of version 3.11 or later, nothing else.

VENV ?= .venv
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$name"; break; }; done)
BIN := $(VENV)/bin

# A stamp carries the hash of the requirements it stands for: edited requirements are installed anew.
RUNTIME := $(VENV)/.runtime-$(shell cat requirements.txt | cksum | cut -d' ' -f1)
DEVELOP := $(VENV)/.develop-$(shell cat requirements.txt requirements-dev.txt | cksum | cut -d' ' -f1)

# The demo has a database, files and a key of its own and sends nothing, whatever .env says.
DEMO := DEBUG=1 PROTEGE_DEMO=1 PROTEGE_TASKS=immediate DATABASE_URL=sqlite:///demo/demo.sqlite3 PROTEGE_FILES_ROOT=demo/files \
	SECRET_KEY=known-to-everybody-for-the-demo-only EMAIL_URL=memorymail:// HTTPS=0
# For commands that only look at the code.
CHECK := DEBUG=0 HTTPS=1 SECRET_KEY=sK4-only-for-checks-2vQ9xLm7RzTb3NwYc8HdJf5GpAe6UoXi1B DATABASE_URL=sqlite:///:memory:

.DEFAULT_GOAL := help
.PHONY: help install demo serve test lint types layers migrations deploycheck schema suite clean

help: ## List the targets
	@echo "Usage: make TARGET"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

install: $(DEVELOP) ## Build .venv with everything for development

demo: $(RUNTIME) ## Hand three mails to a demo persona and show the answers, without network or keys
	@mkdir -p demo
	@$(DEMO) $(BIN)/python manage.py demo

serve: $(RUNTIME) ## Serve the demo's admin and API on http://127.0.0.1:8000/
	@test -e demo/demo.sqlite3 || $(MAKE) --no-print-directory demo
	@$(DEMO) EMAIL_URL=consolemail:// $(BIN)/python manage.py runserver 127.0.0.1:8000

test: lint types layers migrations deploycheck schema suite ## Run all checks, then the tests on SQLite and PostgreSQL

lint: $(DEVELOP) ## Style of the code (ruff)
	$(BIN)/ruff check

types: $(DEVELOP) ## Types (mypy)
	$(BIN)/mypy

layers: $(DEVELOP) ## Who may import whom (import-linter)
	$(BIN)/lint-imports

migrations: $(DEVELOP) ## No model change without its migration
	$(CHECK) $(BIN)/python manage.py makemigrations --check --dry-run

deploycheck: $(DEVELOP) ## Django's deployment checks on the settings of production
	$(CHECK) $(BIN)/python manage.py check --deploy --fail-level WARNING

schema: $(DEVELOP) ## The OpenAPI schema, without warnings
	$(CHECK) $(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null

suite: $(DEVELOP) ## Only the tests, on SQLite and PostgreSQL
	$(BIN)/python tests/run.py

clean: ## Remove .venv, the demo and all caches
	rm -rf $(VENV) demo build .coverage* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or later was found. Name one: make install PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): | $(BIN)/python
	$(BIN)/python -m pip install --quiet -r requirements.txt
	@rm -f $(VENV)/.runtime-* && touch $@

$(DEVELOP): | $(BIN)/python
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	@rm -f $(VENV)/.runtime-* $(VENV)/.develop-* && touch $(RUNTIME) $@
