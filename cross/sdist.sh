#!/usr/bin/env bash
# Where is the source distribution of NAME in the version of pins/sources.txt?  sdist.sh NAME  prints its path.
# pip fetches it, as pip is set up here, and the digest is held against the pinned one.
. "$(dirname "$0")/common.sh"
read -r pin sha256 < <(grep "^$1==" "$CROSS/pins/sources.txt") || die "$1 is not in pins/sources.txt"
folder=$CACHE/sdist/${pin/==/-}-${sha256:0:20}

fetch() {
    "$PYTHON" -m pip download --quiet --no-deps --no-binary=:all: --dest "$1" "$pin" >&2
    echo "$sha256  $(ls "$1"/*.tar.gz)" | sha256sum --check --quiet >&2 || die "$pin: its SHA-256 is not the pinned one"
}

keep "$folder" fetch
ls "$folder"/*.tar.gz
