//! The same graphs through the whole planner: what the certificates of plans count, each row order by itself.

use super::Failure;
use super::workloads::Graph as Sketch;
use autobatch_ir::plan::Mode;
use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, Value, f32};
use autobatch_planner::{Planner, Request, RowOrder};
use std::sync::Arc;
use std::time::Instant;

/// The cells of trees: leaf, node, output.
struct Trees {
    leaf: Cell<1, 2>,
    node: Cell<4, 2>,
    out: Cell<2, 1>,
}

/// The cells of lattices, in the order of their numbers.
struct Lattices {
    input: Cell<1, 1>,
    first: Cell<1, 2>,
    next: Cell<3, 2>,
    with_words: Cell<4, 2>,
    word: Cell<2, 1>,
    sum: Cell<2, 1>,
}

const ROW: [usize; 1] = [4];

fn trees() -> Result<(Arc<Module>, Trees), Failure> {
    let mut m = ModuleBuilder::new("trees");
    let embed = m.table("embed", [64, 4], Init::Uniform(0.1));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([4])]);
    let node = m.cell("node", [f32(ROW); 4], |_, [lh, lc, rh, rc]| {
        let c = lc * lh.sigmoid() + rc * rh.sigmoid();
        [c.tanh(), c]
    });
    let out = m.cell("out", [f32(ROW); 2], |_, [h, c]| [h + c]);
    Ok((m.build()?, Trees { leaf, node, out }))
}

fn lattices() -> Result<(Arc<Module>, Lattices), Failure> {
    let mut m = ModuleBuilder::new("lattices");
    let embed = m.table("embed", [64, 4], Init::Uniform(0.1));
    let input = m.cell("input", [INDEX], |_, [word]| [embed.row(word)]);
    let first = m.cell("first", [f32(ROW)], |_, [x]| [x.tanh(), x]);
    let next = m.cell("next", [f32(ROW); 3], |_, [h, c, x]| [h + x, c * x]);
    let with_words = m.cell("with_words", [f32(ROW); 4], |_, [h, c, x, words]| [h + x, c * words]);
    let word = m.cell("word", [f32(ROW); 2], |_, [h, c]| [h * c]);
    let sum = m.cell("sum", [f32(ROW); 2], |_, [a, b]| [a + b]);
    Ok((m.build()?, Lattices { input, first, next, with_words, word, sum }))
}

/// What a node made: one value, or a state of two.
#[derive(Clone, Copy)]
enum Made<'g> {
    One(Value<'g>),
    Two([Value<'g>; 2]),
}

impl<'g> Made<'g> {
    fn one(self) -> Value<'g> {
        match self {
            Self::One(value) | Self::Two([value, _]) => value,
        }
    }

    fn two(self) -> [Value<'g>; 2] {
        match self {
            Self::One(value) => [value; 2],
            Self::Two(both) => both,
        }
    }
}

fn tree_call<'g>(g: &'g Graph, cells: &Trees, cell: usize, operands: &[Made<'g>]) -> Made<'g> {
    match (cell, operands) {
        (1, &[left, right]) => {
            let ([lh, lc], [rh, rc]) = (left.two(), right.two());
            Made::Two(g.call(cells.node, [lh, lc, rh, rc]))
        }
        (2, &[root]) => {
            let [out] = g.call(cells.out, root.two());
            Made::One(out)
        }
        _ => Made::Two(g.call(cells.leaf, 7)),
    }
}

fn lattice_call<'g>(g: &'g Graph, cells: &Lattices, cell: usize, operands: &[Made<'g>]) -> Made<'g> {
    let one = |[value]: [Value<'g>; 1]| Made::One(value);
    match (cell, operands) {
        (1, &[x]) => Made::Two(g.call(cells.first, x.one())),
        (2, &[state, x]) => {
            let [h, c] = state.two();
            Made::Two(g.call(cells.next, [h, c, x.one()]))
        }
        (3, &[state, x, words]) => {
            let [h, c] = state.two();
            Made::Two(g.call(cells.with_words, [h, c, x.one(), words.one()]))
        }
        (4, &[state]) => one(g.call(cells.word, state.two())),
        (5, &[a, b]) => one(g.call(cells.sum, [a.one(), b.one()])),
        _ => one(g.call(cells.input, 7)),
    }
}

fn emit<'g>(
    g: &'g Graph,
    sketch: &Sketch,
    call: impl Fn(&'g Graph, usize, &[Made<'g>]) -> Made<'g>,
) -> Result<(), Failure> {
    let mut made: Vec<Made<'g>> = Vec::new();
    let mut read = Vec::new();
    for (cell, operands) in sketch.nodes() {
        operands.iter().for_each(|&operand| read[operand] = true);
        let operands: Vec<Made<'g>> = operands.iter().map(|&operand| made[operand]).collect();
        made.push(call(g, cell, &operands));
        read.push(false);
    }
    for (number, _) in made.iter().zip(&read).enumerate().filter(|(_, (_, read))| !**read) {
        g.output(&format!("o{number}"), made[number].one());
    }
    Ok(())
}

/// Plans every sketch for training in each row order and prints what the certificates say.
pub(crate) fn report(name: &str, sketches: &[Sketch], are_trees: bool) -> Result<(), Failure> {
    let ((tree_module, tree_cells), (lattice_module, lattice_cells)) = (trees()?, lattices()?);
    let mut planner = Planner::default();
    let orders = [RowOrder::Batch, RowOrder::Propagated, RowOrder::Planned];
    let mut gathered = [0u64; 3];
    let mut seconds = [0.0; 3];
    let (mut direct, mut nodes) = (0, 0);
    for sketch in sketches {
        let graph = Graph::new(if are_trees { &tree_module } else { &lattice_module });
        match are_trees {
            true => emit(&graph, sketch, |g, cell, made| tree_call(g, &tree_cells, cell, made))?,
            false => emit(&graph, sketch, |g, cell, made| lattice_call(g, &lattice_cells, cell, made))?,
        }
        let graph = graph.data();
        nodes += graph.arena.len();
        for (number, rows) in orders.into_iter().enumerate() {
            let request = Request { mode: Mode::Train, rows, ..Request::default() };
            let start = Instant::now();
            let plan = planner.plan(&graph, &request)?;
            seconds[number] += start.elapsed().as_secs_f64();
            gathered[number] += plan.certificate.gathered;
            direct = plan.certificate.direct;
            plan.verify()?;
        }
    }
    println!("{name}, certified: {nodes} nodes, the last plan reads {direct} rows direct");
    for (number, rows) in orders.into_iter().enumerate() {
        println!(
            "  {:<12} operand rows gathered {:>7} ({:.2} of batch order); {:.0} ns a node",
            format!("{rows:?}"),
            gathered[number],
            gathered[number] as f64 / gathered[0].max(1) as f64,
            seconds[number] * 1e9 / nodes as f64,
        );
    }
    Ok(())
}
