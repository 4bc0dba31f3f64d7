"""Plans show, explain and compare themselves."""

import ast
import json
import pathlib

import pytest

import autobatch as ab

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def model():
    m = ab.Module("tree")
    words = m.table("words", 10, 4)
    w = m.param("w", (8, 4))

    @m.cell(ab.f32[4], ab.f32[4])
    def node(left, right):
        return ab.concat([left, right]).affine(w).tanh()

    def encode(tree):
        return words[tree] if isinstance(tree, int) else node(encode(tree[0]), encode(tree[1]))

    return ab.Session(m), encode, node, words


def test_a_plan_of_items_says_its_batches():
    session, encode, *_ = model()
    plan = session.plan([(1, (2, 3)), ((4, 5), 6), 7], encode)
    assert plan.bound == 3 and plan.batches == 3 and plan.policy == "auto"
    assert repr(plan) == f"<autobatch.Plan: {plan.nodes} nodes of 3 instances in 3 batches (at least 3), policy auto>"
    assert "@node" in plan.text()
    counts = plan.policies()
    assert counts["none"] == 11 and counts["auto"] == counts["depth"] == 3 and set(counts) >= {"agenda", "ratio", "beam:8"}
    assert session.plan([1, 2], encode, policy="none").batches == 2
    with pytest.raises(ValueError, match="best"):
        session.plan([1], encode, policy="best")


def test_a_plan_says_why_values_share_a_batch():
    session, _, node, words = model()
    with session.graph() as g:
        a, b = node(words[1], words[2]), node(words[3], words[4])
        c = node(a, b)
        plan = g.plan(c)
        assert "same-step: both are lanes of step 1" in plan.explain(a, b)
        assert "depends" in plan.explain(a, c)
        assert "signature" in plan.explain("%0", a)
        for wrong in ("%99", "x"):
            with pytest.raises(ValueError):
                plan.explain(wrong, a)
        with pytest.raises(TypeError, match="its name"):
            plan.explain(1.5, a)
        with pytest.raises(ValueError, match="emitted after the plan"):
            plan.explain(a, node(c, c))


def test_graphs_and_plans_draw_themselves(tmp_path):
    session, _, node, words = model()
    with session.graph() as g:
        node(words[1], words[2])
        for html in (g._repr_html_(), g.plan()._repr_html_()):
            assert "<svg" in html and "batches" in html
        plan = g.plan()
        page = plan.inspect(tmp_path / "page.html")
        assert "<script" in page.read_text() and page.stat().st_size > 100_000
        plan.save(tmp_path / "p.abp")
        plan.save_graph(tmp_path / "g.abg")
        assert (tmp_path / "p.abp").stat().st_size > 0 and (tmp_path / "g.abg").stat().st_size > 0
        with pytest.raises(ab.CheckpointError, match="nowhere"):
            plan.save("/nowhere/p.abp")


def test_the_notebook_runs_and_shows_its_plans():
    cells = json.loads((EXAMPLES / "plans.ipynb").read_text())["cells"]
    program, shown = {}, []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "plans.ipynb", "exec"), program)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), "plans.ipynb", "eval"), program))
    assert any("<svg" in value._repr_html_() for value in shown if hasattr(value, "_repr_html_"))
    assert any(isinstance(value, dict) and value["auto"] < value["none"] for value in shown)
