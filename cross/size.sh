#!/usr/bin/env bash
# How many bytes does the image of ARCH take on the wire?  size.sh ARCH  prints the gzip-compressed size of its layers.
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
tag=${TAG:-localhost/edgeagent:$ARCH}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if command -v skopeo > /dev/null; then
    skopeo copy --quiet --dest-compress-format gzip --dest-compress "containers-storage:$tag" "dir:$work" > /dev/null
    (cd "$work" && cat $(ls | grep -v -E '^(manifest.json|version)$')) | wc -c
else
    engine=$(command -v podman || command -v docker)
    "$engine" save "$tag" | gzip -6 | wc -c
fi
