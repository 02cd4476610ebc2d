#!/bin/sh
# Lay out a root file system for another architecture:  rootfs.sh DEB_ARCH FOLDER PACKAGE...
# Runs inside the image's build stage, on the machine's own architecture: packages are unpacked, none of their scripts
# runs, so no emulation is needed. What is there is listed in var/lib/dpkg/status.d, where scanners look for it.
set -eu
arch=$1 out=$2
shift 2
work=$(mktemp -d)
chmod 755 "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
: > "$work/status"
apt() {
    apt-get -q -y -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User=root \
        -o Dir::State::status="$work/status" -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" \
        -o APT::Install-Recommends=false "$@"
}
apt update
apt install --download-only "$@"

# Every place is under /usr; these are the old names.
mkdir -p "$out/var/lib/dpkg/status.d"
for each in bin sbin lib; do
    mkdir -p "$out/usr/$each"
    ln -s "usr/$each" "$out/$each"
done
for deb in "$work"/cache/archives/*.deb; do
    name=$(dpkg-deb -f "$deb" Package)
    case $name in
        # Wanted only by scripts that do not run here.
        perl-base | debconf | ucf | sensible-utils | openssl | dpkg | tar | libacl1 | libselinux1 | libpcre2-8-0 | libmd0) continue ;;
    esac
    dpkg-deb -x "$deb" "$out"
    dpkg-deb -f "$deb" > "$out/var/lib/dpkg/status.d/$name"
done
rm -rf "$work"

# Manuals go, licences stay.
find "$out/usr/share/doc" -type f ! -name copyright -delete
find "$out/usr/share/doc" -type l -delete
find "$out/usr/share/doc" -type d -empty -delete
for each in man info locale lintian bug doc-base bash-completion applications pixmaps icons menu; do rm -rf "$out/usr/share/$each"; done
rm -rf "$out"/usr/lib/python3.*/idlelib "$out"/usr/lib/python3.*/turtledemo "$out"/usr/lib/python3.*/lib2to3 \
    "$out"/usr/lib/python3.*/pydoc_data "$out"/usr/share/python3 "$out"/usr/share/binfmts "$out"/etc/apt "$out"/etc/cron* \
    "$out"/etc/init.d "$out"/etc/default "$out"/etc/alternatives "$out"/usr/share/base-passwd "$out"/var/cache "$out"/var/backups

# The public authorities in one file, as the package's own script would write them; without one, https asks nobody.
if [ -d "$out/usr/share/ca-certificates" ]; then
    mkdir -p "$out/etc/ssl/certs"
    cat "$out"/usr/share/ca-certificates/*/*.crt > "$out/etc/ssl/certs/ca-certificates.crt"
    rm -rf "$out/usr/share/ca-certificates"
fi

# Whom the agent runs as, and the places a container runtime mounts over.
mkdir -p "$out/etc" "$out/dev" "$out/proc" "$out/sys" "$out/run" "$out/tmp" "$out/state" "$out/models" "$out/root"
printf 'root:x:0:0:root:/root:/usr/sbin/nologin\nedgeagent:x:10001:10001:edgeagent:/state:/usr/sbin/nologin\n' > "$out/etc/passwd"
printf 'root:x:0:\ndialout:x:20:\nedgeagent:x:10001:\n' > "$out/etc/group"
printf 'hosts: files dns\npasswd: files\ngroup: files\n' > "$out/etc/nsswitch.conf"
chown 10001:10001 "$out/state"
chmod 1777 "$out/tmp"
if [ -x "$out/usr/bin/busybox" ]; then ln -sf busybox "$out/usr/bin/sh"; fi
