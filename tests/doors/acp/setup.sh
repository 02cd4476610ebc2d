#!/bin/sh
# Install the editors that the door of editors is tried with: the protocol's Python SDK, and acpx by npm. What is
# downloaded goes under the cache directory, outside the clone; running it again costs nothing.
# Without npm acpx is left out, and its tests say so; where CI is set that is a failure.
set -eu

cache="${XDG_CACHE_HOME:-$HOME/.cache}/edgeagent/editors"
python="${PYTHON:-python3}"
acpx=0.19.1
# Node reads only certificates of its own; those of a network's proxy stand among the system's.
export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}"
mkdir -p "$cache"

"$python" -m pip install -q 'agent-client-protocol>=0.12'

if [ ! -f "$cache/acpx-$acpx/node_modules/.bin/acpx" ]; then
    if ! command -v npm >/dev/null; then
        echo "SKIPPED: there is no npm, so acpx is not tried: apt-get install npm" >&2
        [ -z "${CI:-}" ]
        exit
    fi
    work="$(mktemp -d)"
    (cd "$work" && npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$work" "acpx@$acpx" >/dev/null)
    rm -rf "$cache/acpx-$acpx"
    mv "$work" "$cache/acpx-$acpx"
fi
