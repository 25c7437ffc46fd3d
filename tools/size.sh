#!/usr/bin/env bash
# Build the stripped command, and fail if it is larger than the limit, or if its packages allocate more often than the
# limit when it starts.
#
# Growth is most often due to the linker: with text/template, or reflection that calls methods by name, it keeps every
# exported method, and so all operations of the S3 client (8 MB). The HTTP service is 4 MB of the command (huma,
# metrics), the viewer 0.8 MB, the sessions of serve --demo 0.1 MB, the server for MCP clients
# 0.1 MB, erasure 0.17 MB, its command and route 0.15 MB, the rules for credentials and what they need 0.15 MB,
# holds and the audit log 0.05 MB, the imports of Strands and LangGraph 0.13 MB each, retention
# 0.07 MB, by schedule and over HTTP 0.1 MB, deletion with what the machine keeps and its purge over HTTP 0.08 MB, pages
# of credentials 0.06 MB.
set -euo pipefail
# Without -trimpath, which would compile every package a second time in CI: the paths of 2,000 files are in the
# binary, and take up to 100 KB more where module cache and checkout lie deeper than here (32,895,000 bytes).
max_size=33050000
# Package initialisation is most of the time that the command takes to start: an import can add a millisecond.
max_allocations=11000

out=$(mktemp)
trap 'rm -f "$out"' EXIT
CGO_ENABLED=0 "${GO:-go}" build -ldflags='-s -w' -o "$out" ./cmd/coppice
size=$(wc -c <"$out")
echo "the stripped command: $size bytes, at most $max_size"
[ "$size" -le $max_size ]
n=$(GODEBUG=inittrace=1 "$out" --version 2>&1 >/dev/null | awk '$1 == "init" { n += $(NF - 1) } END { print n + 0 }')
echo "it starts with $n allocations, at most $max_allocations"
[ "$n" -gt 0 ] && [ "$n" -le $max_allocations ]
