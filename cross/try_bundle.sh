#!/usr/bin/env bash
# Does the bundle of ARCH install on a bare Debian, with no network and no compiler?  try_bundle.sh ARCH [SUITE]
# In a root file system of that architecture, under emulation; needs root for chroot.
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
suite=${2:-${SYSTEMS%%:*}}
need mmdebstrap:mmdebstrap unshare:util-linux
[ "$(id -u)" = 0 ] || die "chroot needs root"
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$ROOT/edgeagent/version.py")
bundle=$DIST/bundle/edgeagent-$version-$ARCH.tar
[ -f "$bundle" ] || die "$bundle is missing; make bundle ARCH=$ARCH"
packages=base-files,base-passwd,bash,dash,coreutils,grep,sed,findutils,tar,libc-bin,python3,python3-venv,libstdc++6

bare() {
    mmdebstrap --mode=root --variant=extract --quiet --architectures="$DEB_ARCH" --aptopt='APT::Install-Recommends "false"' \
        --include="$packages" "$suite" "$1/root.tar" "deb $(mirror) $suite main" >&2
}
system=$CACHE/bare/$ARCH-$suite-$(key "$(release_of "$suite")" "$packages")
keep "$system" bare

work=$(mktemp -d "${TMPDIR:-/tmp}/edgeagent-bundle.XXXXXX")
trap 'umount "$work/proc" 2> /dev/null || true; rm -rf "$work"' EXIT
began=$SECONDS
tar xf "$system/root.tar" -C "$work"
mkdir -p "$work/proc" "$work/root/bundle" "$work/etc/ssl/certs"
# What the script of ca-certificates does on a real system; trixie's pip does not start without the file.
cat "$work"/usr/share/ca-certificates/mozilla/*.crt > "$work/etc/ssl/certs/ca-certificates.crt"
mount -t proc proc "$work/proc"
tar xf "$bundle" -C "$work/root/bundle" --strip-components=1
[ ! -e "$work/usr/bin/cc" ] || die "a compiler is there, so this would prove nothing"
# A network of its own with nothing in it, and none of this machine's settings; the CPU as in run.sh.
unshare --net env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 QEMU_CPU="$FLOOR" \
    chroot "$work" /bin/sh /root/bundle/install.sh --no-service
unshare --net env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 QEMU_CPU="$FLOOR" EDGEAGENT_MODELS=/opt/edgeagent/models \
    chroot "$work" /opt/edgeagent/bin/python -m pip check
say "$ARCH: the bundle installs on a bare $suite, without network and compiler, in $((SECONDS - began)) s"
