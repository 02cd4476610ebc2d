#!/usr/bin/env bash
# Write pins/ARCH-PYTHON.txt: what comes from the index, each with the digest of the wheel. pin.sh ARCH
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
for system in $SYSTEMS; do
    python=${system#*:}
    folder=$(mktemp -d)
    grep -v '^#' "$CROSS/pins/names.txt" > "$folder/names"
    for each in $FROM_DEBIAN $COMPILED $NOT_HERE; do sed -i "/^$each==/d" "$folder/names"; done
    index_pip "$python" download --dest "$folder" -r "$folder/names" >&2
    {
        echo "# Made by pin.sh from names.txt."
        for wheel in "$folder"/*.whl; do
            IFS=- read -r name version _ <<< "$(basename "$wheel")"
            echo "$name==$version --hash=sha256:$(sha256sum < "$wheel" | cut -d' ' -f1)"
        done
    } > "$CROSS/pins/$PINS-$python.txt"
    rm -rf "$folder"
done
