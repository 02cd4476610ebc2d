#!/usr/bin/env bash
# The figures of what was built, as JSON for bench/budgets.json: sizes, and how long a bare start takes under emulation.
#   figures.sh ARCH...
. "$(dirname "$0")/common.sh"
rows=()
for each; do
    load_target "$each"
    name=${ARCH//-/_}
    rows+=("\"image_${name}_mb\": $("$PYTHON" -c 'import sys; print(round(int(sys.argv[1]) / 1e6, 2))' "$("$CROSS/size.sh" "$ARCH")")")
    # One container for all starts, since starting that one is not what is measured.
    times=$(EXTRA="--entrypoint sh" "$CROSS/run.sh" "$ARCH" -c '
        now() { date +%s%N; }
        for i in 1 2 3; do
            a=$(now); python3 -c pass; b=$(now); edgeagent --version > /dev/null; c=$(now)
            echo $(((b - a) / 1000)) $(((c - b) / 1000))
        done' 2> /dev/null)
    rows+=("\"version_start_${name}_ratio\": $(echo "$times" | "$PYTHON" -c 'import sys
rows = [tuple(map(int, line.split())) for line in sys.stdin]
print(round(min(version for _, version in rows) / min(bare for bare, _ in rows), 2))')")
done
own=$(ls "$DIST"/wheels/*/edgeagent-*.whl | head -1)
rows+=("\"wheel_kb\": $("$PYTHON" -c 'import os, sys; print(round(os.path.getsize(sys.argv[1]) / 1e3, 1))' "$own")")
(IFS=,; echo "{${rows[*]}}" | sed 's/,"/, "/g')
