#!/usr/bin/env bash
# Which shared libraries does llama.cpp give for ARCH?  llama.sh ARCH  prints the folder that holds them.
# Compiled once for each (sdist, toolchain, flags, compiler, this file); after that it is a look-up.
. "$(dirname "$0")/common.sh"
load_target "${1:-}"
need "$TRIPLET-g++:g++-$TRIPLET" cmake:cmake ninja:ninja-build

sdist=$("$CROSS/sdist.sh" llama-cpp-python)
toolchain=$CROSS/toolchains/$ARCH.cmake
libs=$CACHE/llama/$ARCH-$(key "$sdist" "$toolchain" "$GGML_FLAGS" "$("$TRIPLET-g++" --version | head -1)" "$CROSS/llama.sh")

build() {
    local out=$1
    work=$(mktemp -d "${TMPDIR:-/tmp}/edgeagent-llama.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    tar xf "$sdist" -C "$work" --strip-components=1
    # Without versioned names each library is one file, not three copies in a zip that knows no links.
    # The prefix map keeps this machine's folders out of the libraries, so that two machines make the same bytes.
    # In the environment, since CMAKE_C_FLAGS on the command line would replace what the toolchain file sets.
    CFLAGS="-ffile-prefix-map=$work=." CXXFLAGS="-ffile-prefix-map=$work=." \
        cmake -S "$work/vendor/llama.cpp" -B "$work/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$toolchain" \
        -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DCMAKE_PLATFORM_NO_VERSIONED_SONAME=ON \
        -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON '-DCMAKE_INSTALL_RPATH=$ORIGIN' \
        -DCMAKE_SHARED_LINKER_FLAGS="-Wl,--build-id=sha1" \
        -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
        -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_MTMD=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
        -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DGGML_CCACHE=OFF -DGGML_BLAS=OFF $GGML_FLAGS > "$out/build.log" 2>&1 ||
        { tail -20 "$out/build.log" >&2; die "cmake failed"; }
    say "compiling llama.cpp for $ARCH: about 3 minutes of CPU time"
    nice -n 19 ninja -C "$work/build" -j "${JOBS:-$(nproc)}" llama ggml ggml-base ggml-cpu >> "$out/build.log" 2>&1 ||
        { tail -20 "$out/build.log" >&2; die "the compiler failed"; }
    find "$work/build" -name 'lib*.so' -type f -exec cp {} "$out" \;
    "$TRIPLET-strip" --strip-unneeded "$out"/*.so
    gzip -9n "$out/build.log"
    rm -rf "$work"
    trap - EXIT
}

keep "$libs" build
echo "$libs"
