#!/usr/bin/env bash
# Every comparison of the package for Python, in turns where two programs do the same: with DyNet, with nagisa on DyNet, with eager
# PyTorch and with Rust. Usage: bench/peers/python.sh PYTHON, a Python with this package, torch, dyNET38 and nagisa.
set -euo pipefail
python=$(command -v "${1:?name a Python with autobatch, torch, dyNET38 and nagisa}")
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1
"$python" bench/peers/dynet_table.py "$python" "$python" --steps 100
"$python" python/examples/nagisa_compare.py "$python" "$python" --steps 100
for example in recursive bilstm_tagger graph_network translate; do
    printf '\n%s\n' "$example"
    "$python" "python/examples/$example.py"
done
printf '\nnative, beside the same models in Rust\n'
if [ -x "${CARGO_TARGET_DIR:-target}/release/autobatch-bench" ]; then
    "$python" bench/peers/native_rows.py --bench "${CARGO_TARGET_DIR:-target}/release/autobatch-bench"
else
    echo 'left out: build it with cargo build --release -p autobatch-bench'
fi
printf '\nbatch()\n'
"$python" python/examples/batch_speed.py
