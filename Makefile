# SPDX-License-Identifier: MIT
# For people: what to type. The build itself is CMake (CMakeLists.txt, CMakePresets.json).
BUILD := build/release
DEMO  := demo

help: ## This list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Install missing packages and build the library and the command into build/release
	@cmake/setup.sh build
	@test -f $(BUILD)/build.ninja || cmake --preset release -DLAPSE_TESTS=OFF -DLAPSE_BENCH=OFF >/dev/null
	@cmake --build $(BUILD) --target lapse lapse_shared lapse_static

demo: build ## Build, profile a real program (sqlite3) and leave a flame graph in demo/
	@cmake/setup.sh demo
	@examples/demo.sh $(BUILD) $(DEMO)

# Tests that only compute run two at a time, the others alone (tests/CMakeLists.txt). Many measure real
# programs on a machine that others use too: a miss is tried once more.
test: ## Install missing packages, build, and run all tests but the long ones
	@cmake/setup.sh build demo test
	@cmake --preset release -DLAPSE_TESTS=ON -DLAPSE_BENCH=ON >/dev/null
	@cmake --build $(BUILD)
	@cd $(BUILD) && ctest -j2 --output-on-failure --timeout 300 --repeat until-pass:2 -LE long

test-long: test ## The tests that take more than a minute each or need big packages
	@cmake/setup.sh long
	@cd $(BUILD) && ctest --output-on-failure -L long

bench: ## Build and run the benchmarks; tables to stdout
	@cmake/setup.sh build demo test bench
	@cmake --preset release -DLAPSE_TESTS=ON -DLAPSE_BENCH=ON >/dev/null
	@cmake --build $(BUILD)
	@bench/run.sh $(BUILD)

fuzz: ## Run every fuzz target (SECONDS_EACH=60)
	@cmake/setup.sh build test
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz --target fuzz_targets
	@tests/fuzz/run.sh build/fuzz $(or $(SECONDS_EACH),60)

stress: ## Tests under ThreadSanitizer, AddressSanitizer and UBSan
	@cmake/setup.sh build demo test
	@cmake --preset tsan -DLAPSE_BENCH=OFF >/dev/null && cmake --build build/tsan
	@cd build/tsan && ctest --output-on-failure -L stress
	@cmake --preset asan -DLAPSE_BENCH=OFF >/dev/null && cmake --build build/asan
	@cd build/asan && ctest --output-on-failure -L 'unit|golden|fuzz' -LE long

model: ## Check the models of ring and session in their large configuration
	@cmake/setup.sh test
	@cmake --preset release -DLAPSE_TESTS=ON >/dev/null && cmake --build $(BUILD) --target model

install: build ## Install (PREFIX=/usr/local, DESTDIR)
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(or $(PREFIX),/usr/local)

deb: build ## Make a Debian package in build/release
	@cmake/setup.sh deb
	@cd $(BUILD) && cpack -G DEB

clean: ## Remove build/ and demo/
	@rm -rf build $(DEMO)

.PHONY: help build demo test test-long bench fuzz stress model install deb clean
