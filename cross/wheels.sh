#!/usr/bin/env bash
# Make dist/wheels/ARCH: everything that a device installs, for each Python in SYSTEMS.  wheels.sh ARCH
#     pip install --no-index --find-links dist/wheels/ARCH edgeagent
# From the index comes what it has (pinned with digests); the rest is made here once and kept under its content's digest.
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
need patchelf:patchelf "$TRIPLET-gcc:gcc-$TRIPLET"
compiler=$("$TRIPLET-gcc" --version | head -1)
house=$DIST/wheels/$ARCH
began=$SECONDS

from_index() { index_pip "$1" download --require-hashes --dest "$3" -r "$2"; }
packed() { "$PYTHON" "$CROSS/pack.py" "${@:1:$#-1}" "${@: -1}" > /dev/null; }

# Our own wheel: the Python part alone, no matter where and when it is built.
own() {
    local tree=$1.tree
    rm -rf "$tree"
    mkdir -p "$tree"
    cp -r "$ROOT/edgeagent" "$ROOT/pyproject.toml" "$ROOT/README.md" "$tree/"
    find "$tree" -name __pycache__ -prune -exec rm -rf {} +
    SOURCE_DATE_EPOCH=315532800 "$PYTHON" -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir "$1" "$tree" 2> "$1.log" ||
        { cat "$1.log" >&2; die "edgeagent's own wheel could not be built"; }
    rm -rf "$tree" "$1.log"
}

gather() {
    rm -rf "$house"
    mkdir -p "$house"
    local folder
    for folder; do cp "$folder"/*.whl "$house/"; done
}

made=()
sdist=$("$CROSS/sdist.sh" llama-cpp-python)
libraries=$("$CROSS/llama.sh" "$ARCH")
folder=$CACHE/wheels/llama-$ARCH-$(key "$(basename "$libraries")" "$sdist" "$CROSS/pack.py")
keep "$folder" packed llama "$sdist" "$libraries" "$WHEEL_PLATFORM"
made+=("$folder")

for system in $SYSTEMS; do
    suite=${system%:*} python=${system#*:}
    pins=$CROSS/pins/$PINS-$python.txt
    folder=$CACHE/wheels/index-$PINS-$python-$(key "$pins")
    keep "$folder" from_index "$python" "$pins"
    made+=("$folder")
    [ -n "$FROM_DEBIAN$COMPILED" ] || continue
    stage=$("$CROSS/debs.sh" "$ARCH" "$suite" "$python")
    for each in $FROM_DEBIAN; do
        folder=$CACHE/wheels/$each-$PINS-$python-$(key "$(basename "$stage")" "$CROSS/pack.py")
        keep "$folder" packed debian "$each" "$stage" "$python" "$WHEEL_PLATFORM"
        made+=("$folder")
    done
    for each in $COMPILED; do
        sdist=$("$CROSS/sdist.sh" "$each")
        folder=$CACHE/wheels/$each-$PINS-$python-$(key "$(basename "$stage")" "$sdist" "$compiler" "$CROSS/pack.py")
        keep "$folder" packed compiled "$each" "$sdist" "$stage" "$python" "$TRIPLET" "$WHEEL_PLATFORM"
        made+=("$folder")
    done
done

folder=$CACHE/wheels/own-$(key "$ROOT/pyproject.toml" "$ROOT/README.md" "$(cd "$ROOT" && find edgeagent -type f ! -path '*__pycache__*' -print0 | sort -z | xargs -0 sha256sum)")
keep "$folder" own
made+=("$folder")

gather "${made[@]}"
say "$house: $(ls "$house" | wc -l) wheels, $(du -sh "$house" | cut -f1), in $((SECONDS - began)) s"
"$PYTHON" "$CROSS/check_elf.py" "$house" "$ARCH"
