# Needs python3, pip and make; everything else lands in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEED ?= 0

.PHONY: demo test test-all test-extras lint format bench bench-device examples docs dist clean

$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.base
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(VENV)/.base ## train DQN on CartPole, then evaluate what it learned
	$(BIN)/triax train dqn CartPole-v1 --seed $(SEED) --run-dir runs/demo-$(SEED) --overwrite
	$(BIN)/triax evaluate runs/demo-$(SEED)

test: $(VENV)/.dev ## everything that takes under 20 s a test
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-all: $(VENV)/.dev ## also the long learning runs
	$(BIN)/pytest -n 2 --dist worksteal

$(VENV)-extras/.done: pyproject.toml
	$(PYTHON) -m venv $(VENV)-extras
	$(VENV)-extras/bin/pip install --quiet --disable-pip-version-check -e '.[dev,gymnax,mujoco]'
	touch $@

test-extras: $(VENV)-extras/.done ## against gymnax, brax and MuJoCo Playground, in a .venv-extras of their own
	$(VENV)-extras/bin/pytest tests/extras -m "not slow"

examples: $(VENV)/.dev ## each script of examples/ with a tiny budget
	$(BIN)/pytest -n 2 --dist worksteal tests/examples

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## each path beside a bare jitted call that does the same work
	$(BIN)/python benchmarks/host.py
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/unroll.py
	$(BIN)/python benchmarks/distributed.py

bench-device: $(VENV)-extras/.done ## whole training runs beside programs written by hand, in .venv-extras
	$(VENV)-extras/bin/python benchmarks/device.py

$(VENV)-docs/.done: pyproject.toml
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

docs: $(VENV)-docs/.done ## docs/_build/html, tutorials executed; a warning is an error
	$(VENV)-docs/bin/sphinx-build -W --keep-going -q -E -b html docs docs/_build/html

dist: $(VENV)/.dev ## the wheel and the source distribution: see RELEASING.md
	rm -rf dist
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) build dist
