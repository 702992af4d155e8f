# Each target makes the environment it needs: .venv, filled from requirements.lock.

# The first Python >= 3.11 that runs; name another with `make PYTHON=/path/to/python`.
PYTHON ?= $(firstword $(foreach p,python3.13 python3.12 python3.11 python3 python,\
  $(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $(p))))
VENV := .venv
# Policies that are compiled ahead with the engine, but for `make demo`, which compares them and shows a first table sooner so. Others
# take seconds at their first use; with ALL=1 they are compiled, too: workers of the tests would compile the same ones side by side.
COMPILED := fifo sjf srtf tiresias themis lucid gavel
ifdef ALL
COMPILED :=
endif
BIN := $(VENV)/bin
READY := $(VENV)/ready
CODE := $(VENV)/compiled
NOTEBOOK ?= notebooks/00_quickstart.ipynb
BENCH ?= engine
TESTS ?=
SOURCE ?=
QUICK ?=
STALE ?=
SLIP ?=
WORKERS ?=
STREAMS ?=
OPTIONS ?=
FOLDER ?=
PYTHONS ?=
EXTRAS ?=
REPOSITORY ?=

# A virtual environment holds absolute paths: one that moved with its folder, or lost its Python, is made again.
ifneq ($(shell $(BIN)/python -c 'print(open("$(READY)").read().strip())' 2>/dev/null),$(CURDIR))
$(shell rm -f $(READY) $(CODE))
endif

.PHONY: help referee demo picture test answers faults browser wheels dist binder lint format lab app bench published reference docs lock clean distclean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(READY) ## compare the policies on a generated week: a table, and report.html
	@$(BIN)/python -m gpuschedlab.sim.setup.ahead 2>/dev/null & $(BIN)/gpuschedlab compare

lab: $(CODE) ## JupyterLab on the first notebook
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) $(NOTEBOOK)

app: NOTEBOOK = notebooks/app.ipynb
app: $(CODE) ## the Explorer as a page, on this machine only
	$(BIN)/voila --VoilaConfiguration.progressive_rendering=True --Voila.ip=127.0.0.1 --no-browser $(NOTEBOOK)

test: $(CODE) ## tests, then lint (ALL=1: those in a browser, slow ones and all seeds as well; TESTS="tests/cli -k name" for some)
	$(if $(ALL),GPUSCHEDLAB_ALL_TESTS=1) env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n $(or $(WORKERS),4) --dist loadgroup $(TESTS)
	$(MAKE) --no-print-directory lint

picture: $(CODE) ## README's pictures and numbers, as the code prints them now (needs a Chromium)
	$(BIN)/python docs/_ext/readme.py

answers: $(CODE) ## write the tables of golden answers anew; read git diff then (TESTS="tests/traces" for some)
	GPUSCHEDLAB_REMAKE_ANSWERS=1 $(BIN)/python -m pytest -q -n 0 $(shell find $(or $(TESTS),tests) -name 'test_golden_*.py')

faults: $(CODE) ## plant faults over the whole package and see which tests catch them (SEED=1 COUNT=20 OPTIONS=--table)
	$(BIN)/python reproduce/faults/plant.py --seed $(or $(SEED),0) --count $(or $(COUNT),20) $(OPTIONS)

browser: $(CODE) ## long checks of notebooks: in a real browser, on a busy machine (TIMES: reopenings of each), and of their text
	TIMES=$(or $(TIMES),20) $(BIN)/python -m pytest -n 0 -m long tests/browser tests/notebooks/test_notebooks.py

wheels: $(READY) ## the wheel in empty environments: each extra alone, on each Python (PYTHONS="3.12 3.13" EXTRAS="core plots": some)
	PYTHONPATH=$(CURDIR):$(CURDIR)/tests $(BIN)/python -m wheels $(if $(PYTHONS),--pythons $(PYTHONS)) $(if $(EXTRAS),--extras $(EXTRAS))

dist: export GITHUB_REPOSITORY := $(or $(REPOSITORY),$(GITHUB_REPOSITORY))
dist: $(READY) ## sdist, wheel, and wheel with machine code for this platform into dist/ (REPOSITORY=OWNER/NAME: with its addresses)
	rm -rf dist build/machine_code
	$(BIN)/python -m hatchling build --directory dist
	PYTHONPATH=$(CURDIR):$(CURDIR)/tests $(BIN)/python -m machine_code build/machine_code
	GPUSCHEDLAB_MACHINE_CODE=build/machine_code $(BIN)/python -m hatchling build --target wheel --directory dist

