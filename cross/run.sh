#!/usr/bin/env bash
# Run the image of ARCH as a device would hold it: no network, read-only, no capabilities, little memory.
#   run.sh ARCH ARGUMENTS...      EXTRA="-v ..." adds options; the model store is mounted on /models
#   SECONDS_MAX=N  has podman kill it after N seconds (docker has no such option)
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
shift
engine=$(command -v podman || command -v docker) || die "podman or docker is needed to run an image"
store=${EDGEAGENT_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/edgeagent/models}
tag=${TAG:-localhost/edgeagent:$ARCH}
confined=(--rm --network=none --memory="${MEMORY_MB}m" --memory-swap="${MEMORY_MB}m" --read-only --cap-drop=all
    --security-opt=no-new-privileges --platform "$OCI_PLATFORM" -v "$store:/models:ro")
if [ "$(basename "$engine")" = podman ]; then
    confined+=(--pull=never --timeout="${SECONDS_MAX:-0}")
    if ! podman run --rm --pull=never --platform "$OCI_PLATFORM" "$tag" --version > /dev/null 2>&1; then
        export CONTAINERS_CONF=$CROSS/containers.conf
    fi
fi
# Always on the weakest CPU that must do. For ARM that is also the fastest to emulate: QEMU's default computes pointer
# authentication in software at every call of a function, and Debian's Python is built with it (12 times slower).
confined+=(-e "QEMU_CPU=$FLOOR")
# EXTRA is meant to be split into words.
# shellcheck disable=SC2086
exec "$engine" run "${confined[@]}" ${EXTRA:-} "$tag" "$@"
