#!/usr/bin/env bash
# Everything that needs a GPU, in one command of under eight minutes: tests/gpu, then the engine's speed.
# Writes to $OUT (default: results/gpu). Machines without pydantic install it from a folder `wheels` beside this checkout.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out="${OUT:-results/gpu}"
mkdir -p "$out"
python3 -c 'import pydantic' 2>/dev/null || python3 -m pip install --quiet --no-index --find-links wheels pydantic
python3 -c 'import pytest, scipy' 2>/dev/null || python3 -m pip install --quiet --no-index --find-links wheels pytest scipy
export PYTHONPATH=.
status=0
timeout 150 python3 -m pytest tests/gpu -q 2>&1 | tee "$out/tests.txt" || status=1
for shape in 4b 8b; do
  timeout 140 python3 benchmarks/gpu_engine.py --shape "$shape" --out "$out" 2>&1 | tee "$out/engine-$shape.txt" || status=1
done
echo "---"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
tail -n 1 "$out/tests.txt"
grep -h 'tok/s' "$out"/engine-*.txt
exit $status
