#!/usr/bin/env bash
# Put the model NAME into dist/models/NAME as the store keeps it, for images and bundles.  models.sh NAME|none
. "$(dirname "$0")/common.sh"
name=${1:-none}
mkdir -p "$DIST/models/$name"
if [ "$name" = none ]; then
    echo "Mount a folder with NAME.gguf and NAME.json here, as 'edgeagent model pull NAME' lays them out." > "$DIST/models/none/README"
    exit
fi
store=${EDGEAGENT_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/edgeagent/models}
[ -f "$store/$name.gguf" ] || die "the model $name is not here yet; edgeagent model pull $name"
ln -f "$store/$name.gguf" "$store/$name.json" "$DIST/models/$name/" 2> /dev/null || cp "$store/$name.gguf" "$store/$name.json" "$DIST/models/$name/"
