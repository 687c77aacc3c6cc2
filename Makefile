# The developer's commands. CI calls these; nothing is done elsewhere that isn't here.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# Builds are kept outside the checkout, so that a fresh clone reuses them.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lifecycle-reaper/target

# Checkouts share these builds, and cargo tells them apart by nothing but time: the first build of another checkout
# begins with our own crate anew.
own := $(CARGO_TARGET_DIR)/checkout
needs_own := demo check test-pure test-rust test-emulator sim fuzz bench instructions mutants check-infra plan why preflight sweep package deploy pictures

.DEFAULT_GOAL := help
.PHONY: help demo test test-pure test-rust test-emulator check sim fuzz bench instructions mutants check-infra
.PHONY: plan why preflight sweep deploy package lint-deps check-docs pictures

$(needs_own): own
.PHONY: own
own:
	@mkdir -p "$(CARGO_TARGET_DIR)"
	@if [ "$$(cat "$(own)" 2>/dev/null)" != "$(CURDIR)" ]; then touch src/lib.rs; echo "$(CURDIR)" > "$(own)"; fi

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## the main job on a local AWS: a manager terminates, is drained, released and cleaned up after
	tests/emulator/python -m emulator.demo

test: check test-rust test-emulator ## everything but infra and benchmarks

check: ## format and lints, warnings are errors
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings

test-pure: ## the pure core alone: seconds after a change
	cargo test --locked --test it -- pure:: properties::

test-rust: ## all Rust tests, 200 simulated histories among them
	cargo test --locked

test-emulator: ## the local AWS's own tests, and the real binary on it
	tests/emulator/run

sim: ## 10,000 simulated histories; SEEDS=n for another number, SEED=n replays one with its timeline
	SEEDS=$${SEEDS:-10000} cargo test --locked --test it -- --ignored --nocapture sim_many

fuzz: ## arbitrary payloads against the whole function, with the fake AWS behind it; SECONDS=60
	tests/fuzz/run $(or $(SECONDS),60)

bench: ## the function beside the least a Lambda function can cost and beside Python: cold starts, memory, passes
	tests/bench/run

instructions: ## the planner's instructions under callgrind, and the difference to the committed baseline
	tests/bench/instructions

mutants: ## plants the predecessors' defects one by one and shows what catches each
	tests/mutants/run

check-infra: ## Terraform, SAM, policies, drain document, all offline
	infra/check

# The command line, from this checkout. Settings come from the function's variables in the environment, or from here.
reaper = cargo run --quiet --locked --bin lifecycle-reaper --
settings = $(if $(GROUPS),--groups "$(GROUPS)") $(if $(EXECUTOR),--executor-name "$(EXECUTOR)")

plan: ## what would be deleted in the account of your AWS credentials, and why; GROUPS=names, EXECUTOR=name
	@$(reaper) plan $(settings)

why: ## every rule that was tried for one resource; ID=id, GROUPS=names, EXECUTOR=name
	@$(reaper) why "$(ID)" $(settings)

preflight: ## what is in the way of MODE=enforce: permissions, agents, hooks, queues; GROUPS=names, EXECUTOR=name
	@$(reaper) preflight $(settings)

sweep: ## what is left before all of it is removed; with YES=1 deletes until nothing is; GROUPS=names, EXECUTOR=name
	@$(reaper) sweep $(if $(YES),--yes) $(settings)

package: ## the function as zips with checksums and bills of materials; ARCH="x86_64 arm64", OUT=folder
	python3 tests/package/package.py $(ARCH) $(if $(OUT),--out "$(OUT)") $(if $(TAG),--tag "$(TAG)")

# cargo-lambda would take an older build for the other architecture as it is: so the old one goes first.
deploy: ## new code into the function that exists, with cargo-lambda; FUNCTION=lifecycle-reaper ARCH=arm64
	@command -v cargo-lambda >/dev/null || { echo "make deploy needs cargo-lambda: pip install cargo-lambda" >&2; exit 1; }
	rm -rf "$(CARGO_TARGET_DIR)/lambda"
	cargo lambda build --release $(if $(filter x86_64,$(ARCH)),--x86-64,--arm64) --bin bootstrap --skip-target-check
	cargo lambda deploy --binary-name bootstrap "$(or $(FUNCTION),lifecycle-reaper)"

lint-deps: ## dependencies: licences, known flaws, duplicates, unused ones, the oldest Rust; ADVISORIES=required
	tests/package/lint-deps

check-docs: ## what the documents and workflows say, held against the repository; the package's tests
	python3 -m unittest discover -s tests/package
	python3 tests/docs/check.py

pictures: ## records the terminal pictures of docs/ anew
	python3 tests/recording/record.py --moving --show "make demo" docs/pictures/demo.svg -- make --no-print-directory demo
	python3 tests/recording/record.py --show "lifecycle-reaper plan" docs/pictures/plan.svg -- tests/recording/plan
