# The front door: each target installs what it misses, then hands over to CMake or to a script.
# One configuration alone: make test-asan; one suite alone: ctest --preset release -L unit.

TEST_PRESETS := release debug2 secure asan tsan clang musl

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build test demo bench bench-quick lint format clean help

build: ## Build the libraries and programs into build/lib and build/bin
	@tools/bootstrap build
	@tools/build release

test: ## Build and run every test, in every configuration
	@tools/bootstrap build lint test
	@for preset in $(TEST_PRESETS); do $(MAKE) --no-print-directory run-$$preset || exit; done

test-%: ## Build and run the tests of one preset, such as test-asan
	@tools/bootstrap build lint test
	@$(MAKE) --no-print-directory run-$*

run-%:
	@tools/build $*
	@printf '\n== tests: %s\n' $*
	@ctest --preset $*

demo: ## Redis on tslab and on its peers, memory with and without epochs, a leak that is caught
	@tools/bootstrap build demo
	@tools/build release
	@tools/tslab/build
	@python3 tools/demo.py

bench: ## Measure tslab beside its peers: every table, the charts, docs/results.md
	@tools/bootstrap build bench runner
	@tools/build release
	@bench/run_all.sh

bench-quick: ## The same with small runs, into build/bench-quick
	@tools/bootstrap build bench runner
	@tools/build release
	@bench/run_all.sh --quick

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
