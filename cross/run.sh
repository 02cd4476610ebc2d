#!/usr/bin/env bash
# Run the image of ARCH as a device would hold it: no network, read-only, no capabilities, little memory.
#   run.sh ARCH ARGUMENTS...      EXTRA="-v ..." adds options; the model store is mounted on /models
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
shift
engine=$(command -v podman || command -v docker) || die "podman or docker is needed to run an image"
store=${EDGEAGENT_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/edgeagent/models}
tag=${TAG:-localhost/edgeagent:$ARCH}
confined=(--rm --network=none --memory="${MEMORY_MB}m" --memory-swap="${MEMORY_MB}m" --read-only --cap-drop=all
    --security-opt=no-new-privileges --platform "$OCI_PLATFORM" -v "$store:/models:ro")
if [ "$(basename "$engine")" = podman ]; then
    confined+=(--pull=never)
    if ! podman run --rm --pull=never --platform "$OCI_PLATFORM" "$tag" --version > /dev/null 2>&1; then
        export CONTAINERS_CONF=$CROSS/containers.conf
    fi
fi
# EXTRA is meant to be split into words.
# shellcheck disable=SC2086
exec "$engine" run "${confined[@]}" ${EXTRA:-} "$tag" "$@"
