#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build and the tests need on Debian 12 (or a distribution with the same package names).
# Safe to run again; returns at once when all is there.
#   tools/setup.sh             compiler, libraries, test framework
#   tools/setup.sh --dev       also what developers use: benchmarks, formatter, linter, emulator, valgrind
#   tools/setup.sh --neon      what tools/test_neon.sh needs: cross compiler and emulator of AArch64
#   tools/setup.sh --goldens   also the reference packages (PyTorch, transformers …; 6 GB) in build/venv
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  cmake ninja-build ccache g++ pkg-config
  nlohmann-json3-dev libavcodec-dev libavformat-dev libavutil-dev libcli11-dev libcurl4-openssl-dev libedit-dev libfmt-dev libgtest-dev libhwy-dev
  libjpeg-dev libpcre2-dev libpng-dev libprotobuf-dev libsndfile1-dev libsoxr-dev libssl-dev libtomlplusplus-dev libutf8proc-dev libwebp-dev libzip-dev
  protobuf-compiler zlib1g-dev
  ca-certificates python3 python3-venv
)
goldens=no
for argument in "$@"; do
  case "$argument" in
    --dev)
      packages+=(libbenchmark-dev clang-format clang-tidy qemu-user g++-aarch64-linux-gnu valgrind git)
      ;;
    --neon)
      packages+=(qemu-user g++-aarch64-linux-gnu)
      ;;
    --goldens)
      goldens=yes
      ;;
    -h | --help)
      sed -n '3,8s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *)
      echo "tools/setup.sh: unknown option '$argument'; there are --dev, --neon and --goldens" >&2
      exit 2
      ;;
  esac
done

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "tools/setup.sh: these packages are missing: ${missing[*]}" >&2
    echo "Run it as root, or install sudo." >&2
    exit 1
  fi
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "tools/setup.sh: this is no Debian; install what corresponds to: ${packages[*]}" >&2
  exit 1
fi
missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "Installing: ${missing[*]}" >&2
  as_root apt-get -o DPkg::Lock::Timeout=300 update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}" >&2
fi

if [ $goldens = yes ] && ! cmp -s tools/goldens/requirements.txt build/venv/requirements.txt; then
  python3 -m venv build/venv
  build/venv/bin/pip install --quiet --requirement tools/goldens/requirements.txt
  cp tools/goldens/requirements.txt build/venv/requirements.txt
fi
