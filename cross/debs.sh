#!/usr/bin/env bash
# Where are Debian's builds of the packages that the index lacks?  debs.sh ARCH SUITE PYTHON  prints the folder.
# It holds usr/lib (modules, libraries), usr/share/doc (licences) and include (Python's headers for this architecture).
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
suite=$2 python=$3
need mmdebstrap:mmdebstrap

packages=libpython$python-dev
for each in $FROM_DEBIAN; do packages+=,python3-$each; done
folder=$CACHE/debs/$ARCH-$suite-$(key "$(release_of "$suite")" "$packages" "$CROSS/debs.sh")

take() {
    local out=$1 root=$1.root
    rm -rf "$root"
    # "extract" only unpacks: no maintainer script runs, so no emulation is needed.
    mmdebstrap --mode="$(mmdebstrap_mode)" --variant=extract --architectures="$DEB_ARCH" --quiet \
        --aptopt='APT::Install-Recommends "false"' --include="$packages" "$suite" "$root" "deb $(mirror) $suite main" >&2
    mkdir -p "$out/usr/lib/python3" "$out/usr/lib/$TRIPLET" "$out/usr/share/doc" "$out/include"
    cp -a "$root/usr/include/python$python" "$root/usr/include/$TRIPLET" "$out/include/"
    # Only Python's headers: the C library's are the cross compiler's own.
    find "$out/include/$TRIPLET" -mindepth 1 -maxdepth 1 ! -name "python$python" -exec rm -rf {} +
    for each in $FROM_DEBIAN; do
        mkdir -p "$out/usr/lib/python3/dist-packages"
        cp -a "$root/usr/lib/python3/dist-packages/$each"* "$out/usr/lib/python3/dist-packages/"
        cp -a "$root/usr/share/doc/python3-$each" "$out/usr/share/doc/"
    done
    cp -a "$root/usr/lib/$TRIPLET/"{blas,lapack,libgfortran.so.5*} "$out/usr/lib/$TRIPLET/" 2> /dev/null || true
    rm -rf "$root"
}

keep "$folder" take
echo "$folder"
