#!/usr/bin/env bash
# Install what the other scripts need, on Debian or Ubuntu, as root; nothing is done where all of it is there.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
packages=(cmake ninja-build patchelf mmdebstrap qemu-user-static binfmt-support
    {gcc,g++}-{aarch64-linux-gnu,arm-linux-gnueabihf,riscv64-linux-gnu}
    buildah podman runc uidmap netavark aardvark-dns containernetworking-plugins skopeo)
missing=()
for each in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$each" 2> /dev/null || true)" = installed ] || missing+=("$each")
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "-- installing: ${missing[*]}"
    apt-get update -q > /dev/null
    apt-get install -q -y --no-install-recommends "${missing[@]}" > /dev/null
fi
# Always: the kernel forgets the registrations when binfmt_misc is unmounted.
update-binfmts --enable
