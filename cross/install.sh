#!/bin/sh
# Install this bundle on the device: no network, no compiler.   sudo ./install.sh [--no-service] [PREFIX]
# PREFIX is /opt/edgeagent if not given. It is a Python environment of its own; removing the folder removes everything.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
service=yes
if [ "${1:-}" = --no-service ]; then service=no; shift; fi
prefix=${1:-/opt/edgeagent}
fail() { echo "install.sh: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || [ -w "$(dirname "$prefix")" ] || fail "$prefix cannot be written; run it with sudo, or give another PREFIX"
(cd "$here" && sha256sum --check --quiet SHA256SUMS) || fail "the bundle is damaged; copy it again"
. "$here/target"

machine=$(uname -m)
# A 32-bit system often runs on a 64-bit kernel: what counts is what Python is.
[ "$(getconf LONG_BIT)" = 64 ] || case $machine in aarch64 | armv8l) machine=armv7l ;; esac
[ "$machine" = "$MACHINE" ] || fail "this bundle is for $MACHINE, and this system is $machine"
python=
for version in $PYTHONS; do
    if command -v "python$version" > /dev/null; then python=python$version; break; fi
done
[ -n "$python" ] || fail "Python $(echo "$PYTHONS" | sed 's/ / or /g') is needed (Debian: apt-get install python3 python3-venv)"
"$python" -c 'import ensurepip' 2> /dev/null || fail "the module venv is missing (Debian: apt-get install python3-venv)"
[ -e /usr/lib/"$TRIPLET"/libstdc++.so.6 ] || fail "libstdc++6 is missing (Debian: apt-get install libstdc++6)"

"$python" -m venv "$prefix"
# pip's own settings could point elsewhere; this install looks into the bundle alone.
PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_FIND_LINKS="$here/wheels" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT= \
    "$prefix/bin/python" -m pip install --quiet --only-binary=:all: 'edgeagent[serial]'
mkdir -p "$prefix/models" "$prefix/share"
cp "$here"/models/* "$prefix/models/"
cp -r "$here/examples" "$prefix/share/"
chmod -R a+rX "$prefix"

"$prefix/bin/edgeagent" --version
# The sentence says which bundle to take instead, if this CPU lacks an instruction.
"$prefix/bin/edgeagent" check --cpu

if [ "$service" = yes ] && [ -d /run/systemd/system ]; then
    mkdir -p /etc/edgeagent
    [ -e /etc/edgeagent/edgeagent.toml ] || printf '[model]\nname = "%s"\ncontext_tokens = 2048\n' "$MODEL" > /etc/edgeagent/edgeagent.toml
    for unit in edgeagent.service edgeagent.socket; do
        sed "s#/opt/edgeagent#$prefix#g" "$here/$unit" > "/etc/systemd/system/$unit"
    done
    systemctl daemon-reload
    echo "Now: systemctl enable --now edgeagent"
else
    echo "Now: EDGEAGENT_MODELS=$prefix/models $prefix/bin/edgeagent run $prefix/share/examples/greenhouse.py \"Open the north valve for 30 seconds.\""
fi
