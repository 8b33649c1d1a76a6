# `make` lists the targets. PYTHON=python3.12 chooses the interpreter, ARGS="sessions list" goes to the program.

# Once .venv is there, the interpreter that made it is the default.
PYTHON ?= $(shell cat .venv/made-with 2>/dev/null || echo python3)
ARGS =
PYTEST_ARGS = -n 4 --dist worksteal
UV = uv
LOCK_ARGS =

BIN = .venv/bin
CODE = src tests bench tools
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $(LOCK_ARGS)
SET_UP = '$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is not Python 3.11 or newer: install that, or name it, as in make run PYTHON=python3.12" >&2; exit 1; }; \
	  '$(PYTHON)' tools/venv.py '$(PYTHON)'

PREFIX = $(HOME)/.local

.PHONY: help run install uninstall test check torture lint format schema bench lock clean ready-run ready-dev

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

run: ready-run ## start hermes; ARGS="sessions list" passes arguments
	@$(BIN)/hermes $(ARGS)

install: ready-run ## put hermes on your PATH: a link in ~/.local/bin; PREFIX=/usr/local for all users
	@'$(PYTHON)' tools/path_link.py install '$(PREFIX)'

uninstall: ## remove that link; sessions and settings stay
	@'$(PYTHON)' tools/path_link.py uninstall '$(PREFIX)'

test: lint ## run all checks and tests
	$(BIN)/python -m tests.support.fetch
	$(BIN)/pytest $(PYTEST_ARGS)

check: lint ## the quick part: style, types, and the tests of one process on SQLite, in less than two minutes
	$(BIN)/pytest -q $(PYTEST_ARGS) -k "not postgresql and not mysql" tests/unit tests/contract tests/sqlite tests/agent tests/interop

torture: ready-dev ## damage stores in every known way and count what is left, for ten minutes, then simulate 100 000 stories of the gateway; ARGS="--minutes 60" for longer
	$(BIN)/python -m tests.torture $(ARGS)

lint: ready-dev ## check format, style, types and the direction of imports
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo

format: ready-dev ## format the code and fix what can be fixed safely
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

schema: ready-dev ## write SQLite's schema.sql from its migrations, after adding one
	$(BIN)/python -m tools.schema

bench: ready-dev ## measure, next to other programs
	$(BIN)/python -m bench $(ARGS)

lock: ## resolve requirements/*.txt again (needs uv); LOCK_ARGS=--upgrade takes newer versions
	@command -v $(UV) >/dev/null || { echo "make lock needs uv: pip install uv, or UV=/path/to/uv" >&2; exit 1; }
	$(COMPILE) --output-file requirements/run.txt pyproject.toml requirements/run.in
	$(COMPILE) --output-file requirements/dev.txt --constraints requirements/run.txt pyproject.toml requirements/dev.in

clean: ## remove .venv and everything else that is generated
	rm -rf .venv .bench build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is what its environment was made from, word for word: one comparison tells whether there is anything to do.
ready-run:
	@{ echo '$(PYTHON)'; pwd -P; cat requirements/run.txt; echo ---; cat pyproject.toml; } \
	  | cmp -s - .venv/run.stamp && test -x $(BIN)/python || { $(SET_UP) run; }

ready-dev:
	@{ echo '$(PYTHON)'; pwd -P; cat requirements/run.txt requirements/dev.txt; echo ---; cat pyproject.toml; } \
	  | cmp -s - .venv/dev.stamp && test -x $(BIN)/python || { $(SET_UP) dev; }
