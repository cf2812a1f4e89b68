#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to an answer: sets up, builds, fetches the default model, answers the prompt.
#   tools/start.sh "Why is the sky blue?"
# Further arguments go to `cyb-llm run`. Without any, a chat opens.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
{
  tools/setup.sh
  cmake --preset release
  cmake --build --preset release --target cyb-llm
  build/release/cyb-llm fetch smollm2
} >&2
exec build/release/cyb-llm run smollm2 "$@"
