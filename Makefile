# SPDX-License-Identifier: MIT
# For people: what to type. The build itself is CMake (CMakeLists.txt, CMakePresets.json).
BUILD := build/release

help: ## This list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Install missing packages, build everything (build/release)
	@cmake/setup.sh build
	@test -f $(BUILD)/build.ninja || cmake --preset release -DLAPSE_TESTS=OFF -DLAPSE_BENCH=OFF > /dev/null
	@cmake --build $(BUILD) | tail -n 1

test: ## Install missing packages, build and run all tests but the long ones
	@cmake/setup.sh build demo test
	@cmake --preset release -DLAPSE_TESTS=ON > /dev/null
	@cmake --build $(BUILD)
	@cd $(BUILD) && ctest --output-on-failure -LE long

.PHONY: help build test
