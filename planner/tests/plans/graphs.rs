//! Small models of many shapes, with random instances.

use crate::vocabulary;
use autobatch_ir::graph::{Graph, GraphData, Value};
use autobatch_ir::hash::split_mix;
use autobatch_ir::module::{Cell, Init, ModuleBuilder, Param, Table};
use autobatch_ir::types::{INDEX, f32, list};
use autobatch_ir::{ParamId, Weights};

/// Seeded random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.word() % bound as u64) as usize
    }

    pub(crate) fn float(&mut self) -> f32 {
        (self.word() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }

    pub(crate) fn floats(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.float()).collect()
    }
}

/// Values of all parameters of a module.
pub(crate) fn weights(graph: &GraphData) -> Weights {
    let mut random = Random(7);
    let mut weights = Weights::init(&graph.module, 0);
    for (number, decl) in graph.module.params.iter().enumerate() {
        let values = random.floats(decl.ty.shape.elements());
        weights.set(ParamId::new(number), &values).expect("as many as declared");
    }
    weights
}

/// Emits a random minibatch of a model.
type Model = fn(&mut Random) -> GraphData;

/// The models by name.
pub(crate) const MODELS: &[(&str, Model)] = &[
    ("tree_lstm", tree_lstm),
    ("bilstm", bilstm),
    ("child_sum", child_sum),
    ("lattice", lattice),
    ("attention", attention),
    ("nested", nested),
    ("mixed_indices", mixed_indices),
    ("dropout", dropout),
    ("shapes", vocabulary::shapes),
    ("elementwise", vocabulary::elementwise),
    ("sources", vocabulary::sources),
];

const H: usize = 3;
const VOCABULARY: usize = 11;
const CLASSES: usize = 4;

/// Makes a value an output with a unique name.
pub(crate) fn output<'g>(g: &'g Graph, name: &str, value: Value<'g>) {
    let number = g.data().outputs.len();
    g.output(&format!("{name}{number}"), value);
}

fn loss<'g>(g: &'g Graph, name: &str, value: Value<'g>) {
    let number = g.data().outputs.len();
    g.loss(&format!("{name}{number}"), value);
}

pub(crate) fn finish(graph: Graph) -> GraphData {
    graph.finish().expect("the test model is valid")
}

struct Lstm {
    cell: Cell<3, 2>,
}

fn lstm(m: &mut ModuleBuilder, name: &str) -> Lstm {
    let w = m.param(&format!("{name}_w"), [2 * H, 4 * H], Init::Glorot(1.0));
    let b = m.param(&format!("{name}_b"), 4 * H, Init::ZEROS);
    let cell = m.cell(name, [f32(H), f32(H), f32(H)], |g, [x, h, c]| {
        let [i, f, o, u] = g.affine([x, h], w, Some(b)).split();
        let c = f.sigmoid() * c + i.sigmoid() * u.tanh();
        [o.sigmoid() * c.tanh(), c]
    });
    Lstm { cell }
}

fn classify<'g>(g: &'g Graph, h: Value<'g>, w: Param, b: Param, label: u32) {
    loss(g, "loss", g.affine([h], w, Some(b)).cross_entropy(label));
}

fn head(m: &mut ModuleBuilder, width: usize) -> (Param, Param) {
    (m.param("wo", [width, CLASSES], Init::Glorot(1.0)), m.param("bo", CLASSES, Init::ZEROS))
}

