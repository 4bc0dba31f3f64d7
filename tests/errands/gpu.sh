# Execute a saved plan on the CPU and on a GPU, with equal parameters.
autobatch plan trees.graph -o trees.plan | tail -1
autobatch execute trees.graph trees.plan --seed 1 -o cpu.json | tail -1
autobatch execute trees.graph trees.plan --seed 1 --device gpu -o gpu.json | tail -1
# GPUs may round products in another way, so the numbers are compared within 1e-5.
numbers() { grep -o '"values":\[[^]]*' "$1" | tr -s ':[,' '\n' | grep -v values; }
paste <(numbers cpu.json) <(numbers gpu.json) |
    awk '{ d = $1 - $2; if (d > 1e-5 || d < -1e-5) far++ } END { print NR, "numbers,", far + 0, "of them apart" }'
# What observes the CPU alone is refused.
autobatch execute trees.graph --device gpu --counters || echo "exit code $?"
