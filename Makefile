# Verbs. `make run` and `make test` install what they need (scripts/deps), build, and do it.
BUILD ?= build

.PHONY: all run test check test-vm test-full bench fuzz lint install clean

all:
	@scripts/deps build
	@scripts/build $(BUILD)

run: all
	@scripts/run $(BUILD)

test:
	@scripts/deps build test vm
	@scripts/build $(BUILD)
	@tests/run all

check:
	@scripts/build $(BUILD)
	@tests/run quick

test-vm:
	@scripts/deps build test vm
	@scripts/build $(BUILD)
	@tests/run vm

test-full:
	@scripts/deps build test vm
	@scripts/build $(BUILD)
	@tests/run full

bench:
	@scripts/deps build bench dockerd
	@scripts/build $(BUILD)
	@tests/bench/run

fuzz:
	@scripts/fuzz

lint:
	@scripts/layers
	@scripts/sizes

install: all
	meson install -C $(BUILD)

clean:
	rm -rf build build-*
