#!/usr/bin/env bash
# The figures of what was built, as JSON for bench/budgets.json: sizes, and how long a bare start takes under emulation.
#   figures.sh ARCH...
. "$(dirname "$0")/common.sh"
STARTS='import subprocess, time
def took(*command):
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began
# In turn, and the fastest of each: other work on the machine must not be taken for ours.
pairs = [(took("python3", "-c", "pass"), took("edgeagent", "--version")) for _ in range(5)]
print(round(min(version for _, version in pairs) / min(bare for bare, _ in pairs), 2))'
rows=()
for each; do
    load_target "$each"
    name=${ARCH//-/_}
    rows+=("\"image_${name}_mb\": $("$PYTHON" -c 'import sys; print(round(int(sys.argv[1]) / 1e6, 2))' "$("$CROSS/size.sh" "$ARCH")")")
    # One container for all starts, since starting that one is not what is measured.
    rows+=("\"version_start_${name}_ratio\": $(EXTRA="--entrypoint python3" "$CROSS/run.sh" "$ARCH" -c "$STARTS" 2> /dev/null)")
done
own=$(ls "$DIST"/wheels/*/edgeagent-*.whl | head -1)
rows+=("\"wheel_kb\": $("$PYTHON" -c 'import os, sys; print(round(os.path.getsize(sys.argv[1]) / 1e3, 1))' "$own")")
(IFS=,; echo "{${rows[*]}}" | sed 's/,"/, "/g')