binder: $(READY) ## what Binder builds, in a clean tree of the last commit: its seconds and MB
	PYTHONPATH=$(CURDIR):$(CURDIR)/tests $(BIN)/python -m binder

REFEREE = $(if $(SETTINGS),-m reproduce.papers.clusters.slurmctld.settings $(SETTINGS),$(if $(DIFF),-m reproduce.papers.clusters.slurmctld.pairs "$(DIFF)",data/slurm/make.py $(STREAMS)))
referee: $(READY) ## ask a real Slurm (root, Debian's packages): record streams anew (STREAMS="busy wide"), SETTINGS=50, or DIFF="weight_age=0"
	PYTHONPATH=$(CURDIR):$(CURDIR)/tests $(BIN)/python $(REFEREE) $(OPTIONS)

lint: $(READY) ## ruff: rules and format, of code and notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY) ## let ruff put right what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(CODE) ## measure against the budgets (BENCH=engine, OPTIONS="--beside ../other"; BENCH=: which there are)
	PYTHONPATH=$(CURDIR):$(CURDIR)/tests:$(CURDIR)/notebooks $(BIN)/python -m reproduce.budgets $(BENCH) $(OPTIONS)

published: $(CODE) ## published numbers beside ours (SOURCE=sia; QUICK=1: a sample; STALE=1: rows of older code; SLIP=optimus-youngest; OPTIONS="--csv FOLDER")
	PYTHONPATH=$(CURDIR):$(CURDIR)/tests:$(CURDIR)/notebooks $(BIN)/python $(if $(SLIP),-m reproduce.published.referee $(SLIP),-m reproduce.published $(SOURCE)) $(if $(QUICK),--quick) $(if $(STALE),--stale) $(if $(WORKERS),--workers $(WORKERS)) $(OPTIONS)

reference: $(READY) ## reference data of tests and benchmarks, from public artifacts (FOLDER=where; then GPUSCHEDLAB_DATA_DIR names it)
	PYTHONPATH=$(CURDIR):$(CURDIR)/tests $(BIN)/python -m reproduce.reference $(FOLDER) $(OPTIONS)

docs: $(CODE) ## the documentation site into build/docs (GPUSCHEDLAB_DOCS_EXECUTE=0: without executing cells)
	$(BIN)/python docs/_ext/assemble.py
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html -c docs -d build/docs-trees build/docs-source build/docs
	@echo "build/docs/index.html"

# The stamp comes last, so that an interrupted installation is seen and begun again from nothing.
$(READY): requirements.lock pyproject.toml postBuild
	@test -n "$(PYTHON)" || { echo "make: found no Python >= 3.11; install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $(PYTHON) is not a Python >= 3.11; name another: make PYTHON=/path/to/python" >&2; exit 1; }
	@test -e $@ || { echo "Making $(VENV) with $(PYTHON) (once; two minutes, 2.2 GB)"; \
	  while sleep 5; do echo "  an empty environment is made"; done & words=$$!; \
	  "$(PYTHON)" -m venv --clear $(VENV); made=$$?; kill $$words; exit $$made; }
	@rm -f $@
	@PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)" ./postBuild packages
	@echo "$(CURDIR)" > $@

$(CODE): $(READY)
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m compileall -q gpuschedlab reproduce notebooks || true
	@$(BIN)/gpuschedlab warm $(COMPILED) > /dev/null || echo "make: not compiled ahead; the first simulation will take longer" >&2
	@touch $@

lock: $(READY) ## resolve pyproject.toml again into requirements.lock (UPGRADE=--upgrade for newer versions)
	$(BIN)/uv pip compile pyproject.toml --extra all --extra causalnex --group build --group causalnex --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock" $(UPGRADE) --quiet --output-file requirements.lock

clean: ## remove caches and results
	rm -rf build dist artifacts runs report.html .pytest_cache .ruff_cache .hypothesis .benchmarks
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv as well
	rm -rf $(VENV)
