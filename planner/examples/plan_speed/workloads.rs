//! The emitted models: binary trees with one or two kinds of node, lattices with arity-free sums, chains in two directions.
//!
//! Instances are read from `DATA/sst/valid.txt`, `DATA/zh_lattice/train.txt` and `DATA/wikiner/valid.txt`, or generated.

use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, Param, Value, ValueId, f32};
use std::path::Path;
use std::sync::Arc;

pub(crate) type Failure = Box<dyn std::error::Error>;

/// The structure of an instance.
pub(crate) enum Instance {
    /// Nodes in post-order: the number of values that each takes from the stack, 0 or 2.
    Tree(Vec<u8>),
    /// For each character the starts of the words that end there.
    Lattice(Vec<Vec<usize>>),
    /// A number of tokens.
    Chain(usize),
}

/// A small congruential generator, with the same instances in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// The instances of a workload, from the data folder if one is given.
pub(crate) fn instances(workload: &str, data: Option<&str>) -> Result<Vec<Instance>, Failure> {
    let Some(folder) = data.map(Path::new) else {
        let mut random = Random(7);
        return Ok((0..256).map(|_| generated(workload, &mut random)).collect());
    };
    Ok(match workload {
        "lattice" => {
            let text = std::fs::read_to_string(folder.join("zh_lattice/train.txt"))?;
            let lines: Vec<&str> = text.lines().collect();
            lines
                .chunks(4)
                .filter(|lines| lines.len() >= 3)
                .map(|lines| lattice(lines[0], lines[2]))
                .collect()
        }
        "chain" => {
            let text = std::fs::read_to_string(folder.join("wikiner/valid.txt"))?;
            text.lines().map(|line| Instance::Chain(line.split(' ').count())).collect()
        }
        _ => {
            let text = std::fs::read_to_string(folder.join("sst/valid.txt"))?;
            text.lines().map(bracketed).collect()
        }
    })
}

fn generated(workload: &str, random: &mut Random) -> Instance {
    match workload {
        "lattice" => {
            let characters = 10 + random.below(60);
            let words = |at: usize, random: &mut Random| match random.below(3) {
                0 => vec![at - random.below(at.min(4)) - usize::from(at > 4)],
                _ => Vec::new(),
            };
            Instance::Lattice(
                (0..characters).map(|at| if at == 0 { Vec::new() } else { words(at, random) }).collect(),
            )
        }
        "chain" => Instance::Chain(5 + random.below(40)),
        _ => {
            let mut nodes = Vec::new();
            tree(20, random, &mut nodes);
            Instance::Tree(nodes)
        }
    }
}

fn tree(leaves: usize, random: &mut Random, nodes: &mut Vec<u8>) {
    if leaves == 1 {
        return nodes.push(0);
    }
    let left = 1 + random.below(leaves - 1);
    tree(left, random, nodes);
    tree(leaves - left, random, nodes);
    nodes.push(2);
}

/// `(3 (2 word) (4 (2 word) (2 word)))`
fn bracketed(line: &str) -> Instance {
    let (mut nodes, mut open) = (Vec::new(), Vec::new());
    for byte in line.bytes() {
        match byte {
            b'(' => {
                if let Some(children) = open.last_mut() {
                    *children += 1;
                }
                open.push(0);
            }
            b')' => nodes.extend(open.pop()),
            _ => {}
        }
    }
    Instance::Tree(nodes)
}

fn lattice(characters: &str, spans: &str) -> Instance {
    let mut ending = vec![Vec::new(); characters.split(' ').count()];
    for (from, to) in spans.split(' ').filter_map(|span| span.split_once(':')) {
        if let (Ok(from), Ok(to)) = (from.parse::<usize>(), to.parse::<usize>()) {
            ending[to - 1].push(from);
        }
    }
    Instance::Lattice(ending)
}

/// All cells of the three models.
pub(crate) struct Model {
    leaf: Cell<1, 2>,
    nodes: [Cell<4, 2>; 2],
    char: Cell<4, 2>,
    word: Cell<3, 1>,
    forward: Cell<3, 2>,
    backward: Cell<3, 2>,
    out: Param,
    wide: Param,
}

