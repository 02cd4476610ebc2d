#!/usr/bin/env bash
# Install what the other scripts need, on Debian or Ubuntu, as root; nothing is done where all of it is there.
# Ends with 75 and the reason where they cannot be had (no root, no Debian, no mirror, a kernel that registers nothing, or
# one that confines no container).
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
packages=(cmake ninja-build patchelf openssl mmdebstrap qemu-user-static binfmt-support
    {gcc,g++}-{aarch64-linux-gnu,arm-linux-gnueabihf,riscv64-linux-gnu}
    buildah podman runc uidmap netavark aardvark-dns containernetworking-plugins skopeo)
cannot() { echo "-- the cross tools cannot be had here: $*" >&2; exit 75; }
apt() { apt-get -q -y -o Acquire::Retries=1 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 "$@"; }

missing=()
for each in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$each" 2> /dev/null || true)" = installed ] || missing+=("$each")
done
if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get > /dev/null || cannot "this is no Debian; missing: ${missing[*]}"
    [ "$(id -u)" = 0 ] || cannot "apt-get needs root; missing: ${missing[*]}"
    echo "-- installing: ${missing[*]}"
    apt update > /dev/null && apt install --no-install-recommends "${missing[@]}" > /dev/null || cannot "apt-get failed, see above"
fi
# Always: the kernel forgets the registrations when binfmt_misc is unmounted.
update-binfmts --enable || cannot "update-binfmts could not register the emulators"
for each in aarch64 arm riscv64; do
    [ -e "/proc/sys/fs/binfmt_misc/qemu-$each" ] || cannot "the kernel has no emulator registered for $each"
done

# The smallest container there is, confined as a device's: the emulator is one file that needs nothing else.
probe=localhost/edgeagent:probe
confined() {
    podman run --rm --pull=never --network=none --memory=64m --memory-swap=64m --read-only --cap-drop=all "$probe" /emulator --version
}
confined_container_runs() {
    local container
    container=$(buildah from scratch) || return 1
    buildah copy --quiet "$container" /usr/bin/qemu-aarch64-static /emulator > /dev/null || return 1
    buildah commit --quiet --rm "$container" "$probe" > /dev/null || return 1
    confined > /dev/null 2>&1 || CONTAINERS_CONF=$(dirname "$0")/containers.conf confined > /dev/null
}
confined_container_runs || cannot "podman runs no confined container, see above"
podman rmi "$probe" > /dev/null
