#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kernels and the runtime for AArch64 with NEON: cross-compiled, their tests run by qemu-aarch64.
#   tools/test_neon.sh [GTEST_FILTER]   the tests of the folders up to runtime/; many minutes
#   tools/test_neon.sh --small          the tests of kernels alone, for a processor with dot products of bytes and for
#                                       one without; some minutes without a compiler cache (part of tools/test.sh)
# Needs g++-aarch64-linux-gnu and qemu-user (tools/setup.sh --neon). The libraries for AArch64 are Debian packages that
# are unpacked into build/neon/root and not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
small=no
filter=*
case "${1:-}" in
  --small) small=yes ;;
  -h | --help)
    sed -n '3,9s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  *) filter=${1:-*} ;;
esac
tools/setup.sh --neon

build=$PWD/build/neon
root=$build/root
packages=(libfmt-dev libgtest-dev libhwy-dev libpcre2-dev libssl-dev libtomlplusplus-dev libutf8proc-dev libzip-dev
  nlohmann-json3-dev)
if [ ! -e "$root/complete" ]; then
  rm -rf "$root" "$build/apt"
  mkdir -p "$root" "$build/apt/state/lists/partial" "$build/apt/cache/archives/partial"
  touch "$build/apt/status"
  apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$build/apt/state"
    -o "Dir::State::status=$build/apt/status" -o "Dir::Cache=$build/apt/cache" -o APT::Sandbox::User=root)
  "${apt[@]}" update
  "${apt[@]}" --no-install-recommends --download-only --yes install "${packages[@]}"
  for file in "$build"/apt/cache/archives/*.deb; do
    case "$(basename "$file")" in
      libc6* | libc-* | libstdc++* | libgcc* | gcc-* | linux-libc-dev*) ;; # the cross compiler has its own
      *) dpkg-deb -x "$file" "$root" ;;
    esac
  done
  [ ! -d "$root/lib" ] || cp -a "$root/lib/." "$root/usr/lib/"
  touch "$root/complete"
fi

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64-toolchain.cmake" \
  -DCYB_AARCH64_ROOT="$root" -DCYB_KERNELS_ONLY=ON
emulator=(qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$root/usr/lib/aarch64-linux-gnu")

if [ $small = yes ]; then
  cmake --build "$build" --target kernels_test
  # Each in its own process; the slowest, which says little of the kernels, is left out. Without dot products only what
  # differs is run again.
  "${emulator[@]}" -cpu max "$build/src/kernels_test" --gtest_brief=1 --gtest_filter='-KvCache.any_chunking*' &
  with=$!
  "${emulator[@]}" -cpu cortex-a72 "$build/src/kernels_test" --gtest_brief=1 --gtest_filter='Matmul.*:Acts.*' &
  without=$!
  failed=0
  wait $with || failed=1
  wait $without || failed=1
  [ $failed = 0 ] && echo "NEON: the kernels' tests passed under qemu" || echo "NEON: the kernels' tests FAILED"
  exit $failed
fi

cmake --build "$build"
for test in tensor ops compile runtime; do
  "${emulator[@]}" "$build/src/${test}_test" --gtest_brief=1 --gtest_filter="$filter"
done
