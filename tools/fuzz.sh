#!/usr/bin/env bash
# fuzz.sh PATTERN TIME runs each fuzz target whose file and name match a pattern, for a time each.
set -euo pipefail
found=$(grep -rnoE '^func Fuzz[A-Za-z0-9_]*' --include='*_test.go' --exclude-dir=testdata --exclude-dir=tools \
	--exclude-dir=integration . | grep -E "$1" || true)
if [ -z "$found" ]; then
	echo 'no fuzz targets'
	exit 0
fi
printf '%s\n' "$found" | sort -u | while IFS=: read -r file _ decl; do
	name=${decl#func }
	dir=${file%/*}
	echo "== $dir $name"
	"${GO:-go}" test -run '^$' -fuzz "^$name\$" -fuzztime "$2" "$dir" </dev/null
done
