#!/usr/bin/env bash
# Does ARCH behave as every other?  conformance.sh ARCH  runs, in the image of ARCH under emulation:
#   the pure tests · every golden trace byte for byte · the preflight on the weakest CPU and on one below it ·
#   a model asked over TLS by the image's own curl · one call of the greenhouse by the real model, confined as on a device
# What the model writes freely is not compared between CPUs, since rounding differs; that it is valid is.
#   STEPS="traces floor far greenhouse tests call"  chooses; `call` is the smallest agent, of one tool
#   EDGEAGENT_IMAGE_READY=1  takes the image that is there
#   EDGEAGENT_ASK_AGAIN=1  runs although the same image passed the same tests before
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
steps=${STEPS:-traces floor far greenhouse tests}
[ -n "${EDGEAGENT_IMAGE_READY:-}" ] || "$CROSS/image.sh" "$ARCH"
began=$SECONDS

# pip with dependencies, for the tests' own packages; they are no part of the image.
test_site() {
    local platforms=() each
    for each in $INDEX_PLATFORMS $WHEEL_PLATFORM; do platforms+=(--platform "$each"); done
    "$PYTHON" -m pip --disable-pip-version-check install --quiet --only-binary=:all: --implementation cp \
        --python-version "$IMAGE_PYTHON" --abi "cp${IMAGE_PYTHON/./}" --abi abi3 --abi none "${platforms[@]}" \
        --target "$1" -r "$CROSS/pins/tests.txt" 2> >(grep -v "is ignored: it is neither" >&2 || true)
    rm -rf "$1"/edgeagent* "$1"/typing_extensions*
}
site=$CACHE/tests/$PINS-$IMAGE_PYTHON-$(key "$CROSS/pins/tests.txt")
keep "$site" test_site

# Without edgeagent itself, so that the installed one is what is tested.
staged=$DIST/conformance/$ARCH
rm -rf "$staged"
mkdir -p "$staged"
cp -r "$ROOT"/{tests,traces,examples,bench,docs,firmware_host,pyproject.toml} "$staged/"
cp "$CROSS/few_examples.py" "$staged/"
find "$staged" -name __pycache__ -prune -exec rm -rf {} +
chmod -R a+rX "$staged"  # the container has another user
# It may leave bytecode beside the tests' packages: compiling pytest and Hypothesis under emulation takes half a minute.
find "$site" -type d -exec chmod a+rwx {} +

# The same image and the same tests need not be asked twice.
engine=$(command -v podman || command -v docker) || die "podman or docker is needed to run an image"
image=$("$engine" image inspect "localhost/edgeagent:$ARCH" --format '{{index .Config.Labels "edgeagent.made-of"}}')
verdict=$CACHE/conforms/$ARCH-$(key "$image" "$(cd "$staged" && find . -type f -print0 | sort -z | xargs -0 sha256sum)" \
    "$steps" "$FLOOR" "$BELOW_FLOOR" "$MEMORY_MB" "$CROSS"/{conformance.sh,run.sh,pump.py,check_call.py,check_far.py,pins/tests.txt})
if [ -e "$verdict" ] && [ -z "${EDGEAGENT_ASK_AGAIN:-}" ]; then
    say "$ARCH conformed already, as this very image with these very tests: $steps"
    exit
fi

# The tests are not held to a device's memory: what the emulator translates of 1,700 tests takes over 2 GB by itself.
inside() {
    MEMORY_MB=${MEMORY_MB_TESTS:-6144} EXTRA="-v $staged:/src:ro -v $site:/site-packages -e PYTHONPATH=/site-packages:/src -e CI=1
        -e PYTHONDONTWRITEBYTECODE= --tmpfs /tmp --workdir /src --entrypoint python3 ${MORE:-}" "$CROSS/run.sh" "$ARCH" "$@" 2> >(grep -v 'level=error msg="unable to get systemd' >&2)
}

failed=()
step() {
    local name=$1 at=$SECONDS
    shift
    if "$@"; then say "$ARCH: $name holds ($((SECONDS - at)) s)"; else say "$ARCH: $name FAILED ($((SECONDS - at)) s)"; failed+=("$name"); fi
}

