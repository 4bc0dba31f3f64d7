# Feed broken files to every verb that reads a file. Each one names the file and the fault, and exits with code 3 or 2.
autobatch plan trees.graph -o trees.abp > log
autobatch show trees.graph -o trees.abg > log
head -c 300 trees.graph > cut.graph
head -c 300 trees.abg > cut.abg
head -c 300 trees.abp > cut.abp
head -c 64 /dev/zero > zero.abg
: > empty.plan
echo '{"autobatch": 1' > cut.json
answer() { "$@" > answer.log 2>&1; code=$?; echo "$code $(grep -m 2 -E 'error|-->' answer.log)"; }
set +e +v
for file in cut.graph cut.abg cut.abp zero.abg empty.plan cut.json missing.abg; do
    answer autobatch show $file
done
for verb in plan explain policies execute; do
    for file in cut.graph cut.abg zero.abg; do
        answer autobatch $verb $file
    done
done
answer autobatch check trees.graph cut.abp
answer autobatch diff trees.abp cut.abp
answer autobatch fsm-train cut.abg -o table.json
answer autobatch reduce cut.abg -o small.graph -- false
answer autobatch plan trees.graph --policy fsm:cut.json
answer autobatch execute trees.graph --weights cut.abg
answer autobatch train names --resume cut.abg
answer autobatch eval names --weights cut.abg
answer autobatch predict names cut.json --weights cut.abg
for verb in run train bench sweep; do
    answer autobatch $verb names --data missing
done
answer autobatch emit names --data cut.json -o names.abg
AUTOBATCH_COSTS=cut.json answer autobatch plan trees.graph
