# Compare two plans of one graph. The exit code is 1 if they differ.
autobatch emit lattice --instances 8 --hidden 16 -o lattice.abg | head -1
autobatch plan lattice.abg --policy depth -o depth.plan | tail -1
autobatch plan lattice.abg --policy ratio -o ratio.plan | tail -1
autobatch diff depth.plan ratio.plan || echo "exit code $?"
autobatch diff ratio.plan ratio.plan
# Both plans compute the graph.
autobatch check lattice.abg depth.plan
autobatch check lattice.abg ratio.plan
