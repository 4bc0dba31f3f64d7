# Compare policies on the graphs of a program of one's own. Any program that uses a session or a trainer writes them.
AUTOBATCH_DUMP=dump autobatch train names --count 64 --epochs 1 --hidden 8 --threads 1 > train.log
graph=$(ls dump/*.abg | head -1)
autobatch show "$graph" --format summary | head -1
autobatch policies "$graph"
# A table of costs of this machine decides how long `auto` searches.
autobatch calibrate --turn 0 -o costs.json > calibrate.log 2>&1
AUTOBATCH_COSTS=costs.json autobatch plan "$graph" | grep batches
