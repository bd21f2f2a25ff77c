# Everything a person or CI does here has a name below; `make` lists them.
PRESET ?= dev
FUZZ_S ?= 20

.DEFAULT_GOAL := help
.PHONY: help build test e2e images deps docker run check format asan tsan fuzz down clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: deps ## Build code-runner and code-runner-init (PRESET=dev|asan|tsan|fuzz|release)
	@scripts/build $(PRESET)

test: build images ## Run the unit and integration tests (PRESET=dev|asan|tsan)
	@scripts/install-packages node
	@scripts/with-docker ctest --preset $(PRESET)

e2e: build images ## Run the published clients against a server of ours
	@scripts/e2e

run: build images ## Start a server in the foreground, with a development token
	@scripts/serve

images: docker ## Build the image of every language that changed
	@scripts/build-images

docker: ## Start a Docker daemon if none answers
	@scripts/docker-up

down: ## Stop that daemon again, if we started it
	@scripts/docker-down

deps: ## Install the Debian packages that the build needs
	@scripts/install-packages build

asan: ## Run the tests under the address and undefined-behaviour sanitizers
	@$(MAKE) test PRESET=asan

tsan: ## Run the tests under the thread sanitizer
	@$(MAKE) test PRESET=tsan

fuzz: deps ## Fuzz each parser for FUZZ_S seconds (default 20)
	@scripts/build fuzz
	@scripts/fuzz $(FUZZ_S)

check: build ## Check formatting, scripts and C code
	@scripts/format --check
	@scripts/lint-scripts
	@scripts/tidy

format: ## Format the C code
	@scripts/format

clean: ## Remove everything that was built (the daemon and its images stay)
	rm -rf build tests/e2e/node_modules
