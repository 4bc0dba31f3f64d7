#!/usr/bin/env bash
# Every comparison of the package for Python, in turns where two programs do the same: with DyNet, with nagisa on DyNet, and with eager
# PyTorch. Usage: bench/peers/python.sh PYTHON, a Python with this package, torch, dyNET38 and nagisa.
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
printf '\nbatch()\n'
"$python" python/examples/batch_speed.py
