# `make demo` and `make test` are all a newcomer needs. Everything else is for those who change the project.
# Caches (pip's wheels, models) live outside the checkout, so that a second clone is cheap.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
READY  := $(VENV)/ready
# The index has no Linux wheel of llama-cpp-python, so pip compiles it once and keeps the wheel in its cache.
# Without LLAVA: no images here. Without AMX: compiled by Debian 12's compiler its code ends in a segmentation fault
# (github.com/ggml-org/llama.cpp/pull/26954).
export CMAKE_ARGS ?= -DLLAVA_BUILD=OFF -DCMAKE_C_FLAGS=-U__AMX_INT8__ -DCMAKE_CXX_FLAGS=-U__AMX_INT8__
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc 2>/dev/null || echo 2)

# One more than there are cores: many tests wait for a process or a device.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
PYTEST = $(PY) -m pytest --numprocesses $(WORKERS) --dist worksteal --ignore=tests/device --ignore=tests/web

.DEFAULT_GOAL := help
.PHONY: help demo quick test test-gbnf test-slow serve-test mcp-test remote-test host-test prove agentdojo crash-test device-test device-test-linux web-test lint accuracy accuracy-gate bench-gate clean

-include cross/cross.mk
-include firmware_host/firmware.mk

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml
	@command -v c++ >/dev/null || { echo "A C++ compiler is needed once, to build llama.cpp: apt-get install g++"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; say which with PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "Installing; the first time llama.cpp is compiled, which takes some minutes."
	$(PY) -m pip install --quiet --editable '.[dev,serial,remote,outlines,bench]'
	@touch $@

demo: $(READY) ## Set everything up and run the main job on the real model
	@$(PY) -m edgeagent model pull smollm2
	@$(PY) -m examples.demo

quick: $(READY) ## Every test that needs no model; under a minute on two cores
	$(PYTEST) -m "not model and not slow and not long and not deep"

test: $(READY) ## Set everything up and run the tests
	@$(PY) -m edgeagent model pull smollm2
	$(PYTEST) -m "not slow and not deep"

test-gbnf: $(READY) ## The tests that need the model once more, held by llama.cpp's own grammars
	@$(PY) -m edgeagent model pull smollm2
	EDGEAGENT_ENGINE=gbnf $(PYTEST) -m "model and not slow"

serve-test: $(READY) ## Ask a real server as OpenAI's client, a conformance probe and Home Assistant do; prints a table
	@$(PY) -m edgeagent model pull smollm2
	@$(PY) -m tests.doors.http.clients $(SERVE_TEST)

mcp-test: $(READY) ## Let an agent use four servers of MCP that nobody here wrote, and a client use an agent
	@$(PY) -m edgeagent model pull smollm2
	@PYTHON=$(abspath $(PY)) tests/driver/mcp/setup.sh
	MCP_TEST=1 $(PY) -m pytest tests/driver/mcp tests/doors/mcp -m "" -rP

remote-test: $(READY) ## Ask real servers on loopback and hostile ones; look for keys and for what must not leave
	@$(PY) -m edgeagent model pull smollm2
	@$(PY) -m pip install --quiet 'llama-cpp-python[server]' xllamacpp
	$(PY) -m pytest tests/driver/remote tests/doors/cli/test_remote.py tests/runtime/test_models.py tests/runtime/test_stays_here.py

host-test: $(READY) ## Drive the doors for programs with peers that nobody here wrote: ACP's Python SDK, acpx
	@PYTHON=$(abspath $(PY)) tests/doors/acp/setup.sh
	HOST_TEST=1 $(PY) -m pytest tests/driver/test_peer.py tests/doors/test_stdio.py tests/doors/acp tests/doors/host

prove: $(READY) ## Compare the rules' monitors with their definition, exhaustively; says how many verdicts
	@$(PY) -m tests.policy.prove

device-test: $(READY) ## Drive real firmware in emulators; the last line counts targets, checks, failures
	@PYTHON=$(abspath $(PY)) tests/device/setup.sh --optiboot
	@$(PY) -m pytest tests/driver/line/test_file_sending.py # whose receivers, rx and rb, setup.sh has brought
	@$(PY) -m pytest tests/device -m "device and not slow"

device-test-linux: $(READY) ## The same with a whole Linux for ARM, which takes some seconds to boot
	@PYTHON=$(abspath $(PY)) tests/device/setup.sh --linux
	@$(PY) -m pytest tests/device -m "device and slow"

web-test: $(READY) ## Drive the page of `edgeagent serve` in Chromium, on a phone and beside it; PICTURES=FOLDER keeps pictures
	@$(PY) -m edgeagent model pull smollm2
	@PYTHON=$(abspath $(PY)) tests/web/setup.sh
	@PICTURES=$(PICTURES) $(PY) -m pytest tests/web

agentdojo: $(READY) ## Attack the rules with AgentDojo's 609 pairs and our own 216 (installs AgentDojo once)
	@$(PY) -m bench.agentdojo

test-slow: $(READY) ## The long runs: of the property tests, and of the model
	@$(PY) -m edgeagent model pull smollm2
	$(PYTEST) --hypothesis-profile wide -m "slow or deep"

crash-test: $(READY) ## Kill, cut, flip and starve sessions in some 40,000 ways; the last line counts
	@$(PY) -m tests.crash

lint: $(READY) ## Style and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

accuracy: $(READY) ## Ask every request of docs/models.md; most of an hour on two idle cores
	@$(PY) -m edgeagent model pull smollm2
	@$(PY) -m edgeagent model pull gemma3-270m
	@$(PY) -m bench.accuracy.full --page docs/models.md

accuracy-gate: $(READY) ## Is the right call made as often as it was? 56 requests, held to a floor
	@$(PY) -m edgeagent model pull smollm2
	@$(PY) -m bench.accuracy.gate $(ACCURACY_GATE)

bench-gate: $(READY) ## Measure every budget of bench/budgets.json and fail on the first that is passed
	@$(PY) -m edgeagent model pull smollm2
	$(PY) -m bench.gate

clean: ## Remove the virtual environment and everything that was built here
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
