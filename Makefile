# The two commands to know: `make demo` and `make test`. Both install what is missing first.

CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=
# Where this file is, so that `make -f` works from any folder.
ROOT := $(patsubst %/,%,$(dir $(realpath $(lastword $(MAKEFILE_LIST)))))
TARGET_DIR := $(if $(filter /%,$(CARGO_TARGET_DIR)),,$(ROOT)/)$(or $(CARGO_TARGET_DIR),target)
BIN := $(TARGET_DIR)/release

# The folder where make was called, also with -C, and what it has: see docs/new-domain.md.
DOMAINS_DIR ?= $(or $(PWD),$(CURDIR))
DOMAINS ?=
# An ffuzz that is there already; without it `make domains` builds one.
FFUZZ ?=

# With nextest, if it is there, the tests of all groups run side by side.
RUN_TESTS = $(if $(shell $(CARGO) nextest --version 2>/dev/null),nextest run,test)

# Tests that talk to a server of PyPI: they come last, and the servers are installed right
# before them. `make test SERVERS=` installs none: tests of one that is not there are skipped.
SERVERS ?= yes
SERVER_TESTS := servers
ALL_TESTS := $(patsubst $(ROOT)/tests/%/main.rs,%,$(wildcard $(ROOT)/tests/*/main.rs)) \
  $(patsubst $(ROOT)/tests/%.rs,%,$(wildcard $(ROOT)/tests/*.rs))
OTHER_TESTS := $(filter-out $(SERVER_TESTS),$(ALL_TESTS))

# Cargo alone drops the debug information of a release build; here it becomes a file of its own.
export CARGO_PROFILE_RELEASE_STRIP := none

.PHONY: all help setup setup-test setup-servers build links domains llvm-domains demo test quick check bench install uninstall clean

all: build links

help:
	@echo 'make             build ffuzz and its links (ffuzz-cc, ...) in $(BIN)'
	@echo 'make demo        install what is missing, build, and find the 2 GB allocation of demo/demo.c'
	@echo 'make test        install what is missing, check form and lints, run all tests; with SERVERS= without'
	@echo '                 those that talk to servers, which are fetched right before them'
	@echo 'make quick       unit tests and the rules of tests/tidy.rs: below two minutes behind a build'
	@echo 'make check       form, lints and documentation only'
	@echo 'make bench       measure, also against AFL++, which it fetches and builds, and libFuzzer'
	@echo 'make install     PREFIX=/usr/local DESTDIR='
	@echo 'make domains     DOMAINS+=foo: build waypoints-foo-{pass.cc,rt.c} of this folder, for WAYPOINTS=foo'
	@echo 'make setup       install the Debian packages needed to build; setup-test: those of the tests as well;'
	@echo '                 setup-servers: a FuzzManager server and a PASTIS broker for the tests, from PyPI'

# What a build needs; `setup-test` adds the other compilers and linkers that tests use, and
# `setup-servers` the servers that some talk to.
setup:
	@scripts/setup.sh

setup-test:
	@scripts/setup.sh --test

setup-servers:
	@scripts/setup.sh --servers

build:
	$(CARGO) build --release --locked
	@scripts/split-debug.sh $(BIN)/ffuzz

# One link per command: `ffuzz-NAME` is `ffuzz NAME`. The program itself lists the names.
links: build
	@for name in $$($(BIN)/ffuzz --commands); do ln -sf ffuzz "$(BIN)/ffuzz-$$name"; done

# Domains by name: files of the user's folder if they are there, else what is known already. FuzzFactory
# calls this llvm-domains.
domains llvm-domains:
	$(if $(FFUZZ),,@$(MAKE) --no-print-directory -C '$(ROOT)' setup all)
	@'$(or $(FFUZZ),$(BIN)/ffuzz)' domains $(foreach name,$(DOMAINS),$\
	  $(if $(wildcard $(DOMAINS_DIR)/waypoints-$(name)-*),'$(DOMAINS_DIR)/$(name)',$(name)))

demo: setup
	@$(MAKE) --no-print-directory all
	@demo/run.sh $(BIN)

# What costs least comes first, and what fetches most last.
test: setup-test
	@$(MAKE) --no-print-directory check
	$(CARGO) $(RUN_TESTS) --locked --no-run
	$(CARGO) $(RUN_TESTS) --locked --lib --bins $(OTHER_TESTS:%=--test %)
	$(CARGO) test --locked --doc
	@$(if $(SERVERS),scripts/setup.sh --servers,scripts/setup.sh --servers --skip)
	$(CARGO) $(RUN_TESTS) --locked $(SERVER_TESTS:%=--test %)

# For the time between two edits: no target is built, no campaign is run.
quick:
	$(CARGO) $(RUN_TESTS) --locked --lib --bins --test tidy

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --package ffuzz-python -- -D warnings
	$(CARGO) run --locked --quiet --example in_process
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps --document-private-items --quiet

bench: setup-test
	@$(MAKE) --no-print-directory all
	CARGO_TARGET_DIR='$(TARGET_DIR)' benches/peers.sh
	$(CARGO) bench --locked

install: all
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/include' '$(DESTDIR)$(PREFIX)/share/doc/ffuzz/domains'
	install -m 755 $(BIN)/ffuzz '$(DESTDIR)$(PREFIX)/bin/ffuzz'
	@for name in $$($(BIN)/ffuzz --commands); do ln -sf ffuzz "$(DESTDIR)$(PREFIX)/bin/ffuzz-$$name"; done
	install -m 644 runtime/include/*.h include/*.h '$(DESTDIR)$(PREFIX)/include'
	install -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE docs/*.md '$(DESTDIR)$(PREFIX)/share/doc/ffuzz'
	install -m 644 docs/domains/*.md '$(DESTDIR)$(PREFIX)/share/doc/ffuzz/domains'

uninstall:
	@for name in $$($(BIN)/ffuzz --commands); do rm -f "$(DESTDIR)$(PREFIX)/bin/ffuzz-$$name"; done
	rm -f '$(DESTDIR)$(PREFIX)/bin/ffuzz'
	rm -f '$(DESTDIR)$(PREFIX)/include/waypoints.h' '$(DESTDIR)$(PREFIX)/include/afl_valid.h' '$(DESTDIR)$(PREFIX)/include/ijon.h' '$(DESTDIR)$(PREFIX)/include/ffuzz-mutator.h' '$(DESTDIR)$(PREFIX)/include/ffuzz-killerbeez.h'
	rm -rf '$(DESTDIR)$(PREFIX)/share/doc/ffuzz'

clean:
	$(CARGO) clean
	rm -rf demo/build