pub(crate) fn model() -> (Arc<Module>, Model) {
    let mut m = ModuleBuilder::new("speed");
    let embed = m.table("embed", [1000, 128], Init::Uniform(0.1));
    let glorot = || Init::Glorot(1.0);
    let bias = m.param("b", [640], Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word), g.zeros([128])]);
    let nodes = ["w0", "w1"].map(|name| {
        let weight = m.param(name, [256, 640], glorot());
        m.cell(&format!("node_{name}"), [f32([128]); 4], |g, [lh, lc, rh, rc]| {
            let [a, i, l, r, o] = g.affine([lh, rh], weight, Some(bias)).split();
            let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
            [o.sigmoid() * c.tanh(), c]
        })
    });
    let char_weight = m.param("char", [384, 512], glorot());
    let char = m.cell("char", [f32([128]); 4], |g, [x, h, c, extra]| {
        let [i, f, o, u] = g.affine([x, h, extra], char_weight, None).split();
        let c = f.sigmoid() * c + i.sigmoid() * u.tanh() + extra;
        [o.sigmoid() * c.tanh(), c]
    });
    let word_weight = m.param("word", [256, 384], glorot());
    let word = m.cell("word", [INDEX, f32([128]), f32([128])], |g, [word, h, c]| {
        let [i, f, u] = g.affine([embed.row(word), h], word_weight, None).split();
        [f.sigmoid() * c + i.sigmoid() * u.tanh()]
    });
    let [forward, backward] = ["fw", "bw"].map(|name| {
        let weight = m.param(name, [256, 512], glorot());
        m.cell(&format!("lstm_{name}"), [f32([128]); 3], |g, [x, h, c]| {
            let [i, f, o, u] = g.affine([x, h], weight, None).split();
            let c = f.sigmoid() * c + i.sigmoid() * u.tanh();
            [o.sigmoid() * c.tanh(), c]
        })
    });
    let out = m.param("out", [128, 5], glorot());
    let wide = m.param("wide", [256, 5], glorot());
    let model = Model { leaf, nodes, char, word, forward, backward, out, wide };
    (m.build().expect("the model is well typed"), model)
}

/// Emits an instance and appends its requested values to `outputs`.
pub(crate) fn emit(
    g: &Graph,
    model: &Model,
    instance: &Instance,
    kinds: usize,
    random: &mut Random,
    outputs: &mut Vec<ValueId>,
) {
    match instance {
        Instance::Tree(nodes) => {
            let mut stack: Vec<[Value<'_>; 2]> = Vec::with_capacity(nodes.len());
            for &children in nodes {
                let value = match (children, stack.len()) {
                    (2, 2..) => {
                        let [rh, rc] = stack.pop().expect("two values");
                        let [lh, lc] = stack.pop().expect("two values");
                        g.call(
                            model.nodes[if kinds == 1 { 0 } else { random.below(kinds) }],
                            [lh, lc, rh, rc],
                        )
                    }
                    _ => g.call(model.leaf, random.below(1000) as u32),
                };
                stack.push(value);
            }
            outputs.extend(stack.last().and_then(|[h, _]| h.affine(model.out, None).id()));
        }
        Instance::Lattice(ending) => emit_lattice(g, model, ending, random, outputs),
        Instance::Chain(tokens) => {
            let xs: Vec<Value<'_>> =
                (0..*tokens).map(|_| g.call(model.leaf, random.below(1000) as u32)[0]).collect();
            let ahead = chain(g, model.forward, xs.iter().copied());
            let back = chain(g, model.backward, xs.iter().rev().copied());
            for (&one, &two) in ahead.iter().zip(back.iter().rev()) {
                outputs.extend(g.affine([one, two], model.wide, None).id());
            }
        }
    }
}

fn chain<'g>(g: &'g Graph, cell: Cell<3, 2>, xs: impl ExactSizeIterator<Item = Value<'g>>) -> Vec<Value<'g>> {
    let zero = g.zeros([128]);
    let mut state = [zero; 2];
    let mut all = Vec::with_capacity(xs.len());
    for x in xs {
        state = g.call(cell, [x, state[0], state[1]]);
        all.push(state[0]);
    }
    all
}

fn emit_lattice(
    g: &Graph,
    model: &Model,
    ending: &[Vec<usize>],
    random: &mut Random,
    outputs: &mut Vec<ValueId>,
) {
    let zero = g.zeros([128]);
    let mut states: Vec<[Value<'_>; 2]> = vec![[zero; 2]];
    let mut words = Vec::new();
    for (at, ending) in ending.iter().enumerate() {
        let [x, _] = g.call(model.leaf, random.below(1000) as u32);
        words.clear();
        for &start in ending {
            let [h, c] = states[start];
            let [word] = g.call(model.word, (random.below(1000) as u32, h, c));
            words.push(word);
        }
        let extra = if words.is_empty() { zero } else { g.list(&words).sum() };
        let [h, c] = states[at];
        states.push(g.call(model.char, [x, h, c, extra]));
    }
    for [h, _] in &states[1..] {
        outputs.extend(h.affine(model.out, None).id());
    }
}
