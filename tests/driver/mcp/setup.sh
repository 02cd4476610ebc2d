#!/bin/sh
# Install what is tried with MCP: its Python SDK, and four servers, two by pip and two by npm. What is downloaded by npm goes under the
# cache directory, outside the clone; running it again costs nothing.
# Without npm those two are left out, and their tests say so; where CI is set that is a failure.
set -eu

cache="${XDG_CACHE_HOME:-$HOME/.cache}/edgeagent/mcp"
python="${PYTHON:-python3}"
set -- @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-everything@2026.8.31
# Node reads only certificates of its own; those of a network's proxy stand among the system's.
export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}"
mkdir -p "$cache"

"$python" -m pip install -q mcp-server-time mcp-server-git mcp

if [ ! -f "$cache/1/node_modules/.bin/mcp-server-everything" ]; then
    if ! command -v npm >/dev/null; then
        echo "SKIPPED: there is no npm, so two servers are not tried: apt-get install npm" >&2
        [ -z "${CI:-}" ]
        exit
    fi
    work="$(mktemp -d)"
    (cd "$work" && npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$work" "$@" >/dev/null)
    rm -rf "$cache/1"
    mv "$work" "$cache/1"
fi
