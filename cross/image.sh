#!/usr/bin/env bash
# Build the image for ARCH with whichever of buildah, podman and docker is there.  image.sh ARCH
#   MODEL=smollm2  puts the model in (default: none, it is mounted)      TAG=NAME  (default: edgeagent:ARCH)
#   BASE=IMAGE     the Debian that the first stage runs in (default: the published one, else a stand-in, said aloud)
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
model=${MODEL:-none} tag=${TAG:-localhost/edgeagent:$ARCH}
published=debian:$IMAGE_SUITE-slim
stand_in=localhost/edgeagent-base:$IMAGE_SUITE
engine=$(command -v buildah || command -v podman || command -v docker) || die "buildah, podman or docker is needed"
began=$SECONDS

"$CROSS/wheels.sh" "$ARCH"
"$CROSS/models.sh" "$model"

# Debian's root file system with pip for this machine's own architecture, as an image.
make_stand_in() {
    local architecture root
    architecture=$(dpkg --print-architecture)
    need mmdebstrap:mmdebstrap
    base() {
        mmdebstrap --mode="$(mmdebstrap_mode)" --variant=minbase --quiet --include=ca-certificates,python3-pip \
            --aptopt='APT::Install-Recommends "false"' "$IMAGE_SUITE" "$1/root.tar" "deb $(mirror) $IMAGE_SUITE main" >&2
    }
    root=$CACHE/base/$architecture-$IMAGE_SUITE-$(key "$(release_of "$IMAGE_SUITE")")
    keep "$root" base
    case $(basename "$engine") in
        buildah)
            local container
            container=$(buildah from scratch)
            buildah add --quiet "$container" "$root/root.tar" / > /dev/null
            buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --cmd bash "$container"
            buildah commit --quiet --rm "$container" "$stand_in" > /dev/null
            ;;
        *) "$engine" import "$root/root.tar" "$stand_in" > /dev/null ;;
    esac
}

inspect() {
    case $(basename "$engine") in
        buildah) buildah inspect --type image "$1" 2> /dev/null ;;
        *) "$engine" image inspect "$1" 2> /dev/null ;;
    esac
}
has_image() { inspect "$1" > /dev/null; }

base=${BASE:-}
if [ -z "$base" ]; then
    if has_image "$published" || { [ -z "${EDGEAGENT_STAND_IN:-}" ] && timeout 60 "$engine" pull --quiet "$published" > /dev/null 2>&1; }; then
        base=$published
        say "base: the published $published"
    else
        base=$stand_in
        has_image "$stand_in" || make_stand_in
        say "base: $published CANNOT BE PULLED HERE; a stand-in made of the same suite's packages takes its place"
    fi
fi

version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$ROOT/edgeagent/version.py")
# Everything that the image is made of. The layers' own cache is not used: buildah 1.28 shares it between architectures.
made_of=$(key "$ROOT/Dockerfile.arm64" "$CROSS/rootfs.sh" "$CROSS/install.py" "$CROSS/targets/$ARCH.env" "$base" "$(release_of "$IMAGE_SUITE")" \
    "$(cd "$ROOT" && find "dist/wheels/$ARCH" "dist/models/$model" examples -type f ! -path '*__pycache__*' -print0 | sort -z | xargs -0 sha256sum)")
if has_image "$tag" && inspect "$tag" | grep -q "$made_of"; then
    say "$tag for $OCI_PLATFORM is there already, in $((SECONDS - began)) s"
    exit
fi
arguments=(--platform "$OCI_PLATFORM" --file "$ROOT/Dockerfile.arm64" --tag "$tag" --label "edgeagent.made-of=$made_of"
    # BuildKit sets this by itself; buildah 1.28 does not.
    --build-arg "BUILDPLATFORM=linux/$(dpkg --print-architecture)" --build-arg "BASE=$base"
    --build-arg "DEB_ARCH=$DEB_ARCH" --build-arg "ARCH=$ARCH" --build-arg "PYTHON=$IMAGE_PYTHON"
    --build-arg "PLATFORMS=$INDEX_PLATFORMS $WHEEL_PLATFORM" --build-arg "MODEL=$model" --build-arg "VERSION=$version")
log=$DIST/image-$ARCH.log
case $(basename "$engine") in
    # chroot isolation needs no container runtime; the docker format keeps HEALTHCHECK.
    buildah) nice -n 19 buildah bud --isolation chroot --pull-never --format docker "${arguments[@]}" "$ROOT" ;;
    podman) nice -n 19 podman build --pull=never --format docker "${arguments[@]}" "$ROOT" ;;
    docker) nice -n 19 docker build "${arguments[@]}" "$ROOT" ;;
esac > "$log" 2>&1 || { tail -20 "$log" >&2; die "the image could not be built; all of it is in $log"; }
say "$tag for $OCI_PLATFORM is built, in $((SECONDS - began)) s"
