# Everything runs in .venv, which is made here with plain venv and pip; nothing else is needed.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
WORKERS ?= 2
COVERAGE ?= # --cov: what the tests leave out is printed at the end; counting takes a third more time

# MovieLens's ratings come with recbole. An extra cannot ask for it without PyTorch and ray, of which nothing is used.
MOVIELENS = $(PIP) --no-deps "recbole>=1.0.1" || \
	  echo "recbole could not be installed: coterie.datasets.movielens() is left out"

.DEFAULT_GOAL := help
.PHONY: help demo engine quick test test-browser thorough checked guarantees lowest lint style types stubs docs browser \
  bench lock clean

help: ## Show the targets
	@echo "make demo    set up .venv, then group Iris's 150 items live and write a picture (demo.png)"
	@echo "make quick   set up .venv, then run the tests of formulas, engine and methods: under a minute"
	@echo "make test    set up .venv, then lint, type check, build the documentation, run all tests but the slow ones;"
	@echo "             COVERAGE=--cov lists the lines that none of them runs (docs/TESTS.md)"
	@echo "make test-browser  install Chromium where there is none, and run the tests of the page in it"
	@echo "make thorough  the slow tests: kills, random requests, many runs, every example of the documentation"
	@echo "make checked the engine's tests on a build with asserts and sanitizers"
	@echo "make guarantees  the slow statistical tests of the guarantees, thousands of runs"
	@echo "make lint    the first part of make test: ruff, mypy, import-linter, clang-format, clang-tidy"
	@echo "make engine  build the engine (C++) anew as far as it has changed; all of the above begin with it"
	@echo "make stubs   src/coterie/_native.pyi, the engine's types, from what is built"
	@echo "make docs    the documentation as a site, in docs/_build/html (open index.html)"
	@echo "make lowest  the tests with the lowest versions that pyproject.toml allows, in .venv-lowest"
	@echo "make lock    requirements-dev.lock, the versions that development uses, anew"
	@echo "make bench   speed, memory and measurements needed, kept in bench/results/"
	@echo "make clean   remove .venv and everything that was generated"
	@echo "Another interpreter: make test PYTHON=python3.12; the locked versions: make test LOCKED=1"

# pip checks requires-python; a venv that could not be completed is removed so that the next run starts afresh.
$(PY):
	@command -v $(PYTHON) >/dev/null || { echo "there is no $(PYTHON): name another one, make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up $(VENV); this is done once, and takes some minutes"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "could not create $(VENV): on Debian and Ubuntu install python3-venv" >&2; exit 1; }

# What builds the engine, and a compiler if there is none. Without either it ends here, with a sentence.
# LOCKED=1 takes the versions of requirements-dev.lock.
PIP = $(PY) -m pip install --quiet --disable-pip-version-check $(if $(LOCKED),-c requirements-dev.lock)
$(VENV)/.coterie-build: pyproject.toml packaging/toolchain.py | $(PY)
	@$(PY) packaging/toolchain.py build > $(VENV)/build.txt
	@$(PIP) -r $(VENV)/build.txt
	@touch $@

# Always asked for, and nothing to do unless a source has changed: no test ever meets an engine of yesterday.
engine: $(VENV)/.coterie-build ## The engine, beside the sources
	@$(PY) packaging/build_here.py

# The stamps: reinstall only when pyproject.toml has changed since. What has to be built from source elsewhere is built
# as its authors say, Coterie itself with what is installed here.
define INSTALL
	$(PIP) -r $(VENV)/needed.txt
	$(PIP) --no-build-isolation --no-deps -e .
endef

# The demo has its own data, and draws.
$(VENV)/.coterie-run: pyproject.toml | engine
	@{ $(PY) packaging/toolchain.py core; $(PY) packaging/toolchain.py paper | grep ^matplotlib; } > $(VENV)/needed.txt
	$(INSTALL)
	@touch $@

$(VENV)/.coterie-dev: pyproject.toml | engine
	@$(PY) packaging/toolchain.py core paper cluster serve parquet docs dev > $(VENV)/needed.txt
	$(INSTALL)
	@$(MOVIELENS)
	@touch $@ $(VENV)/.coterie-run

demo: $(VENV)/.coterie-run engine ## Group Iris live
	$(VENV)/bin/coterie demo $(DEMO)

lint: style types build/tidy.ok ## Style, types, what imports what

style: $(VENV)/.coterie-dev engine
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/lint-imports
	$(VENV)/bin/clang-format --dry-run -Werror $$(find native -name '*.[ch]pp' -o -name '*.inc')

