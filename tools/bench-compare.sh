#!/usr/bin/env bash
# bench-compare.sh REVISION PATTERN COUNT PACKAGE... runs benchmarks at a revision and in the work tree, and compares.
set -euo pipefail
revision=$1 bench=$2 count=$3
shift 3
old=$(mktemp -d)
trap 'git worktree remove --force "$old/tree" 2>/dev/null || true; rm -rf "$old"' EXIT
git worktree add --quiet --detach "$old/tree" "$revision"
run=("${GO:-go}" test -run '^$' -bench "$bench" -benchmem -count "$count" "$@")
(cd "$old/tree" && "${run[@]}") >"$old/old.txt"
"${run[@]}" >"$old/new.txt"
"${GO:-go}" tool -modfile=tools/go.mod benchstat "$old/old.txt" "$old/new.txt"
