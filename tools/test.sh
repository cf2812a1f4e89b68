#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to the result of all tests: sets up, builds, fetches the test models, runs ctest.
#   tools/test.sh               everything but the tests of the large model
#   tools/test.sh --fast        without real models and ONNX's backend tests: nothing is fetched
#   tools/test.sh --qwen        also the tests of Qwen2.5-Coder-0.5B (490 MB to fetch, 3 GB of memory)
#   tools/test.sh --kokoro      also Kokoro-82M node by node beside onnxruntime (92 MB and a Python environment to fetch)
#   tools/test.sh --asan        under the address and undefined-behaviour sanitizers; no real models
#   tools/test.sh --neon        also the kernels' tests for AArch64 under qemu (a cross compiler to install; minutes)
#   tools/test.sh --werror      warnings are errors, as in CI
#   tools/test.sh --models DIR  real models are smollm2.gguf, yolov8n-nudenet.onnx … of DIR; what is not there is not
#                               fetched, and its tests are skipped
# What follows -- goes to ctest:  tools/test.sh --fast -- -R ir
# Models, and the Python packages of the ONNX tests, are kept in $CYB_TEST_CACHE (default ~/.cache/cyb-llm-test).
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release
werror=OFF
neon=no
real=yes
wanted=(smollm2 gemma3 minilm onnx whisper-base)
models=
while [ $# -gt 0 ]; do
  case "$1" in
    --fast) real=no ;;
    --asan)
      preset=asan
      real=no
      ;;
    --qwen) wanted+=(qwen) ;;
    --kokoro)
      wanted+=(kokoro-82m)
      export CYB_TEST_KOKORO=1
      ;;
    --neon) neon=yes ;;
    --werror) werror=ON ;;
    --models)
      models=${2:?--models needs a folder}
      shift
      ;;
    --)
      shift
      break
      ;;
    -h | --help)
      sed -n '3,15s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *)
      echo "tools/test.sh: unknown option '$1'; see tools/test.sh --help" >&2
      exit 2
      ;;
  esac
  shift
done

tools/setup.sh
cmake --preset $preset -DCYB_WERROR=$werror
cmake --build --preset $preset

CYB_TEST_CACHE=$(realpath -m "${CYB_TEST_CACHE:-$HOME/.cache/cyb-llm-test}")
export CYB_TEST_CACHE
if [ $real = no ]; then
  unset CYB_TEST_MODELS CYB_TEST_ONNX  # their tests are skipped, and say so
elif [ -n "$models" ]; then
  CYB_TEST_MODELS=$(cd "$models" && pwd)
  export CYB_TEST_MODELS
else
  python3 tools/fetch_test_models.py --program build/$preset/cyb-llm --out "$CYB_TEST_CACHE" "${wanted[@]}"
  # What an earlier run fetched is not asked for again by its being there.
  export CYB_TEST_MODELS=$PWD/build/$preset/test-models
  rm -rf "$CYB_TEST_MODELS"
  mkdir "$CYB_TEST_MODELS"
  for file in $(python3 tools/fetch_test_models.py --list "${wanted[@]}"); do
    ln -s "$CYB_TEST_CACHE/$file" "$CYB_TEST_MODELS/"
  done
fi
[ $real = no ] || export CYB_TEST_ONNX=1
passed=yes
[ $neon = no ] || tools/test_neon.sh --small || passed=no
ctest --test-dir build/$preset --output-on-failure --no-tests=error -j "$(nproc)" "$@" || passed=no
[ $passed = yes ]
