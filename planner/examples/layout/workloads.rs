//! Graphs of the three workloads, generated or read, and their batches as layout problems.

use super::Failure;
use autobatch_ir::hash::split_mix;
use autobatch_planner::layout::{Problem, Role, SlabId, SlotSpec};
use std::time::Instant;

/// A cell type: how many fields travel together in its record, and the slab that holds them.
#[derive(Clone, Copy)]
struct Cell {
    fields: usize,
    slab: u32,
}

/// Nodes in topological order; a value is named by the node that makes it.
#[derive(Default)]
pub(crate) struct Graph {
    cells: Vec<Cell>,
    nodes: Vec<(usize, Vec<usize>)>,
}

impl Graph {
    fn add(&mut self, cell: usize, operands: &[usize]) -> usize {
        self.nodes.push((cell, operands.to_vec()));
        self.nodes.len() - 1
    }

    /// The cell and operands of every node, in topological order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (usize, &[usize])> {
        self.nodes.iter().map(|(cell, operands)| (*cell, operands.as_slice()))
    }

    /// Fires all ready nodes of the type with the largest ready share of its own sources.
    fn batches(&self) -> Vec<Vec<usize>> {
        let mut done = vec![false; self.nodes.len()];
        let mut batches = Vec::new();
        let mut left = self.nodes.len();
        while left > 0 {
            let mut above = vec![0u32; self.nodes.len()];
            let mut ready: Vec<Vec<usize>> = vec![Vec::new(); self.cells.len()];
            let mut sources = vec![0usize; self.cells.len()];
            for (v, (cell, operands)) in self.nodes.iter().enumerate() {
                if done[v] {
                    continue;
                }
                for &u in operands.iter().filter(|&&u| !done[u]) {
                    above[v] |= above[u] | 1 << self.nodes[u].0;
                }
                if above[v] == 0 {
                    ready[*cell].push(v);
                }
                sources[*cell] += usize::from(above[v] >> cell & 1 == 0);
            }
            let share = |c: &usize| (ready[*c].len() * 1_000_000 / sources[*c].max(1), ready[*c].len());
            let Some(best) = (0..self.cells.len()).max_by_key(share) else {
                break;
            };
            let fired = std::mem::take(&mut ready[best]);
            left -= fired.len();
            for &v in &fired {
                done[v] = true;
            }
            batches.push(fired);
        }
        batches
    }

    /// The batches as a layout problem, and the nanoseconds that adding them took.
    pub(crate) fn problem(&self) -> Result<(Problem, u128), Failure> {
        let slabs = self.cells.iter().map(|c| c.slab + 1).max().unwrap_or(0);
        let mut sizes = vec![0u32; slabs as usize];
        let row: Vec<u32> = self
            .nodes
            .iter()
            .map(|(cell, _)| {
                let size = &mut sizes[self.cells[*cell].slab as usize];
                *size += 1;
                *size - 1
            })
            .collect();
        let mut problem = Problem::new();
        let mut nanoseconds = 0;
        for size in sizes {
            problem.add_slab(size)?;
        }
        for batch in self.batches() {
            let Some(&(cell, ref operands)) = batch.first().map(|&v| &self.nodes[v]) else {
                continue;
            };
            let mut columns: Vec<(Role, usize, Vec<u32>)> = Vec::new();
            let result = batch.iter().map(|&v| row[v]).collect();
            columns.push((Role::Result, cell, result));
            for slot in 0..operands.len() {
                let names = || batch.iter().map(|&v| self.nodes[v].1[slot]);
                let from = names().next().map_or(0, |u| self.nodes[u].0);
                columns.push((Role::Operand, from, names().map(|u| row[u]).collect()));
            }
            let specs: Vec<SlotSpec<'_>> = columns
                .iter()
                .flat_map(|(role, cell, rows)| {
                    let cell = self.cells[*cell];
                    let spec = SlotSpec { role: *role, slab: SlabId(cell.slab), bytes: 512, rows };
                    std::iter::repeat_n(spec, cell.fields)
                })
                .collect();
            let start = Instant::now();
            problem.add_batch(batch.len() as u32, &specs)?;
            nanoseconds += start.elapsed().as_nanos();
        }
        Ok((problem, nanoseconds))
    }
}

/// Seeded numbers.
pub(crate) struct SplitMix64(pub(crate) u64);

impl SplitMix64 {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (split_mix(&mut self.0) % bound as u64) as usize
    }
}

const LEAF: usize = 0;
const NODE: usize = 1;

/// Leaves and nodes share one record slab {h, c}; each root is read by a loss cell without a value slab of its own.
fn tree_graph() -> Graph {
    let record = Cell { fields: 2, slab: 0 };
    Graph { cells: vec![record, record, Cell { fields: 1, slab: 1 }], nodes: Vec::new() }
}

fn random_tree(graph: &mut Graph, random: &mut SplitMix64, leaves: usize) -> usize {
    if leaves == 1 {
        return graph.add(LEAF, &[]);
    }
    let left = 1 + random.below(leaves - 1);
    let a = random_tree(graph, random, left);
    let b = random_tree(graph, random, leaves - left);
    graph.add(NODE, &[a, b])
}

