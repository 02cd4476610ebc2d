#!/usr/bin/env bash
# Make dist/bundle/edgeagent-VERSION-ARCH.tar: all that a device needs, for install.sh in it.  bundle.sh ARCH
#   MODEL=smollm2 (default), or none
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
model=${MODEL:-smollm2}
"$CROSS/wheels.sh" "$ARCH"
"$CROSS/models.sh" "$model"

version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$ROOT/edgeagent/version.py")
name=edgeagent-$version-$ARCH
folder=$DIST/bundle/$name
rm -rf "$folder"
mkdir -p "$folder/wheels" "$folder/models"
cp "$DIST/wheels/$ARCH"/*.whl "$folder/wheels/"
cp "$DIST/models/$model"/* "$folder/models/"
cp -r "$ROOT/examples" "$folder/"
find "$folder" -name __pycache__ -prune -exec rm -rf {} +
cp "$CROSS/install.sh" "$CROSS/systemd/edgeagent.service" "$CROSS/systemd/edgeagent.socket" "$folder/"
pythons=
for system in $SYSTEMS; do pythons="${system#*:} $pythons"; done
machine=${WHEEL_PLATFORM#linux_}
printf 'MACHINE=%s\nPYTHONS="%s"\nTRIPLET=%s\nMODEL=%s\n' "$machine" "${pythons% }" "$TRIPLET" "$model" > "$folder/target"
chmod -R u=rwX,go=rX "$folder"
chmod 755 "$folder/install.sh"
(cd "$folder" && find . -type f ! -name SHA256SUMS -print0 | sort -z | xargs -0 sha256sum > SHA256SUMS)
# The model and the wheels are compressed already. The same contents give the same bytes.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@315532800 -C "$DIST/bundle" -cf "$folder.tar" "$name"
rm -rf "$folder"
say "$folder.tar: $(du -h "$folder.tar" | cut -f1)"
