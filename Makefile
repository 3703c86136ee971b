# The two commands to know: `make demo` and `make test`. Both install what is missing first.

# A toolchain of rustup whose folder is not in PATH is used all the same.
ifeq ($(shell command -v cargo),)
export PATH := $(PATH):$(HOME)/.cargo/bin
endif
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

# With nextest, if it is there, the tests of all groups run side by side, and .config/nextest.toml
# applies.
RUN_TESTS = $(if $(shell $(CARGO) nextest --version 2>/dev/null),nextest run,test)
# Many tests wait for something: twice as many at a time as there are cores.
TEST_OPTIONS = $(if $(filter test,$(RUN_TESTS)),--no-fail-fast,--test-threads $(shell echo $$((2 * $$(nproc)))))
PROGRESS := scripts/progress.sh

# Tests that talk to a server of PyPI: they come last, and the servers are installed right
# before them. `make test SERVERS=` installs none: tests of one that is not there are skipped.
SERVERS ?= yes
SERVER_TESTS := servers
ALL_TESTS := $(patsubst $(ROOT)/tests/%/main.rs,%,$(wildcard $(ROOT)/tests/*/main.rs)) \
  $(patsubst $(ROOT)/tests/%.rs,%,$(wildcard $(ROOT)/tests/*.rs))
OTHER_TESTS := $(filter-out $(SERVER_TESTS),$(ALL_TESTS))

# Cargo alone drops the debug information of a release build; here it becomes a file of its own.
export CARGO_PROFILE_RELEASE_STRIP := none

.PHONY: all help setup setup-test setup-servers build links lab domains llvm-domains demo test quick check deny advisories bench compare challenges transparency afl-suite libfuzzer-suite install uninstall clean

all: build links

help:
	@echo 'make             build ffuzz and its links (ffuzz-cc, ...) in $(BIN)'
	@echo 'make demo        install what is missing, build, and find the 2 GB allocation of demo/demo.c'
	@echo 'make test        install what is missing, check form and lints, run all tests; with SERVERS= without'
	@echo '                 those that talk to servers, which are fetched right before them'
	@echo 'make quick       unit tests and the rules of tests/tidy.rs; with CRATE=engine those of src/engine alone,'
	@echo '                 seconds after an edit'
	@echo 'make check       form, lints, licences and documentation only'
	@echo 'make advisories  known vulnerabilities of dependencies, by cargo deny, which fetches the list'
	@echo 'make lab         build $(TARGET_DIR)/lab/ffuzz, nearly as fast as a release, seconds after an edit'
	@echo 'make bench       measure, also against AFL++, which it fetches and builds, and libFuzzer'
	@echo 'make compare     coverage against AFL++ and libFuzzer at equal CPU time; QUICK=1, BASE=REV, KIND=…, TARGETS=…,'
	@echo '                 KINDS=…, SEEDS=ordinary, TIME=…, ROUNDS=…, CORE=…, ROWS=FILE'
	@echo 'make challenges  executions until tests/challenges/* are solved, beside AFL++ and libFuzzer; TIME=…, SEEDS=…,'
	@echo '                 NAMES=…, KINDS=…, CORE=…'
	@echo 'make transparency  programs print the same with -Q and without, on 1000 inputs each; INPUTS=…'
	@echo 'make afl-suite   run the tests of AFL++ 4.40c, which it fetches, with the programs of ffuzz in their place'
	@echo 'make libfuzzer-suite  run command lines of libFuzzer with harnesses of ffuzz-cc; a table of what differs'
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
	@test -e $(BIN)/ffuzz || echo 'ffuzz is compiled: 30 MB of crates to download, 1 GB in $(TARGET_DIR), about 6 CPU minutes'
	@$(PROGRESS) 'compiling ffuzz' $(CARGO) build --release --locked
	@scripts/split-debug.sh $(BIN)/ffuzz

# One link per command: `ffuzz-NAME` is `ffuzz NAME`. The program itself lists the names.
links: build
	@for name in $$($(BIN)/ffuzz --commands); do ln -sf ffuzz "$(BIN)/ffuzz-$$name"; done
	@ln -sf ffuzz "$(BIN)/cargo-ffuzz"

# For measurements between two edits: ten seconds after an edit, where a release build takes minutes.
lab:
	@$(PROGRESS) 'compiling ffuzz' $(CARGO) build --profile lab --locked
	@for name in $$($(TARGET_DIR)/lab/ffuzz --commands); do ln -sf ffuzz "$(TARGET_DIR)/lab/ffuzz-$$name"; done

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
	@test -e $(TARGET_DIR)/debug/ffuzz || echo 'the tests are compiled: 3 GB in $(TARGET_DIR), about 11 CPU minutes; they run for another 12'
	@scripts/run-tests.sh --begin
	@$(MAKE) --no-print-directory check
	@$(PROGRESS) 'compiling the tests' $(CARGO) $(RUN_TESTS) --locked --no-run
	@scripts/run-tests.sh tests $(CARGO) $(RUN_TESTS) --locked $(TEST_OPTIONS) --lib --bins $(OTHER_TESTS:%=--test %)
	$(CARGO) test --locked --doc
	@$(if $(SERVERS),scripts/setup.sh --servers,scripts/setup.sh --servers --skip)
	@scripts/run-tests.sh servers $(CARGO) $(RUN_TESTS) --locked $(TEST_OPTIONS) $(SERVER_TESTS:%=--test %)
	@scripts/run-tests.sh --summary

# For the time between two edits: no target is built, no campaign is run. CRATE=engine: the tests of that
# crate alone, seconds after an edit.
CRATE ?=
quick:
	$(CARGO) $(RUN_TESTS) --locked $(if $(CRATE),-p ffuzz-$(CRATE) --lib,--lib --bins --test tidy)

check:
	$(CARGO) fmt --all --check
	$(if $(shell $(CARGO) shear --version 2>/dev/null),$(CARGO) shear)
	$(if $(shell $(CARGO) deny --version 2>/dev/null),@$(MAKE) --no-print-directory deny)
	@$(PROGRESS) 'clippy' $(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --package ffuzz-python -- -D warnings
	@$(PROGRESS) 'compiling the example' $(CARGO) run --locked --example in_process
	@RUSTDOCFLAGS='-D warnings' $(PROGRESS) 'documentation' $(CARGO) doc --locked --no-deps --document-private-items

# `cargo deny` by itself downloads the crates of all systems; with the graph of this one it needs no network.
deny:
	@mkdir -p '$(TARGET_DIR)'
	@$(CARGO) metadata --locked --all-features --format-version 1 \
	  --filter-platform "$$(rustc -vV | sed -n 's/^host: //p')" >'$(TARGET_DIR)/metadata.json'
	$(CARGO) deny --metadata-path '$(TARGET_DIR)/metadata.json' check licenses bans sources

advisories:
	$(CARGO) deny --locked check advisories

bench: setup-test
	@$(MAKE) --no-print-directory all
	CARGO_TARGET_DIR='$(TARGET_DIR)' benches/peers.sh
	$(CARGO) bench --locked --bench ratios

# With the profile `lab`, so that the answer to an edit does not wait for a release build.
compare: setup-test
	CARGO_TARGET_DIR='$(TARGET_DIR)' benches/peers.sh
	@$(PROGRESS) 'compiling ffuzz' $(CARGO) build --profile lab --locked --bench compare
	CARGO_TARGET_DIR='$(TARGET_DIR)' $(CARGO) bench --quiet --profile lab --locked --bench compare

challenges: setup-test
	CARGO_TARGET_DIR='$(TARGET_DIR)' benches/peers.sh
	@$(PROGRESS) 'compiling ffuzz' $(CARGO) build --profile lab --locked
	CARGO_TARGET_DIR='$(TARGET_DIR)' benches/challenges.sh '$(TARGET_DIR)/lab/ffuzz' $(NAMES)

transparency: setup-test
	@$(PROGRESS) 'compiling the tests' $(CARGO) test --locked --no-run --test fuzzing
	FFUZZ_TEST_INPUTS=$${INPUTS:-1000} CARGO_TARGET_DIR='$(TARGET_DIR)' $(CARGO) test --locked --test fuzzing programs_print

afl-suite: setup-test
	@$(MAKE) --no-print-directory all
	CARGO_TARGET_DIR='$(TARGET_DIR)' scripts/afl-suite.sh '$(BIN)'

libfuzzer-suite: setup-test
	$(CARGO) test --locked --test libfuzzer -- --nocapture

install: all
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/include' '$(DESTDIR)$(PREFIX)/share/doc/ffuzz/domains' \
	  '$(DESTDIR)$(PREFIX)/share/doc/ffuzz/internals'
	install -m 755 $(BIN)/ffuzz '$(DESTDIR)$(PREFIX)/bin/ffuzz'
	@for name in $$($(BIN)/ffuzz --commands); do ln -sf ffuzz "$(DESTDIR)$(PREFIX)/bin/ffuzz-$$name"; done
	@ln -sf ffuzz "$(DESTDIR)$(PREFIX)/bin/cargo-ffuzz"
	install -m 644 runtime/include/*.h include/*.h '$(DESTDIR)$(PREFIX)/include'
	install -m 644 README.md CHANGELOG.md SECURITY.md LICENSE-MIT LICENSE-APACHE docs/*.md '$(DESTDIR)$(PREFIX)/share/doc/ffuzz'
	install -m 644 docs/domains/*.md '$(DESTDIR)$(PREFIX)/share/doc/ffuzz/domains'
	install -m 644 docs/internals/*.md '$(DESTDIR)$(PREFIX)/share/doc/ffuzz/internals'
	install -m 644 docs/report.schema.json docs/report.png '$(DESTDIR)$(PREFIX)/share/doc/ffuzz'
	$(BIN)/ffuzz --manuals '$(DESTDIR)$(PREFIX)/share'

uninstall:
	@for name in $$($(BIN)/ffuzz --commands); do rm -f "$(DESTDIR)$(PREFIX)/bin/ffuzz-$$name"; done
	@rm -f "$(DESTDIR)$(PREFIX)/bin/cargo-ffuzz"
	rm -f '$(DESTDIR)$(PREFIX)/bin/ffuzz'
	rm -f '$(DESTDIR)$(PREFIX)/include/waypoints.h' '$(DESTDIR)$(PREFIX)/include/afl_valid.h' '$(DESTDIR)$(PREFIX)/include/ijon.h' '$(DESTDIR)$(PREFIX)/include/ffuzz-mutator.h' '$(DESTDIR)$(PREFIX)/include/ffuzz-killerbeez.h'
	rm -rf '$(DESTDIR)$(PREFIX)/share/doc/ffuzz'
	@for name in ffuzz cargo-ffuzz $$($(BIN)/ffuzz --commands | sed 's/^/ffuzz-/'); do \
	  rm -f "$(DESTDIR)$(PREFIX)/share/man/man1/$$name.1" \
	    "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$name.bash" \
	    "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$name" \
	    "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$name.fish"; \
	done

clean:
	$(CARGO) clean
	rm -rf demo/build
