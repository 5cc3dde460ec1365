#!/usr/bin/env bash
# Prints the client table of docs/use-with.md: npm installs the clients (2 GB) in a temporary folder, or in the one that
# SLUICE_CLIENT_TABLE names, which stays, and each asks sluice serve. Fails if one is served in part. Arguments are flags
# of serve with models demo and small; without, the trained mixture of the reference data, else the embedded model.
set -euo pipefail
cd "$(dirname "$0")/.."

temp=$(mktemp -d)
clients=${SLUICE_CLIENT_TABLE:-$temp/clients}
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$temp"' EXIT

mkdir -p "$clients"
cp server/testdata/clients/* "$clients"
(cd "$clients" && npm install --no-audit --no-fund --no-save --silent --legacy-peer-deps)

shared=${SLUICE_SHARED:-../shared}
if [ $# = 0 ] && [ -f "$shared/models/moe-Q4_K_M.gguf" ]; then
	# Claude Code begins with 24,000 tokens.
	set -- --ctx 49152 -m "demo=$shared/models/moe-Q4_K_M.gguf" -m "small=$shared/fixtures/bert.gguf"
	export EMBED_MODEL=small
fi
port=${PORT:-21434}
go build -o "$temp/sluice" ./cmd/sluice
"$temp/sluice" serve --addr "127.0.0.1:$port" "$@" &
server=$!
for _ in $(seq 100); do
	"$temp/sluice" health --addr "127.0.0.1:$port" >/dev/null 2>&1 && break
	sleep 0.2
done
BASE_URL=http://127.0.0.1:$port MODEL=demo node "$clients/table.mjs"
