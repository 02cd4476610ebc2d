#!/usr/bin/env bash
# Lay out every artefact in dist/release: images, bundles, our wheel, SBOM, checksums.  release.sh [ARCH...]
. "$(dirname "$0")/common.sh"
arches=("$@")
[ ${#arches[@]} -gt 0 ] || arches=(aarch64 armv7 armv7-no-neon riscv64)
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$ROOT/edgeagent/version.py")
out=$DIST/release/edgeagent-$version
rm -rf "$out"
mkdir -p "$out"
for each in "${arches[@]}"; do
    "$CROSS/image.sh" "$each"
    "$CROSS/bundle.sh" "$each"
    ln -f "$DIST/bundle/edgeagent-$version-$each.tar" "$out/" 2> /dev/null || cp "$DIST/bundle/edgeagent-$version-$each.tar" "$out/"
    if command -v skopeo > /dev/null; then
        skopeo copy --quiet --dest-compress-format gzip "containers-storage:localhost/edgeagent:$each" \
            "oci-archive:$out/edgeagent-$version-$each-image.tar:edgeagent:$version-$each"
    else
        engine=$(command -v podman || command -v docker)
        "$engine" save "localhost/edgeagent:$each" | gzip -6n > "$out/edgeagent-$version-$each-image.tar.gz"
    fi
    "$PYTHON" "$CROSS/sbom.py" "$DIST/wheels/$each" "$each" "$version" > "$out/edgeagent-$version-$each.spdx.json"
done
cp "$DIST/wheels/${arches[0]}"/edgeagent-*.whl "$out/"
cp "$ROOT/CHANGELOG.md" "$out/" 2> /dev/null || true
(cd "$out" && sha256sum -- * > SHA256SUMS)
say "$out: $(ls "$out" | wc -l) files, $(du -sh "$out" | cut -f1)"
