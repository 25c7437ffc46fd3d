#!/usr/bin/env bash
# Resume, turn and list of pi, Strands Agents, LangGraph's savers and PostgreSQL, and of coppice, in one run. The peers
# come from npm into bin/peers and are no dependency; PostgreSQL is used where the distribution's package is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p bin/peers
[ -f bin/peers/package.json ] || echo '{"private":true}' >bin/peers/package.json
npm install --prefix bin/peers --no-audit --no-fund --ignore-scripts --loglevel=error \
	@mariozechner/pi-coding-agent@0.73.1 @strands-agents/sdk@1.19.0 @langchain/core@1.4.0 \
	@langchain/langgraph-checkpoint@1.2.2 @langchain/langgraph-checkpoint-sqlite@1.0.4 \
	@langchain/langgraph-checkpoint-postgres@1.0.5 pg@8.16.3 >/dev/null
# Its build compiles SQLite, once.
if [ ! -d bin/peers/node_modules/better-sqlite3/build ]; then
	npm rebuild --prefix bin/peers better-sqlite3 --foreground-scripts >/dev/null 2>&1
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/coppice-peers.XXXXXX")
stop() {
	if [ -n "${service:-}" ]; then kill "$service" 2>/dev/null || true; wait "$service" 2>/dev/null || true; fi
	if [ -n "${postgres:-}" ]; then as "$bin/pg_ctl" -D "$dir/pg" -m immediate stop >/dev/null || true; fi
	rm -rf "$dir"
}
trap stop EXIT

bin/coppice serve --store "$dir/coppice" --addr 127.0.0.1:0 >"$dir/service" 2>&1 &
service=$!
for _ in $(seq 100); do
	url=$(grep -o 'http://127.0.0.1:[0-9]*' "$dir/service" | head -n 1) && break
	sleep 0.1
done

# PostgreSQL refuses to run as root.
as() { if [ "$(id -u)" -eq 0 ]; then setpriv --reuid postgres --regid postgres --clear-groups "$@"; else "$@"; fi; }
postgres=
for bin in /usr/lib/postgresql/*/bin; do
	if [ ! -x "$bin/initdb" ]; then continue; fi
	chmod 711 "$dir"
	mkdir "$dir/pg"
	if [ "$(id -u)" -eq 0 ]; then chown postgres:postgres "$dir/pg"; fi
	as "$bin/initdb" -D "$dir/pg" -U bench --auth=trust >/dev/null
	as "$bin/pg_ctl" -D "$dir/pg" -w -l "$dir/pg/log" -o "-c listen_addresses= -k $dir/pg" start >/dev/null
	postgres="postgresql://bench@/postgres?host=$dir/pg"
done

cp tools/bench-peers.mjs bin/peers/bench.mjs # its imports are looked for from where it is
node bin/peers/bench.mjs "$dir" "$url" ${postgres:+"$postgres"}
