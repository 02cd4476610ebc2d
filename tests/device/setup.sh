#!/bin/sh
# Install what the device tests speak with, on Debian. Everything that is downloaded goes under the cache directory,
# outside the clone; running it again costs nothing. Linux armhf (33 MB) only with --linux, Optiboot only with --optiboot.
set -eu

cache="${XDG_CACHE_HOME:-$HOME/.cache}/edgeagent/device-targets"
# Node reads only certificates of its own; those of a network's proxy stand among the system's.
export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}"
python="${PYTHON:-python3}"
mkdir -p "$cache"

missing=""
for package in qemu-system-arm u-boot-qemu firmware-microbit-micropython libc6-i386 lib32gcc-s1 busybox-static ser2net lrzsz \
    gcc-arm-none-eabi libnewlib-arm-none-eabi; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
    sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -q
    # shellcheck disable=SC2086  # a list of packages
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends $missing
fi

"$python" -m pip install -q 'pyserial>=3.5' 'pymodbus>=3.16' 'minimalmodbus>=2.1' 'pyvisa>=1.14' 'pyvisa-sim>=0.6' 'smpclient==7.3.0'

# The prebuilt Zephyr programs are only in the source distribution.
if [ ! -d "$cache/smpclient-7.3.0" ]; then
    (cd "$cache" && "$python" -m pip download -q --no-binary :all: --no-deps smpclient==7.3.0)
    tar -xzf "$cache"/smpclient-7.3.0.tar.gz -C "$cache"
fi
(cd "$cache/smpclient-7.3.0/tests/fixtures/smp-server" &&
    grep -E '(native_sim_shell|native_sim_serial)\.exe|cortex_m0_serial\.merged\.hex' SHA256SUMS | sha256sum -c --quiet -)

debian_file() { # package, where it is unpacked
    if [ ! -d "$cache/$2" ]; then
        # apt-get download drops its rights; /tmp is where it may write.
        work="$(mktemp -d)"
        chmod 755 "$work"
        (cd "$work" && apt-get download -q "$1" 2>/dev/null)
        dpkg-deb -x "$work"/"$1"_*.deb "$cache/$2"
        rm -r "$work"
    fi
}

for option in "$@"; do
    case "$option" in
    --linux) debian_file debian-installer-12-netboot-armhf linux-armhf ;;
    --optiboot)
        debian_file arduino-core-avr arduino
        [ -d "$cache/node_modules/avr8js" ] || (cd "$cache" && npm install --silent --no-audit --no-fund avr8js@0.21.1)
        ;;
    *)
        echo "usage: $0 [--linux] [--optiboot]" >&2
        exit 2
        ;;
    esac
done
echo "device targets are in $cache"