types: $(VENV)/.coterie-dev engine
	$(PY) -m mypy

# It takes a minute or two, so it is run again only when the engine or its rules have changed.
TIDY = $(VENV)/bin/clang-tidy --quiet -p build
build/tidy.ok: $(shell find native -name '*.[ch]pp' -o -name '*.inc') .clang-tidy $(VENV)/.coterie-dev | engine
	@echo "$(TIDY)"
	@find native -name '*.cpp' | xargs -P $(WORKERS) -n 4 $(TIDY)
	@touch $@

stubs: $(VENV)/.coterie-dev engine ## What mypy knows of the engine
	$(PY) packaging/stubs.py

# Always from scratch: pages that were read before would not repeat their warnings, which are errors.
docs: $(VENV)/.coterie-dev engine ## The documentation as a site
	@rm -rf docs/_build
	$(PY) -m sphinx -W --keep-going -n -q docs docs/_build/html

# The page is tested in a real browser: Debian's Chromium, or the one whose path is in COTERIE_CHROMIUM.
CHROMIUM = test -n "$$COTERIE_CHROMIUM" || command -v chromium >/dev/null || command -v chromium-browser >/dev/null
browser:
	@$(CHROMIUM) || \
	  { echo "installing Chromium, for the tests of the page"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium \
	      fonts-dejavu-core >/dev/null; } || \
	  { echo "the page's tests need Chromium: install it, or set COTERIE_CHROMIUM to its path" >&2; exit 1; }

# Every worker begins with a stretch of the tests and takes over from others at the end: what a module sets up is set
# up once. Bytecode is kept, whatever the environment says: without it half of the time goes to compiling the tests.
PYTEST = PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) --dist worksteal
QUICK = $(wildcard $(addprefix tests/,problem evidence engine croc methods oracles))

quick: $(VENV)/.coterie-dev engine ## Formulas, engine and methods against their oracles: no server, no browser
	$(PYTEST) -m "not guarantee and not slow" $(QUICK)

test: $(VENV)/.coterie-dev engine ## What must hold before a change is taken, in minutes
	@$(MAKE) --no-print-directory -j $(WORKERS) lint docs
	$(PYTEST) -m "not guarantee and not slow" $(COVERAGE)
	@echo "left out: slow tests (make thorough), the checked engine (make checked), guarantees (make guarantees)"
	@$(CHROMIUM) || echo "left out: the page in a browser, as there is no Chromium (make test-browser installs it)"

test-browser: $(VENV)/.coterie-dev engine browser ## The page in a real browser
	$(PYTEST) -m "browser and not slow" tests/web

thorough: $(VENV)/.coterie-dev engine browser ## The slow tests
	$(PYTEST) -m "slow and not guarantee" $(COVERAGE)

# The same tests on another build, in a copy of the package that is made of links (build/checked); src stays as it is.
# Leaks are not looked for: Python leaves much behind at its end.
CHECKED = tests/recording tests/engine tests/shortlist tests/croc/test_croc_equals_reference.py \
  tests/croc/test_croc_upkeep.py tests/croc/test_croc_workers.py tests/croc/test_croc_constants.py \
  $(wildcard tests/session/test_session*.py)
checked: $(VENV)/.coterie-dev engine ## The engine with asserts and sanitizers
	@$(PY) packaging/build_here.py --checked
	PYTHONPATH=$(CURDIR)/build/checked ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  LD_PRELOAD="$$(cat build/checked/preload)" $(PYTEST) -m "not guarantee" $(CHECKED)

# The tests marked guarantee; what they count becomes the table on docs/MEASURED.md.
guarantees: $(VENV)/.coterie-dev engine ## Error probabilities, by thousands of runs
	WORKERS=$(WORKERS) $(PY) -m bench guarantees
	$(PY) -m bench.page

lowest: browser ## The same tests with the lowest versions that are allowed
	PYTHON=$(PYTHON) WORKERS=$(WORKERS) .ci/lowest

bench: $(VENV)/.coterie-dev engine ## Measured side by side; parts and options in BENCH
	$(VENV)/bin/coterie bench $(BENCH)

# With every extra, for all systems and Pythons that are supported. The lines name versions only: no index, no paths.
lock: ## The versions that development uses, anew
	@test -x .venv-lock/bin/uv || { $(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet uv; }
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --all-extras --upgrade \
	  --no-annotate --no-emit-index-url --custom-compile-command "make lock" --output-file requirements-dev.lock pyproject.toml

clean: ## Remove what was generated
	rm -rf $(VENV) .venv-lowest .venv-lock build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache demo.png docs/_build .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
