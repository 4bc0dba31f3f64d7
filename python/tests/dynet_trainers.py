"""Trains a small model with one trainer and prints its weights: python dynet_trainers.py RULE [--drop-in]"""

import json
import sys

import numpy as np

if "--drop-in" in sys.argv:
    import autobatch.dynet

    autobatch.dynet.install()
import dynet as dy

pc = dy.ParameterCollection()
random = np.random.default_rng(1)
w, table = pc.add_parameters((3, 4)), pc.add_lookup_parameters((5, 4))
w.set_value(random.normal(size=(3, 4)))
table.init_from_array(random.normal(size=(5, 4)))
trainer = getattr(dy, sys.argv[1])(pc)
weights = []
for step in range(6):
    dy.renew_cg()
    dy.esum([dy.pickneglogsoftmax(w * table[(step + k) % 4], k) for k in range(3)]).backward()
    trainer.update()
    weights.append([w.as_array().ravel().tolist(), table.as_array().ravel().tolist()])
print(json.dumps(np.concatenate(weights[-1]).tolist()))
