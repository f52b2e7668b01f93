# What a person and CI run alike. `make` alone says what there is.

# One target folder outside the clone, shared by the host, the tests and the tools, so that RocksDB, librdkafka and wasmtime are
# compiled once. One profile (release) for everything, for the same reason.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pelton/target
export CARGO ?= cargo
# Threads of the tests that share the broker; each test runs hosts of its own.
TEST_THREADS ?= 3
# A scenario, or a part of its name: make scenarios ONLY=b27. Or a benchmark: make bench ONLY=echo
ONLY ?=

.PHONY: help build binaries plugins demo demo-clean test unit house kafka-room api guests test-binary integration scenarios bench lint deny
# Recipes build into one folder: one at a time.
.NOTPARALLEL:

help:
	@echo 'make build        bin/pelton and bin/plugins/NAME.wasm'
	@echo 'make demo         the order counter over 69,659 real purchases, on the embedded log: no Kafka needed'
	@echo 'make demo-clean   forgets what the demo kept'
	@echo 'make test         every test, those against a real Apache Kafka included (it is fetched, started and stopped)'
	@echo 'make scenarios    the crash and scenario tests alone; FULL=1: with the full number of kills; ONLY=b27: one of them'
	@echo 'make bench        the benchmarks of docs/benchmarks.md; ONLY=echo (count, latency, local, hostile, swap, boundary): one; FULL=1: the long one too'
	@echo 'make lint         rustfmt and clippy, warnings are errors'
	@echo 'make deny         licences, sources and bans of every dependency (installs cargo-deny where it is missing)'

build: binaries plugins

binaries:
	@scripts/setup build
	scripts/build-host bin/pelton

plugins: binaries
	scripts/build-plugins

demo: build
	scripts/demo

demo-clean:
	rm -rf state log

test: setup-test build house unit kafka-room api integration

.PHONY: setup-test
setup-test:
	@scripts/setup test

# No package is selected here or below: the same selection gives the same features, so no dependency is compiled twice.
unit: binaries
	$(CARGO) test --release --lib --bins

house:
	$(CARGO) test --release --test house

# The room that speaks to Kafka, against a real one.
kafka-room: binaries
	scripts/with-kafka $(CARGO) test --release --test kafka_log --test kafka_group -- --test-threads $(TEST_THREADS)

# The admin surface against its description.
api: build
	scripts/api-test

guests: binaries
	scripts/build-plugins --guests bin/test/plugins

# The host with its failpoints compiled in. Same profile and folder, so only two crates are compiled again.
test-binary:
	scripts/build-host bin/test/pelton --features pelton/failpoints

# The tests start the broker themselves, on a free port; it ends with them, however they end.
integration: build guests test-binary
	$(CARGO) test --release --test all -- --test-threads $(TEST_THREADS)

scenarios: setup-test build guests test-binary
	PELTON_FULL=$(FULL) $(CARGO) test --release --test all -- --test-threads $(TEST_THREADS) --nocapture $(ONLY)

# Jobs run the released binary; the boundary is called without it. One of the two alone where ONLY says so.
bench: setup-test build guests
ifneq ($(filter boundary,$(or $(ONLY),boundary)),)
	PELTON_PLUGINS='$(CURDIR)/bin/test/plugins' $(CARGO) bench --bench boundary
endif
ifneq ($(or $(filter-out boundary,$(ONLY)),$(if $(ONLY),,all)),)
	FULL=$(FULL) $(CARGO) bench --bench jobs -- $(filter-out boundary,$(ONLY))
endif

lint:
	@scripts/setup build
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --all-targets -- -D warnings

# Takes minutes on a first run: cargo-deny is compiled. Nothing else needs it.
deny:
	@command -v cargo-deny > /dev/null || env -u CARGO_TARGET_DIR $(CARGO) install --locked cargo-deny@0.20.2
	$(CARGO) deny check licenses bans sources
