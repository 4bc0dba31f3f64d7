# Execute a saved plan. A plan from a file is proven before it is executed.
autobatch plan trees.graph -o trees.plan | tail -1
autobatch execute trees.graph trees.plan --seed 1 -o saved.json
autobatch execute trees.graph --seed 1 --policy none -o unbatched.json > unbatched.log
cmp saved.json unbatched.json && echo 'equal bits'
# A plan of another graph is refused.
autobatch execute pairs.graph trees.plan || echo "exit code $?"
