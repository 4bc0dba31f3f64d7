# Find out why two nodes were not batched.
autobatch emit lattice --instances 8 --hidden 16 -o lattice.abg | head -1
autobatch plan lattice.abg | head -4
autobatch explain lattice.abg | grep -A 3 'more batches than one per depth'
# The list names two values. Ask about them.
pair=$(autobatch explain lattice.abg | sed -n 's/.*(--why \(%[0-9]* %[0-9]*\)).*/\1/p' | head -1)
autobatch explain lattice.abg --why $pair
# A search over more orders finds a plan with fewer batches.
autobatch plan lattice.abg --policy beam:16 | sed -n 2,3p
