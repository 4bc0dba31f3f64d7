"""Prints the table of the chapter "DyNet's Python": python python/tests/dynet_page.py"""

import pathlib

from autobatch.dynet._missing import MISSING

NAMES = pathlib.Path(__file__).parent / "dynet_names.txt"
DIFFERS = {
    "AdagradTrainer": "adds 1e-10 to the root; `eps` has no effect",
    "AdamTrainer": "adds `eps` behind the bias correction, as in the publication",
    "AmsgradTrainer": "adds `eps` behind the bias correction, as in the publication",
    "BiRNNBuilder": "fused: a step of a layer is one node",
    "CompactVanillaLSTMBuilder": "no weight noise",
    "DynetParams": "only the seed and the weight decay have an effect",
    "FastLSTMBuilder": "as DyNet computes it: the peepholes have no effect",
    "ceil": "`gradient_mode` as documented; DyNet's gradient differs from it",
    "round": "`gradient_mode` as documented; DyNet's gradient differs from it",
    "lgamma": "positive elements",
    "Expression": "an expression of an earlier graph stays readable until the next read",
    "LookupParameters": "`init_row` copies the table; initialise with an array",
    "MomentumSGDTrainer": "multiplies the momentum by the current learning rate",
    "Parameters": "a parameter that is declared after an update discards the states of trainers",
    "RMSPropTrainer": "one mean square for each element; `eps` is added behind the root",
    "Tensor": "no `categorical_sample_log_prob`",
    "Trainer": "`status` prints the rate and the number of updates; no `update_subset`",
    "VanillaLSTMBuilder": "no `ln_lstm`",
    "LSTMBuilder": "no `ln_lstm`",
    "cg_checkpoint": "no effect: an expression that is not read costs no execution",
    "cg_revert": "no effect",
    "dump_cg": "writes the text form of the graph",
    "init": "reads `--dynet-seed` and `--dynet-weight-decay`, accepts and ignores the others",
    "layer_norm": "adds 1e-12 to the variance",
    "load": "reads what this package saved; `.meta` files hold Python classes",
    "load_generator": "reads what this package saved",
    "poisson_loss": "the gradient is that of the value",
    "print_graphviz": "prints the text form of the graph",
    "print_text_graphviz": "prints the text form of the graph",
    "random_bernoulli": "other random numbers",
    "random_gumbel": "other random numbers",
    "random_normal": "other random numbers",
    "random_uniform": "other random numbers",
    "renew_cg": "accepts and ignores its arguments",
    "reshape": "no change of the batch size by a part of the elements",
    "sum_dim": "axes of vectors and matrices",
    "to_device": "returns the expression",
    "transpose": "swaps the axes of a matrix; no other permutation",
    "vanilla_lstm_gates": "no weight noise",
    "vanilla_lstm_gates_concat": "no weight noise",
}


def rows():
    """The rows of the table."""
    for name in (name for name in NAMES.read_text().split() if "." not in name):
        if name in MISSING:
            yield f"| `{name}` | no | {MISSING[name]} |"
        else:
            yield f"| `{name}` | {'differs' if name in DIFFERS else 'works'} | {DIFFERS.get(name, '')} |"


if __name__ == "__main__":
    print("| name | state | |\n|---|---|---|\n" + "\n".join(rows()))