fn tree_lstm(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("tree_lstm");
    let embed = m.table("embed", [VOCABULARY, H], Init::Uniform(0.1));
    let (wo, bo) = head(&mut m, H);
    let w = m.param("w", [2 * H, 5 * H], Init::Glorot(1.0));
    let b = m.param("b", 5 * H, Init::ZEROS);
    let wl = m.param("wl", [H, 3 * H], Init::Glorot(1.0));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| {
        let [i, o, u] = g.affine([embed.row(word)], wl, None).split();
        let c = i.sigmoid() * u.tanh();
        [o.sigmoid() * c.tanh(), c]
    });
    let node = m.cell("node", [f32(H), f32(H), f32(H), f32(H)], |g, [lh, lc, rh, rc]| {
        let [i, fl, fr, o, u] = g.affine([lh, rh], w, Some(b)).split();
        let c = i.sigmoid() * u.tanh() + fl.sigmoid() * lc + fr.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    let g = Graph::new(&m.build().expect("valid"));
    for key in 0..1 + random.below(4) {
        g.instance(key as u64);
        let mut stack: Vec<[Value<'_>; 2]> = Vec::new();
        for _ in 0..1 + random.below(6) {
            stack.push(g.call(leaf, random.below(VOCABULARY) as u32));
            while stack.len() > 1 && random.below(2) == 0 {
                let (Some(right), Some(left)) = (stack.pop(), stack.pop()) else { unreachable!() };
                stack.push(g.call(node, [left[0], left[1], right[0], right[1]]));
            }
        }
        while stack.len() > 1 {
            let (Some(right), Some(left)) = (stack.pop(), stack.pop()) else { unreachable!() };
            stack.push(g.call(node, [left[0], left[1], right[0], right[1]]));
        }
        classify(&g, stack[0][0], wo, bo, random.below(CLASSES) as u32);
    }
    finish(g)
}

fn bilstm(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("bilstm");
    let embed = m.table("embed", [VOCABULARY, H], Init::Uniform(0.1));
    let (wo, bo) = head(&mut m, 2 * H);
    let (forward, backward) = (lstm(&mut m, "forward"), lstm(&mut m, "backward"));
    let g = Graph::new(&m.build().expect("valid"));
    let zero = g.zeros(H);
    for key in 0..1 + random.below(3) {
        g.instance(key as u64);
        let words: Vec<Value<'_>> =
            (0..1 + random.below(4)).map(|_| embed.lookup(&g, random.below(VOCABULARY) as u32)).collect();
        let run = |lstm: &Lstm, order: &mut dyn Iterator<Item = usize>| {
            let mut state = [zero, zero];
            let mut states = vec![zero; words.len()];
            for at in order {
                state = g.call(lstm.cell, [words[at], state[0], state[1]]);
                states[at] = state[0];
            }
            states
        };
        let left = run(&forward, &mut (0..words.len()));
        let right = run(&backward, &mut (0..words.len()).rev());
        for (l, r) in left.into_iter().zip(right) {
            if random.below(2) == 0 {
                classify(&g, g.concat([l, r]), wo, bo, random.below(CLASSES) as u32);
            } else {
                loss(&g, "loss", g.affine([l, r], wo, Some(bo)).cross_entropy(random.below(CLASSES) as u32));
            }
        }
    }
    finish(g)
}

fn child_sum(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("child_sum");
    let embed = m.table("embed", [VOCABULARY, H], Init::Uniform(0.1));
    let (wo, bo) = head(&mut m, H);
    let w = m.param("w", [2 * H, 3 * H], Init::Glorot(1.0));
    let b = m.param("b", 3 * H, Init::ZEROS);
    let wf = m.param("wf", [2 * H, H], Init::Glorot(1.0));
    let edge =
        m.cell("edge", [f32(H), f32(H), f32(H)], |g, [x, h, c]| [g.affine([x, h], wf, None).sigmoid() * c]);
    let node = m.cell("node", [f32(H), list(f32(H)), list(f32(H))], |g, [x, hs, fcs]| {
        let [i, o, u] = g.affine([x, hs.sum()], w, Some(b)).split();
        let c = i.sigmoid() * u.tanh() + fcs.sum();
        [o.sigmoid() * c.tanh(), c]
    });
    let g = Graph::new(&m.build().expect("valid"));
    for key in 0..1 + random.below(3) {
        g.instance(key as u64);
        let mut open: Vec<[Value<'_>; 2]> = Vec::new();
        for _ in 0..2 + random.below(5) {
            let x = embed.lookup(&g, random.below(VOCABULARY) as u32);
            let children = open.split_off(open.len() - random.below(open.len() + 1));
            let forgets: Vec<Value<'_>> =
                children.iter().map(|child| g.call(edge, [x, child[0], child[1]])[0]).collect();
            let (hs, fcs) = if children.is_empty() {
                (g.empty_list(f32(H)), g.empty_list(f32(H)))
            } else {
                (g.list(children.iter().map(|child| child[0])), g.list(forgets))
            };
            open.push(g.call(node, [x, hs, fcs]));
        }
        let root = g.list(open.iter().map(|state| state[0])).max();
        classify(&g, root, wo, bo, random.below(CLASSES) as u32);
    }
    finish(g)
}

fn lattice(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("lattice");
    let embed = m.table("embed", [VOCABULARY, H], Init::Uniform(0.1));
    let characters = lstm(&mut m, "char");
    let wg = m.param("wg", [2 * H, H], Init::Glorot(1.0));
    let word = m.cell("word", [f32(H), INDEX], |g, [c, word]| {
        let x = embed.row(word);
        let gate = g.affine([x, c], wg, None);
        [gate, gate.tanh() + c]
    });
    let merge = m.cell("merge", [list(f32(H)), list(f32(H))], |g, [gates, cells]| {
        let c = g.softmax_sum(gates, cells);
        [c, c.tanh()]
    });
    let g = Graph::new(&m.build().expect("valid"));
    for key in 0..1 + random.below(3) {
        g.instance(key as u64);
        let mut states = vec![[g.zeros(H), g.fill(H, 0.5)]];
        for at in 1..2 + random.below(5) {
            let x = embed.lookup(&g, random.below(VOCABULARY) as u32);
            let [h, c] = g.call(characters.cell, [x, states[at - 1][0], states[at - 1][1]]);
            let mut gates = vec![h];
            let mut cells = vec![c];
            for from in states.clone() {
                if random.below(3) == 0 {
                    let [gate, cell] = g.call(word, (from[1], random.below(VOCABULARY) as u32));
                    gates.push(gate);
                    cells.push(cell);
                }
            }
            states.push(if random.below(3) == 0 && gates.len() == 1 {
                [h, c]
            } else {
                let [c, h] = g.call(merge, [g.list(gates), g.list(cells)]);
                [h, c]
            });
        }
        output(&g, "state", states[states.len() - 1][0]);
        loss(&g, "loss", states[states.len() - 1][1].sum());
    }
    finish(g)
}

fn attention(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("attention");
    let embed = m.table("embed", [VOCABULARY, H], Init::Uniform(0.1));
    let wq = m.param("wq", [H, H], Init::Glorot(1.0));
    let wk = m.param("wk", [H, 2 * H], Init::Glorot(1.0));
    let ws = m.param("ws", [2 * H, 1], Init::Glorot(1.0));
    let score = m.cell("score", [f32(H), f32(H)], |g, [q, k]| [g.affine([q, k], ws, None)]);
    let both = m.cell("both", [f32(H), f32(H), f32(H)], |g, [q, a, b]| {
        let values = g.list([a, b, q]);
        [g.attend(q, g.list([b, a, a]), values, 0.5) + values.mean()]
    });
    let g = Graph::new(&m.build().expect("valid"));
    for key in 0..1 + random.below(3) {
        g.instance(key as u64);
        let words: Vec<Value<'_>> =
            (0..1 + random.below(4)).map(|_| embed.lookup(&g, random.below(VOCABULARY) as u32)).collect();
        let projected: Vec<[Value<'_>; 2]> = words.iter().map(|&x| x.affine(wk, None).split()).collect();
        let keys = g.list(projected.iter().map(|pair| pair[0]));
        let values = g.list(projected.iter().map(|pair| pair[1]));
        for &x in &words {
            let q = x.affine(wq, None);
            let dot = g.attend(q, keys, values, 0.7);
            let scores: Vec<Value<'_>> =
                projected.iter().map(|pair| g.call(score, [q, pair[0]])[0]).collect();
            let scores = g.list(scores);
            let additive = g.softmax_sum(scores, values) + g.weighted_sum(scores, values);
            let [both] = g.call(both, [q, dot, additive]);
            output(&g, "context", both);
        }
    }
    finish(g)
}

fn nested(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("nested");
    let embed = m.table("embed", [VOCABULARY, H], Init::Uniform(0.1));
    let w1 = m.param("w1", [H, H], Init::Glorot(1.0));
    let w2 = m.param("w2", [H, 2 * H], Init::Glorot(1.0));
    let wt = m.param("wt", [2 * H, 3 * H], Init::Glorot(1.0));
    let layer = |m: &mut ModuleBuilder, name: &str, w: Param| {
        m.cell(name, [f32(H)], move |g, [x]| [(g.affine([x], w, None) + x).tanh()])
    };
    let one = layer(&mut m, "one", w1);
    let block = m.cell("block", [f32(H), f32(H), INDEX], |g, [a, b, word]| {
        let [a] = g.call(one, [a]);
        let [b] = g.call(one, [b]);
        let x = embed.row(word);
        // Uses the weight directly and transposed, with slices and parts of other values as operands.
        let wide = g.concat([a, b, x]).affine_transposed(wt, None);
        let (left, right) = (wide.slice(0..H), wide.slice(H..2 * H));
        let swapped = g.concat([right, left]);
        let narrow = g.affine([swapped.slice(1..1 + H)], w2, None).reshape([2, H]);
        let pair = g.stack([left, right]);
        let mixed = (narrow + pair).t().sum_rows();
        [mixed.stop_gradient() * left.scale_gradient(0.5), swapped]
    });
    let outer = m.cell("outer", [f32(H), INDEX, INDEX], |g, [x, i, j]| {
        let [a, s] = g.call(block, [x, x, i]);
        let [b, t] = g.call(block, [a, x, j]);
        [a * b, s + t, b]
    });
    let g = Graph::new(&m.build().expect("valid"));
    let start = g.fill(H, 0.25);
    for key in 0..1 + random.below(3) {
        g.instance(key as u64);
        let mut x = start;
        for _ in 0..1 + random.below(3) {
            let words = [0; 2].map(|_: i32| random.below(VOCABULARY) as u32);
            let [a, s, b] = g.call(outer, (x, words[0], words[1]));
            x = if random.below(2) == 0 { a + b } else { g.call(one, b)[0] };
            output(&g, "wide", s);
        }
        output(&g, "x", x);
    }
    finish(g)
}

fn mixed_indices(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("mixed");
    let embed: Table = m.table("embed", [VOCABULARY, H], Init::Uniform(0.1));
    let wo = m.param("wo", [H, VOCABULARY], Init::Glorot(1.0));
    let step = m.cell("step", [f32(H), INDEX, INDEX], |g, [h, i, j]| {
        let h = (embed.row(i) + embed.row(j) * h).tanh();
        [h, g.affine([h], wo, None)]
    });
    let g = Graph::new(&m.build().expect("valid"));
    for key in 0..1 + random.below(4) {
        g.instance(key as u64);
        let mut state = g.zeros(H);
        let mut chosen = g.index(random.below(VOCABULARY) as u32);
        for _ in 0..1 + random.below(4) {
            let bound = random.below(VOCABULARY) as u32;
            let [h, scores] = match random.below(4) {
                0 => g.call(step, (state, chosen, bound)),
                1 => g.call(step, (state, bound, chosen)),
                2 => g.call(step, (state, bound, bound)),
                _ => g.call(step, (state, chosen, chosen)),
            };
            state = h;
            chosen = scores.argmax();
            match random.below(3) {
                0 => loss(&g, "loss", scores.cross_entropy(bound)),
                1 => loss(&g, "loss", scores.cross_entropy(chosen)),
                _ => loss(&g, "loss", scores.hinge(bound, 0.5)),
            }
            output(&g, "picked", scores.pick(chosen) + scores.pick(bound));
        }
        output(&g, "state", embed.lookup(&g, chosen) + state);
    }
    finish(g)
}

fn dropout(random: &mut Random) -> GraphData {
    let mut m = ModuleBuilder::new("dropout");
    let w = m.param("w", [H, H], Init::Glorot(1.0));
    let inner = m.cell("inner", [f32(H)], |_, [x]| [x.dropout(0.5) + x.dropout(0.25)]);
    let noisy = m.cell("noisy", [f32(H), f32(H)], |g, [x, h]| {
        let [a] = g.call(inner, [x]);
        let [b] = g.call(inner, [h]);
        [(g.affine([a.dropout(0.3) + b], w, None)).tanh()]
    });
    let g = Graph::new(&m.build().expect("valid"));
    for key in 0..1 + random.below(4) {
        g.instance(key as u64);
        let mut h = g.zeros(H);
        for _ in 0..1 + random.below(3) {
            let x = g.input(&random.floats(H));
            [h] = g.call(noisy, [x, h]);
            if random.below(2) == 0 {
                h = h.dropout(0.1);
            }
        }
        output(&g, "h", h);
    }
    finish(g)
}