# A test that hangs ends the run after TEST_SECONDS_MAX with every thread's stack, which names it; the whole run, should
# even the emulator hang, after TESTS_SECONDS_MAX.
tests() {
    SECONDS_MAX=${TESTS_SECONDS_MAX:-2400} inside -u -m pytest -p few_examples -p no:cacheprovider -p no:benchmark \
        -m "not slow and not model" -W error --basetemp=/tmp/t --durations=5 -rs \
        -o faulthandler_timeout="${TEST_SECONDS_MAX:-600}" -o faulthandler_exit_on_timeout=true \
        tests/core tests/policy tests/shape tests/codec tests/trace tests/scenarios tests/driver/line tests/driver/device tests/driver/bus ${TESTS_MORE:-}
}
traces() { inside -m edgeagent replay --check traces; }

NUMPY='import numpy as np
a = np.arange(4096, dtype=np.float32).reshape(64, 64)
assert (a @ a)[0, 0] == 5462016 and (a > 7).sum() == 4088 and np.linalg.solve(np.eye(8) + 1, np.ones(8))[0].round(9) == 0.111111111
print("numpy", np.__version__, float((a @ a)[0, 0]), float(np.exp(a / 4096).sum()), np.float16(a[:2]).sum())'

floor() {
    inside -m edgeagent check --cpu || return 1
    # Debian's numpy chooses its NEON code at run time; here that is held to it, on a CPU that has none.
    [ "$DEB_ARCH" != armhf ] || MORE="-e QEMU_CPU=cortex-a9,neon=off" inside -c "$NUMPY" || return 1
    [ -n "$BELOW_FLOOR" ] || return 0
    local code=0 said=$DIST/conformance/$ARCH-below.err
    MORE="-e QEMU_CPU=$BELOW_FLOOR" inside -m edgeagent run examples/greenhouse.py "Open the north valve." 2> "$said" || code=$?
    sleep 1 # The filter of what is said may be a moment behind.
    cat "$said" >&2
    [ "$code" = 5 ] && grep -q "does not have; install the artefact" "$said" || {
        say "on $BELOW_FLOOR the preflight ended with $code; its sentence and 5 are right"
        return 1
    }
}

far() {
    local tls=$DIST/conformance/$ARCH-tls
    rm -rf "$tls" && mkdir -p "$tls"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -keyout "$tls/key.pem" -out "$tls/cert.pem" 2> /dev/null
    chmod -R a+rX "$tls"  # The container has another user; the key is thrown away with it.
    MORE="-v $tls:/tls:ro -v $CROSS/pump.py:/usr/share/edgeagent/pump.py:ro -v $CROSS/check_far.py:/check_far.py:ro" \
        inside /check_far.py /tls/cert.pem /tls/key.pem
}

# What was asked of which agent; an exit code of 4 means that the budget of one model call ended the closing words, which
# cost as much again as the call. One thread, since two wait for each other by spinning, and another architecture has the
# other core.
asked() {
    local agent=$1 words=$2 out=$DIST/conformance/$ARCH-$3.jsonl code=0
    EXTRA="-v $CROSS/pump.py:/usr/share/edgeagent/pump.py:ro -e EDGEAGENT_GREENHOUSE=/state" \
        "$CROSS/run.sh" "$ARCH" run "$agent" --json --max-steps 1 --threads 1 --timeout 6000 "$words" > "$out" 2> "${out%.jsonl}.err" || code=$?
    case $code in 0 | 4) ;; *) tail -5 "${out%.jsonl}.err" >&2; return 1 ;; esac
    "$PYTHON" "$CROSS/check_call.py" "$out"
}
call() { asked /usr/share/edgeagent/pump.py "Switch the pump on at level 40." pump; }
greenhouse() { asked /usr/share/edgeagent/examples/greenhouse.py "Open the north valve for 30 seconds." greenhouse; }

for each in $steps; do step "$each" "$each"; done
[ ${#failed[@]} = 0 ] || die "$ARCH does not conform: ${failed[*]}"
mkdir -p "$(dirname "$verdict")"
touch "$verdict"
say "$ARCH conforms: $steps, in $((SECONDS - began)) s"
