# The front door: each target installs what it misses, then hands over to CMake or to a script.
# One configuration alone: make test-asan; one suite alone: ctest --preset release -L unit.

TEST_PRESETS := release debug2 secure asan tsan clang musl aarch64

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build test packages site soak demo recipes pictures \
  bench bench-quick mutants lint format clean help

build: ## Build the libraries into build/lib
	@tools/bootstrap build
	@tools/build release libraries

test: ## Build and run the tests, in every configuration
	@tools/bootstrap build lint test
	@python3 tools/skips.py forget
	@for preset in $(TEST_PRESETS); do $(MAKE) --no-print-directory run-$$preset || exit; done
	@python3 tools/skips.py tell

test-%: ## Build and run the tests of one preset, such as test-asan
	@tools/bootstrap build lint test
	@python3 tools/skips.py forget
	@$(MAKE) --no-print-directory run-$*
	@python3 tools/skips.py tell

run-%:
	@tools/build $*
	@printf '== tests: %s\n' $*
	@ctest --preset $* --output-junit "$(CURDIR)/build/skips/$*.xml"

demo: ## Redis on tslab and on its peers, memory with and without epochs, a leak that is caught
	@tools/bootstrap build demo
	@tools/build release libraries lifetime_mix synthetic_bench
	@printf '== build: the command tslab\n'
	@tools/tslab/build
	@python3 tools/demo.py

recipes: ## Servers on tslab and on its peers, from the commands of docs/recipes: its tables
	@tools/bootstrap build recipes runner
	@tools/build release libraries
	@.venv/bin/python bench/recipes.py

pictures: ## The pictures of the documents: memory with and without epochs, the page, tslab top
	@tools/bootstrap build demo page-test runner
	@tools/build release libraries lifetime_mix synthetic_bench
	@tools/tslab/build
	@.venv/bin/python tools/pictures.py

bench: ## Measure tslab beside its peers: every table, the charts, docs/results.md
	@tools/bootstrap build bench runner
	@tools/build release libraries bench/all
	@bench/run_all.sh

bench-quick: ## The same with small runs, into build/bench-quick
	@tools/bootstrap build bench runner
	@tools/build release libraries bench/all
	@bench/run_all.sh --quick

packages: ## The Debian packages, into build/packages, and Conan's: built, linted, installed, used
	@tools/bootstrap build command packages
	@tools/packages

soak: ## What takes too long for make test: 100,000 forks, the whole model, stress in full, and more
	@tools/bootstrap build soak test
	@tools/build release libraries stress_fork_anywhere fork_steps_test model example_server
	@tools/soak

site: ## The documentation site, into build/site
	@tools/bootstrap lint
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --quiet

mutants: ## Change the sources in many places, one at a time: the tests must notice
	@tools/bootstrap build lint
	@.venv/bin/python tools/mutants.py

lint: ## Check layers, labels, format, types and scripts
	@tools/bootstrap build lint
	@tools/lint

format: ## Format the C, C++ and Python sources in place
	@tools/bootstrap lint
	@tools/format

clean: ## Remove what the build made; the Python environment stays
	rm -rf build

help: ## List the targets
	@sed -n 's/^\([a-z%-]*\):.*## /\1:/p' $(MAKEFILE_LIST) | \
	  while IFS=: read -r target text; do printf '  make %-11s %s\n' "$$target" "$$text"; done
