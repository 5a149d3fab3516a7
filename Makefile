# One set of targets, for people and for CI. PYTHON is the interpreter that makes the environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup demo lint type test bench bench-memory bench-tiling bench-estimate bench-residency bench-warm chaos chaos-short fuzz soak clean

# Made again only when the dependencies change.
$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "tensorq needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@# For the ONNX file in it: its headless OpenCV would take the place of rapidocr's.
	$(BIN)/python -m pip install --quiet --no-deps 'nudenet==3.4.2'
	@touch $@

setup: $(VENV)/.ready

demo: setup
	$(BIN)/python ops/demo/demo.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: setup
	$(BIN)/mypy producer engines worker ops

# Many tests wait for leases to lapse and servers to come back: two at a time, also on two cores.
test: setup
	$(BIN)/python -m pytest -n 2

# CHAOS passes flags on: make chaos CHAOS='--minutes 30 --jobs 120000 --seed 7'
chaos: setup
	$(BIN)/python ops/chaos/chaos.py $(CHAOS)

chaos-short: setup
	$(BIN)/python ops/chaos/chaos.py --minutes 0.5 --jobs 2000 $(CHAOS)

soak: setup
	$(BIN)/python ops/bench/memory.py --jobs 500000 --out out/soak.json $(SOAK)

# FUZZ passes flags on, as CHAOS does.
fuzz: setup
	$(BIN)/python ops/fuzz/fuzz.py $(FUZZ)

bench: setup
	$(BIN)/python ops/bench/bench.py

bench-memory: setup
	$(BIN)/python ops/bench/memory.py

bench-tiling: setup
	$(BIN)/python ops/bench/tiling/bench.py

bench-estimate: setup
	$(BIN)/python ops/bench/estimate.py

bench-warm: setup
	$(BIN)/python ops/bench/warm.py

bench-residency: setup
	$(BIN)/python ops/bench/residency/bench.py --json out/bench/residency.json

clean:
	rm -rf $(VENV) out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
