# Everything here needs Go 1.26 and make; `make test` also needs a C compiler for the race detector.
GO       ?= go
PKG      ?= ./...
FUZZTIME ?= 10s
BENCH    ?= .
COUNT    ?= 1
REF      ?= HEAD

# golangci-lint and benchstat are pinned in a module of their own, so that the library does not see
# what they depend on.
TOOL := $(GO) tool -modfile=tools/go.mod

.PHONY: all build test lint fmt fuzz bench bench-compare demo cover clean

all: lint test

build: ## the command, as bin/coppice
	@mkdir -p bin
	$(GO) build -trimpath -o bin/coppice ./cmd/coppice

test: ## every test, with the race detector and in random order
	$(GO) test -race -shuffle=on $(PKG)

lint: ## golangci-lint with .golangci.yml
	$(TOOL) golangci-lint run $(PKG)

fmt: ## gofumpt and gci, in place
	$(TOOL) golangci-lint fmt

fuzz: ## each fuzz target for FUZZTIME
	@set -eu; \
	found=$$(grep -rnoE '^func Fuzz[A-Za-z0-9_]*' --include='*_test.go' --exclude-dir=testdata --exclude-dir=tools --exclude-dir=integration . || true); \
	if [ -z "$$found" ]; then echo 'no fuzz targets'; exit 0; fi; \
	printf '%s\n' "$$found" | sort -u | while IFS=: read -r file _ decl; do \
		name=$${decl#func }; dir=$${file%/*}; \
		echo "== $$dir $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null; \
	done

bench: ## benchmarks; those of the promises print a ratio to the bare floor measured in the same run
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)

bench-compare: ## the same benchmarks at REF and here, side by side (COUNT=6 or more tells noise from change)
	@set -eu; old=$$(mktemp -d); trap 'git worktree remove --force "$$old/tree" 2>/dev/null || true; rm -rf "$$old"' EXIT; \
	git worktree add --quiet --detach "$$old/tree" $(REF); \
	(cd "$$old/tree" && $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)) > "$$old/old.txt"; \
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG) > "$$old/new.txt"; \
	$(TOOL) benchstat "$$old/old.txt" "$$old/new.txt"

demo: ## the whole story in one command
	$(GO) run ./cmd/coppice demo

cover: ## statement coverage of the module by all its tests
	@mkdir -p bin
	$(GO) test -coverprofile=bin/cover.out -coverpkg=./... $(PKG)
	$(GO) tool cover -func=bin/cover.out | tail -n 1

clean: ## what the targets above leave behind
	rm -rf bin
