# Everything here needs Go 1.26 and make; `make race` also needs a C compiler.
GO       ?= go
PKG      ?= ./...
FUZZTIME ?= 10s
FUZZ     ?= .
BENCH    ?= .
COUNT    ?= 1
REF      ?= HEAD
DURATION ?= 10m
TESTTIME ?= 30m
PROOFTIME ?= 15m
PROVETIME ?= 6h
# The race detector watches the packages whose code or tests start goroutines, themselves or by the suite of all
# drivers: it makes the others five to ten times slower and can find nothing there. TestRaceDetectorSeesGoroutines
# compares the pattern with the syntax of all files. Left out: the suites of internal/proof, which are no short tests;
# internal/scenarios, where only benchmarks have goroutines; interop/, whose goroutines read parts of one file, as they
# do in internal/importer; drivers of tests, which the packages that use them run.
GOROUTINES = ^[[:space:]]*(defer )?go [[:alnum:]_.]+\(|\.Go\(|\.RunParallel\(|/internal/parallel"|/backendtest"
RACED = $$(for dir in $$($(GO) list -f '{{.Dir}}' $(PKG) | grep -vE '/internal/(archtest|casprobe|fault|trace|vfs|proof|scenarios)(/|$$)|/interop/'); do if grep -qE '$(GOROUTINES)' "$$dir"/*.go; then echo "$$dir"; fi; done)

export GO

# This make, by a name that does not have `make -n test` run the tests.
SELF := $(MAKE)

# The suites of internal/proof are apart: `make proof` runs them at their size, and a run of theirs here proves less. The
# time limit of a package ends a hang: on a machine that is busy with other work a package may take many minutes. `go vet`
# is part of `make lint`. As packages wait for disks and processes, one more than the cores runs at a time.
TESTS = $(GO) test -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -vet=off -shuffle=on -timeout=$(TESTTIME) -skip '^TestProof'

# A program with the race detector sleeps for a second when it ends, in case something still runs: the tests
# start thousands of them. What outlives its test is found by the tests themselves, which count goroutines.
export GORACE ?= atexit_sleep_ms=10

# golangci-lint and benchstat are pinned in a module of their own, so that the library does not see
# what they depend on.
TOOL := $(GO) tool -modfile=tools/go.mod

# The linter holds the syntax of all dependencies: collecting garbage less often saves a quarter of its time. Up to 4 GiB.
LINT := GOGC=400 GOMEMLIMIT=4GiB

# The S3 server of the integration tests: static, for it runs as a process and in an empty image.
S3SERVER := $(CURDIR)/bin/s3server
# Modules of their own: they see this one as its users do. They are linted with its rules, but for staticcheck, which
# looks at all that they depend on: minutes.
MODULES  := integration integration/s3server web/browser

# The packages with files of one system are vetted for the others in `make lint`.
SYSTEMS   := ./internal/vfs ./backend/local

.PHONY: all help build web web-bundle web-check web-test release test test-full race lint size audit fmt secret-rules fuzz bench bench-compare bench-fleet bench-peers demo cover proof prove mutants mutants-sample suites soak integration integration-minio s3server browser image clients-python clients-typescript adapters adapters-go node-client clean

all: lint test

help: ## the targets and what each does
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the command, as bin/coppice: static, so that no loader runs before it
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -o bin/coppice ./cmd/coppice

release: ## static binaries for all platforms, with checksums, in dist/
	@tools/release.sh

# Of the image: its name, and the authorities by which it knows the certificates of S3.
IMAGE ?= coppice
CERTS ?= /etc/ssl/certs/ca-certificates.crt

image: ## a container image FROM scratch, as IMAGE; needs Docker, and asks no registry
	@rm -rf bin/image && mkdir -p bin/image/etc/ssl/certs bin/image/tmp bin/image/data && chmod 1777 bin/image/tmp
	@cp $(CERTS) bin/image/etc/ssl/certs/ca-certificates.crt
	CGO_ENABLED=0 GOOS=linux $(GO) build -trimpath -ldflags='-s -w' -o bin/image/coppice ./cmd/coppice
	docker build --quiet --tag $(IMAGE) --file Dockerfile bin/image

test: ## every test, in random order; then those of clients/. With PKG those of some packages
	@status=0; $(TESTS) $(PKG) || status=1; \
	if [ "$(PKG)" = ./... ]; then \
		for client in clients-typescript clients-python; do $(SELF) --no-print-directory $$client || status=1; done; \
	fi; \
	exit $$status

test-full: test race browser ## every test; then under the race detector; then the viewer in Chromium

race: ## the short ones of all tests, under the race detector, where there are goroutines; needs a C compiler
	CGO_ENABLED=1 $(TESTS) -short -race $(RACED)

lint: size ## golangci-lint with .golangci.yml, and the modules of the integration tests too; internal/archtest, and the subjects of commits
	$(LINT) $(TOOL) golangci-lint run $(PKG)
	$(GO) test -count=1 -skip '^TestCommitSubjects$$' ./internal/archtest
	$(GO) test -count=1 -v -run '^TestCommitSubjects$$' ./internal/archtest
	@set -eu; for system in windows darwin; do \
		echo "GOOS=$$system go vet $(SYSTEMS)"; CGO_ENABLED=0 GOOS=$$system $(GO) vet $(SYSTEMS); \
	done
	@set -eu; for dir in $(MODULES); do \
		echo "cd $$dir && golangci-lint run"; \
		(cd "$$dir" && $(LINT) $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint run --config=$(CURDIR)/.golangci.yml -D staticcheck ./...); \
	done

size: ## the stripped command and what it allocates when it starts, against their limits
	@tools/size.sh

audit: secret-rules ## known vulnerabilities of what is built, its licences, and the rules for credentials; needs the network
	git diff --exit-code --stat secrets/rules.txt
	cd tools && $(GO) run ./deps vulnerabilities
	cd tools && $(GO) run ./deps licences

fmt: ## gofumpt and gci, in place
	$(TOOL) golangci-lint fmt

secret-rules: ## secrets/rules.txt from the pinned release of gitleaks, which it takes from the module proxy
	$(GO) -C tools run ./secretrules

fuzz: ## each fuzz target whose path matches FUZZ, for FUZZTIME
	@tools/fuzz.sh '$(FUZZ)' $(FUZZTIME)

# What the proof of the clients runs in Node: it skips if there is none.
node-client:
	@! $(NODE20) || (cd clients/typescript && $(NODE_CLIENT)) || [ -z "$${REQUIRE_NODE:-}" ]

# Each suite prints one line. The packages run one after the other: each uses all cores.
PROOFS = $(GO) test -p 1 -vet=off -count 1 -v -run '^TestProof'

proof: s3server node-client ## every suite that tries to break a promise, at the size that each change has to pass
	@COPPICE_PROOF=ci $(MAKE) --no-print-directory suites

prove: s3server node-client ## the same suites at their nightly size: hours
	@COPPICE_PROOF=nightly PROOFTIME=$(PROVETIME) $(MAKE) --no-print-directory suites
	@$(MAKE) --no-print-directory fuzz FUZZTIME=60s
	@$(MAKE) --no-print-directory mutants

# What checks the suites is apart: it builds each of them anew, dozens of times.
mutants: ## every suite must notice the protocol broken on purpose
	COPPICE_PROOF=ci $(PROOFS) -timeout $(PROOFTIME) ./internal/proof/mutant

mutants-sample: ## the same for a row of each suite: half a minute
	@COPPICE_MUTANTS=sample $(MAKE) --no-print-directory mutants

SUITES = $$($(GO) list ./internal/proof/... | grep -v /mutant)

suites:
	@set -u; out=$$(mktemp); trap 'rm -f "$$out"' EXIT; status=0; \
	$(PROOFS) -timeout $(PROOFTIME) $(SUITES) > "$$out" 2>&1 || status=1; \
	(cd integration && S3TEST_BIN=$(S3SERVER) $(PROOFS) -timeout $(PROOFTIME) .) >> "$$out" 2>&1 || status=1; \
	grep '^proof ' "$$out"; \
	if [ $$status -ne 0 ]; then grep -vE '^(=== |proof |ok |\? |PASS|--- PASS)' "$$out"; fi; \
	exit $$status

soak: ## many sessions, kills and faults for DURATION, verified all the while; then the HTTP service under load as long; then the viewer
	COPPICE_SOAK=$(DURATION) $(GO) test -p 1 -count 1 -v -timeout 0 -run '^TestProof(Soak|Serve)' \
		./internal/proof/soak ./internal/proof/serve
	@$(SELF) --no-print-directory soak-viewer

soak-viewer: ## the long form of the viewer's tests, and its benchmarks with 1,000,000 entries and a page that is idle for DURATION
	cd web/browser && COPPICE_SOAK=$(DURATION) $(GO) test -count 1 -v -timeout 0 .
	cd web/browser && COPPICE_BENCH_MESSAGES=1000000 $(VIEWERBENCH) -bench . -skip Idle -benchtime 9x -timeout 0 .
	cd web/browser && COPPICE_BENCH_IDLE=$(DURATION) $(VIEWERBENCH) -bench Idle -benchtime 1x -timeout 0 .

# The viewer's benchmarks skip where there is no browser.
VIEWERBENCH = $(GO) test -run '^$$' -count $(COUNT)

bench: ## benchmarks; those of the promises print a ratio to the bare floor measured in the same run
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)
	@[ "$(PKG)" != ./... ] || (cd web/browser && $(VIEWERBENCH) -bench '$(BENCH)' .)

bench-fleet: ## 1 to 200 agents that commit at once, beside bare files and PostgreSQL, if it is installed: five minutes
	$(GO) test -run '^$$' -bench Fleet -benchtime 1x ./internal/proof/serve -rounds 5

bench-peers: build node-client ## resume, turn and list of pi, Strands, LangGraph's savers and PostgreSQL, beside coppice
	@tools/bench-peers.sh

bench-viewer: ## the short form of the viewer's benchmarks: a quarter of a minute
	cd web/browser && $(VIEWERBENCH) -benchtime 1x -bench '^Benchmark(FirstPaint|Append)$$/^entries=305$$|^BenchmarkIdle$$' .

bench-compare: ## the same benchmarks at REF and here (COUNT=6 or more separates a change from noise)
	@tools/bench-compare.sh '$(REF)' '$(BENCH)' $(COUNT) $(PKG)

demo: ## the whole story in one command
	$(GO) run ./cmd/coppice demo

cover: ## statement coverage of the module by all its tests
	@mkdir -p bin
	$(GO) test -coverprofile=bin/cover.out -coverpkg=./... $(PKG)
	$(GO) tool cover -func=bin/cover.out | tail -n 1

s3server: ## the S3 server of the integration tests, as bin/s3server
	@mkdir -p bin
	cd integration/s3server && CGO_ENABLED=0 $(GO) build -buildvcs=false -ldflags='-s -w' -o $(S3SERVER) .

# Without a package as its argument `go test` says what it has to say as it comes: that there is no Docker.
integration: s3server build node-client ## real S3 servers, as a process, behind TLS, and in a container if there is Docker
	cd integration && S3TEST_BIN=$(S3SERVER) S3TEST_COPPICE=$(CURDIR)/bin/coppice \
		$(GO) test -vet=off -shuffle=on -count=$(COUNT) -timeout=15m -skip '^TestProof'
	cd integration && S3TEST_BIN=$(S3SERVER) $(GO) test -shuffle=on -count=$(COUNT) ./faultproxy/... ./s3test/...

integration-minio: node-client ## the same on MinIO, which is built first, once: minutes
	cd integration && $(GO) run ./minio env CGO_ENABLED=1 $(GO) test -race -count=$(COUNT) -timeout=30m


# The viewer. Its sources are in web/, what browsers get is in server/dist, committed under names that never change.
ESBUILD := $(TOOL) esbuild --bundle --minify --format=esm --target=es2022 --log-level=warning --legal-comments=none \
	--jsx=automatic --jsx-import-source=preact --alias:decode-named-character-reference=$(CURDIR)/web/text/entities.ts \
	--alias:@ungap/structured-clone=$(CURDIR)/web/text/clone.ts
DIST ?= server/dist
# Bundles that the page loads when it needs them.
LAZY = $(basename $(notdir $(wildcard web/lazy/*.ts web/lazy/*.tsx)))

web: web/node_modules ## type-check the viewer, and build it into server/dist (DIST)
	cd web && npm run --silent check
	@$(MAKE) --no-print-directory web-bundle

web-bundle: ## only the bundles, without types
	@mkdir -p $(DIST)
	@set -eu; meta=$$(mktemp -d); trap 'rm -rf "$$meta"' EXIT; \
	$(ESBUILD) --metafile="$$meta/app.json" --splitting --chunk-names=[name] --outdir=$(DIST) \
		--entry-names=[name] web/app.tsx; \
	for name in $(LAZY); do \
		$(ESBUILD) --metafile="$$meta/$$name.json" --outfile=$(DIST)/lazy-$$name.js web/lazy/$$name.ts; \
	done; \
	$(ESBUILD) --outfile=$(DIST)/app.css web/style/app.css; \
	cp web/index.html web/icon.svg $(DIST)/; \
	node web/third-party.mjs $(DIST)/THIRD_PARTY.txt "$$meta"/*.json

web-check: ## the committed bundles are those of the sources
	@set -eu; out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; \
	$(MAKE) --no-print-directory web DIST="$$out"; \
	diff -rq server/dist "$$out" || { echo 'server/dist differs from its sources: run make web, and commit it' >&2; exit 1; }

web-test: web/node_modules ## the tests of what the viewer computes, without a browser
	@set -eu; out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; \
	$(TOOL) esbuild --bundle --platform=node --format=esm --log-level=warning --outdir="$$out" --out-extension:.js=.mjs \
		--jsx=automatic --jsx-import-source=preact $$(ls web/test/*.test.ts*) && \
	node --test "$$out"/*.mjs

# What is built already is tested as it is where there is no npm.
# Pages wait for frames and timers, so that more tests run at a time than there are cores.
browser: $(if $(wildcard web/node_modules),web-bundle) ## the tests of the viewer in Chromium, which has to be there
	cd web/browser && REQUIRE_CHROMIUM=1 $(GO) test -parallel=$$((2 * $$(getconf _NPROCESSORS_ONLN))) -count=$(COUNT) ./...

web/node_modules: web/package-lock.json
	cd web && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

# Python 3.10 or newer. Nothing is downloaded: the client and its build need the standard library alone.
PYTHON ?= python3
PYTHON310 = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))'
CLIENT := $(CURDIR)/clients/python

clients-python: build ## the Python client: its wheel in dist/, and its tests against bin/coppice; REQUIRE_PYTHON=1 fails without Python
	@set -eu; \
	if ! $(PYTHON) -c $(PYTHON310) 2>/dev/null; then \
		echo 'clients-python: skipped, as there is no $(PYTHON) of 3.10 or newer with venv'; \
		[ -z "$${REQUIRE_PYTHON:-}" ]; exit; \
	fi; \
	command -v mypy >/dev/null || echo 'clients-python: types are not checked, as there is no mypy'; \
	rm -rf dist/python && mkdir -p dist/python && cd $(CLIENT) && \
	$(PYTHON) -c 'import sys; sys.path[:0] = ["tools"]; import build_backend as b; \
		print("dist/python/" + b.build_wheel(sys.argv[1]))' $(CURDIR)/dist/python && \
	COPPICE_WHEELS=$(CURDIR)/dist/python COPPICE_BIN=$(CURDIR)/bin/coppice $(PYTHON) -W error -m unittest discover -t . -s tests

# Whether Node and npm are there; and the client, which is built if a source is newer than what was built.
NODE20 = { node -e 'process.exitCode = +(parseInt(process.versions.node) < 20)' && npm --version; } >/dev/null 2>&1
NODE_CLIENT = { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund; } && \
	{ [ -f dist/index.js ] && [ -z "$$(find src package.json tsconfig.json -newer dist/index.js)" ] || npm run build; }

clients-typescript: ## the TypeScript client: generated files, tests, package (in PACK, if set); skipped without Node 20, which REQUIRE_NODE=1 forbids
	@set -eu; \
	if ! $(NODE20); then \
		echo 'clients-typescript: skipped, as there is no Node 20 or newer with npm'; [ -z "$${REQUIRE_NODE:-}" ]; exit; \
	fi; \
	if [ -z "$${COPPICE_BIN:-}" ]; then $(MAKE) --no-print-directory build; export COPPICE_BIN="$(CURDIR)/bin/coppice"; fi; \
	dir=$${PACK:-}; if [ -z "$$dir" ]; then dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; fi; \
	cd clients/typescript && $(NODE_CLIENT) && npm test && npm pack --silent --ignore-scripts --pack-destination "$$dir"

NODE_ADAPTERS = { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund; } && npm run build

# The suites of frameworks that are published, and our own cases: docs/frameworks.md.
adapters: build ## the adapters of frameworks: types, suites, packages (in PACK, if set); skipped without Node 20, which REQUIRE_NODE=1 forbids
	@set -eu; \
	if ! $(NODE20); then echo 'adapters: skipped, as there is no Node 20 or newer with npm'; [ -z "$${REQUIRE_NODE:-}" ]; exit; fi; \
	(cd clients/typescript && $(NODE_CLIENT)); cd adapters; $(NODE_ADAPTERS); COPPICE_BIN="$(CURDIR)/bin/coppice" npm test; \
	if [ -n "$${PACK:-}" ]; then \
		for dir in ../clients/typescript $$(dirname */tsconfig.json); do \
			(cd "$$dir" && npm pack --silent --ignore-scripts --pack-destination "$$PACK"); done; \
	fi
	@set -eu; \
	if ! $(PYTHON) -c $(PYTHON310) 2>/dev/null; then echo 'adapters: no Python 3.10 with venv'; [ -z "$${REQUIRE_PYTHON:-}" ]; exit; fi; \
	mkdir -p dist/python && rm -f dist/python/*.whl && cd adapters/claude-python && $(PYTHON) -c 'import pathlib, sys; \
		sys.path[:0] = ["$(CLIENT)/tools"]; import build_backend as b; b.build_wheel(sys.argv[1]); b.HERE = pathlib.Path.cwd(); \
		print("dist/python/" + b.build_wheel(sys.argv[1]))' $(CURDIR)/dist/python && \
	COPPICE_WHEELS=$(CURDIR)/dist/python COPPICE_BIN=$(CURDIR)/bin/coppice PYTHONPATH=$(CLIENT) \
		$(PYTHON) -W error -m unittest discover -s tests -t tests

adapters-go: ## the adapters of frameworks in Go, each a module of its own
	@set -eu; for dir in $$(dirname adapters/*/go.mod); do \
		echo "cd $$dir && go test -short ./..."; (cd "$$dir" && $(GO) test -short ./...); done

clean: ## what the targets above leave behind
	rm -rf bin dist clients/typescript/dist clients/typescript/build clients/typescript/node_modules \
		adapters/*/dist adapters/build adapters/node_modules
	@if command -v docker >/dev/null 2>&1 && docker version >/dev/null 2>&1; then \
		docker ps -aq --filter label=coppice.s3test | xargs -r docker rm -f; \
		docker images -q --filter label=coppice.s3test | sort -u | xargs -r docker rmi -f; \
	fi
