# Sourced by every script here: where things are, and how a result is kept under the digest of what it was made from.
set -euo pipefail
CROSS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$CROSS")
DIST=$ROOT/dist
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/edgeagent/cross
PYTHON=${PYTHON:-python3}
mkdir -p "$CACHE" "$DIST"

die() { echo "$0: $*" >&2; exit 1; }
say() { echo "-- $*" >&2; }

# Read the target's table. Every script takes ARCH as its first argument.
load_target() {
    [ -f "$CROSS/targets/${1:-}.env" ] || die "ARCH is '${1:-}'; it must be one of: $(cd "$CROSS/targets" && echo *.env | sed 's/\.env//g')"
    ARCH=$1
    . "$CROSS/targets/$ARCH.env"
    IMAGE_SUITE=${SYSTEMS##* } IMAGE_PYTHON=${IMAGE_SUITE#*:} IMAGE_SUITE=${IMAGE_SUITE%:*}
}

# key FILE-OR-TEXT... : one digest of all the files' contents and all the texts.
key() {
    local each
    for each; do
        if [ -f "$each" ]; then sha256sum < "$each"; else printf '%s\n' "$each"; fi
    done | sha256sum | cut -c1-20
}

# keep FOLDER COMMAND... : the folder is there and whole; else the command fills FOLDER.new, which then gets the name.
# Two at once are fine: who comes second waits.
keep() {
    local folder=$1 began=$SECONDS
    shift
    mkdir -p "$(dirname "$folder")"
    (
        flock 9
        if [ -e "$folder" ]; then
            say "cached: ${folder#"$CACHE"/}"
        else
            rm -rf "$folder.new"
            mkdir -p "$folder.new"
            # Not "cmd || die": bash would switch -e off inside.
            "$@" "$folder.new"
            mv "$folder.new" "$folder"
            say "made: ${folder#"$CACHE"/} in $((SECONDS - began)) s"
        fi
    ) 9> "$folder.lock"
}

need() {
    local program package
    for each; do
        program=${each%%:*} package=${each#*:}
        command -v "$program" > /dev/null || die "$program is missing; make cross-tools, or apt-get install $package"
    done
}

# The Debian mirror that apt itself is set to, in both formats of its lists.
mirror() {
    local found
    found=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2> /dev/null | grep -v security | head -1)
    [ -n "$found" ] || die "apt has no package source; run apt-get update"
    echo "$found"
}

# What Debian calls this suite's state today: the digest of its signed index. Without a network the last known one.
release_of() {
    local known=$CACHE/release-$1 fresh=$CACHE/release-$1.$$
    if /usr/lib/apt/apt-helper download-file "$(mirror)dists/$1/InRelease" "$fresh" > /dev/null 2>&1; then
        mv "$fresh" "$known"
    fi
    [ -f "$known" ] || die "the mirror does not answer for $1, and no earlier answer is kept"
    sha256sum < "$known" | cut -c1-20
}

# root mode keeps the right owners; without root, user namespaces do.
mmdebstrap_mode() { if [ "$(id -u)" = 0 ]; then echo root; else echo unshare; fi; }

# pip for the target's Python, run by ours: index_pip PYTHON COMMAND ARGUMENTS...
index_pip() {
    local python=$1 platforms=() each
    shift
    for each in $INDEX_PLATFORMS $WHEEL_PLATFORM; do platforms+=(--platform "$each"); done
    "$PYTHON" -m pip --disable-pip-version-check --quiet "$1" --only-binary=:all: --no-deps --implementation cp \
        --python-version "$python" --abi "cp${python/./}" --abi abi3 --abi none "${platforms[@]}" "${@:2}" 2> >(grep -v "is ignored: it is neither" >&2 || true)
}
