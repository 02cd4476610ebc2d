#!/bin/sh
# Install what the tests of the page drive it with, on Debian: Chromium, playwright, axe-core. What is downloaded besides
# packages goes under the cache directory, outside the clone; running it again costs nothing.
# Without Chromium the tests are skipped, and say so; where CI is set that is a failure.
set -eu

cache="${XDG_CACHE_HOME:-$HOME/.cache}/edgeagent/web"
python="${PYTHON:-python3}"
axe=4.14.1
# Node reads only certificates of its own; those of a network's proxy stand among the system's.
export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}"
mkdir -p "$cache"

if ! command -v chromium >/dev/null; then
    if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
        echo "SKIPPED: there is no Chromium, and no right to install it: apt-get install chromium" >&2
        [ -z "${CI:-}" ]
        exit
    fi
    sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -q
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core
fi

"$python" -m pip install -q 'playwright>=1.50'

if [ ! -f "$cache/axe-$axe.js" ]; then
    work="$(mktemp -d)"
    (cd "$work" && npm pack --silent "axe-core@$axe" >/dev/null && tar -xzf "axe-core-$axe.tgz" package/axe.min.js)
    mv "$work/package/axe.min.js" "$cache/axe-$axe.js"
    rm -r "$work"
fi