pub(crate) fn generated_trees(random: &mut SplitMix64) -> Graph {
    let mut graph = tree_graph();
    for _ in 0..32 {
        let leaves = 4 + random.below(31);
        let root = random_tree(&mut graph, random, leaves);
        graph.add(2, &[root]);
    }
    graph
}

/// `(label left right)` or `(label word)`.
pub(crate) fn parsed_trees(lines: &[&str]) -> Graph {
    let mut graph = tree_graph();
    for line in lines {
        let mut open: Vec<Vec<usize>> = Vec::new();
        let mut root = None;
        for part in line.split(['(', ' ']).filter(|p| !p.is_empty()) {
            if part.len() == 1 && part.bytes().all(|b| b.is_ascii_digit()) && !part.ends_with(')') {
                open.push(Vec::new());
                continue;
            }
            for _ in part.matches(')') {
                let children = open.pop().unwrap_or_default();
                let made =
                    if let [a, b] = children[..] { graph.add(NODE, &[a, b]) } else { graph.add(LEAF, &[]) };
                match open.last_mut() {
                    Some(parent) => parent.push(made),
                    None => root = Some(made),
                }
            }
        }
        if let Some(root) = root {
            graph.add(2, &[root]);
        }
    }
    graph
}

/// Both directions of a recurrent tagger: inputs of all words at once, a first step without state, an output per word.
pub(crate) fn chains(random: &mut SplitMix64) -> Graph {
    let input = Cell { fields: 1, slab: 0 };
    let (fw, bw) = (Cell { fields: 2, slab: 1 }, Cell { fields: 2, slab: 2 });
    let mut graph =
        Graph { cells: vec![input, fw, fw, bw, bw, Cell { fields: 1, slab: 3 }], nodes: Vec::new() };
    for _ in 0..32 {
        let length = 3 + random.below(45);
        let words: Vec<usize> = (0..length).map(|_| graph.add(0, &[])).collect();
        let mut forward = vec![graph.add(1, &[words[0]])];
        for &word in &words[1..] {
            let before = forward[forward.len() - 1];
            forward.push(graph.add(2, &[before, word]));
        }
        let mut backward = vec![graph.add(3, &[words[length - 1]])];
        for &word in words[..length - 1].iter().rev() {
            let before = backward[backward.len() - 1];
            backward.push(graph.add(4, &[before, word]));
        }
        for (f, b) in forward.iter().zip(backward.iter().rev()) {
            graph.add(5, &[*f, *b]);
        }
    }
    graph
}

/// Characters with words laid over them: cell 0 character input, 1 first character, 2 character, 3 character with words that
/// end there, 4 word (from the state at its first character), 5 sum of two word states.
pub(crate) fn lattice(sentences: &[(usize, Vec<(usize, usize)>)]) -> Graph {
    let (input, state, word) =
        (Cell { fields: 1, slab: 0 }, Cell { fields: 2, slab: 1 }, Cell { fields: 1, slab: 2 });
    let mut graph = Graph { cells: vec![input, state, state, state, word, word], nodes: Vec::new() };
    for (length, words) in sentences {
        let mut states: Vec<usize> = Vec::new();
        for at in 0..*length {
            let x = graph.add(0, &[]);
            let mut sum = None;
            for &(begin, _) in words.iter().filter(|&&(begin, end)| end == at + 1 && begin < at) {
                let cell = graph.add(4, &[states[begin]]);
                sum = Some(sum.map_or(cell, |sum| graph.add(5, &[sum, cell])));
            }
            states.push(match (states.last(), sum) {
                (None, _) => graph.add(1, &[x]),
                (Some(&before), None) => graph.add(2, &[before, x]),
                (Some(&before), Some(sum)) => graph.add(3, &[before, x, sum]),
            });
        }
    }
    graph
}

pub(crate) fn random_lattices(random: &mut SplitMix64) -> Graph {
    let sentence = |random: &mut SplitMix64| {
        let length = 8 + random.below(60);
        let spans = (0..length * 6 / 10).map(|_| (random.below(length - 2), 2 + random.below(2)));
        let mut words: Vec<(usize, usize)> = spans.map(|(b, n)| (b, (b + n).min(length))).collect();
        words.sort_unstable();
        words.dedup();
        (length, words)
    };
    lattice(&(0..32).map(|_| sentence(random)).collect::<Vec<_>>())
}

pub(crate) fn parsed_lattices(text: &str) -> Vec<(usize, Vec<(usize, usize)>)> {
    let span = |s: &str| s.split_once(':').and_then(|(b, e)| Some((b.parse().ok()?, e.parse().ok()?)));
    let sentence = |block: &str| {
        let mut lines = block.lines();
        let length = lines.next().unwrap_or_default().split(' ').count();
        let words = lines.nth(1).unwrap_or_default().split(' ').filter_map(span).collect();
        (length, words)
    };
    text.split("\n\n").filter(|b| !b.trim().is_empty()).map(sentence).collect()
}
