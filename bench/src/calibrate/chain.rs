//! Plans of one kind of step, to be timed: the same cell, or another of its kind, many times in a row over so many instances.

use crate::BenchError;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, INDEX, Init, Module, ModuleBuilder, Value, Weights, f32};
use autobatch_planner::schedule::{Class, Policy};
use autobatch_planner::{Planner, Request, Work};
use autobatch_runtime_cpu::{Bound, Executor};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps of a chain.
pub(super) const STEPS: usize = 24;
/// Tables that look-ups go to, and how many rows they have.
const TABLE_ROWS: usize = 512;
/// Values of each list that is folded.
const LISTED: usize = 2;

/// A chain of steps of one class, ready to be executed.
pub(super) struct Chain {
    plan: Verified<Plan>,
    words: Vec<u32>,
    floats: Vec<f32>,
    weights: Weights,
    executor: Executor,
    /// How many nodes were planned, and how long that took at best.
    pub(super) nodes: usize,
    pub(super) planning: Duration,
}

/// What steps read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// The rows that the step before wrote, in order.
    InPlace,
    /// Two of them, one in order.
    Both,
    /// Two of them, one in order and one through a table.
    Gathered,
}

impl Chain {
    /// So many rows, so wide.
    pub(super) fn new(class: Class, rows: usize, width: usize, reads: Reads) -> Result<Self, BenchError> {
        let (module, emit) = model(class, width, reads);
        let graph = Graph::new(&module);
        let mut values: Vec<Value<'_>> = (0..rows)
            .map(|row| {
                graph.instance(row as u64);
                let floats: Vec<f32> = (0..width).map(|i| 0.1 + ((row + i) % 13) as f32 / 16.0).collect();
                graph.input(&floats)
            })
            .collect();
        let mut wanted = Vec::new();
        for step in 0..STEPS {
            values = (0..rows).map(|row| emit(&graph, step, row, &values)).collect();
            // Look-ups read nothing that another step wrote, so all of them are asked for.
            if class == Class::Lookup || step + 1 == STEPS {
                wanted.extend(values.iter().filter_map(|value| value.id()));
            }
        }
        graph.check()?;
        let data = graph.data();
        let mut planner = Planner::new(Policy::Depth.load()?);
        let mut planning = Duration::MAX;
        let mut plan = None;
        for _ in 0..3 {
            let start = Instant::now();
            plan = Some(planner.plan(&data, &Request { wanted: &wanted, ..Request::default() })?);
            planning = planning.min(start.elapsed());
        }
        let plan = plan.expect("the loop runs").verify()?;
        let weights = Weights::init(&module, 1);
        let (words, floats) = (data.bindings.words.clone(), data.bindings.floats.clone());
        let executor = Executor::new(1)?;
        Ok(Self { plan, words, floats, weights, executor, nodes: data.arena.len(), planning })
    }

    /// What the steps of the chain do.
    pub(super) fn work(&self) -> Work {
        let busiest = self.plan.steps.iter().max_by_key(|step| {
            let same = self.plan.steps.iter().filter(|other| other.kernel == step.kernel).count();
            (!self.plan.kernel(step).source, same)
        });
        busiest.map_or_else(Work::default, |step| Work::of(self.plan.kernel(step)))
    }

    /// Nanoseconds a step, the best of the executes that fit into a time, two at least.
    pub(super) fn time(&mut self, turn: Duration) -> Result<f64, BenchError> {
        let begin = Instant::now();
        let mut best = f64::INFINITY;
        for execute in 0.. {
            let start = Instant::now();
            let bound = Bound { words: &self.words, floats: &self.floats, noise: Noise::Off };
            self.executor.execute(&self.plan, &self.weights, bound)?;
            // The first packs weights and touches memory.
            if execute > 0 {
                best = best.min(start.elapsed().as_secs_f64());
            }
            if execute > 1 && begin.elapsed() >= turn {
                break;
            }
        }
        Ok(best * 1e9 / self.plan.steps.len().max(1) as f64)
    }
}

/// Emits the value of a row after a step, from those of the step before.
type Emit = Box<dyn for<'g> Fn(&'g Graph, usize, usize, &[Value<'g>]) -> Value<'g>>;

fn model(class: Class, width: usize, reads: Reads) -> (Arc<Module>, Emit) {
    let mut m = ModuleBuilder::new("calibration");
    let one = f32([width]);
    let emit: Emit = match class {
        _ if reads != Reads::InPlace => {
            let cell = m.cell("step", [one; 2], |_, [x, y]| [x + y]);
            Box::new(move |g, _, row, values| {
                let other = match reads {
                    // An odd factor has an inverse modulo a power of two: every row is read once.
                    Reads::Gathered => (row * 1_234_567 + 5) % values.len(),
                    _ => row,
                };
                let [y] = g.call(cell, [values[row], values[other]]);
                y
            })
        }
        Class::Product => {
            let w = m.param("w", [width, width], Init::Glorot(1.0));
            let cell = m.cell("step", [one], |g, [x]| [g.affine([x], w, None)]);
            Box::new(move |g, _, row, values| g.call(cell, values[row])[0])
        }
        Class::Map => {
            let cell = m.cell("step", [one], |_, [x]| [x * x + x]);
            Box::new(move |g, _, row, values| g.call(cell, values[row])[0])
        }
        Class::Function => {
            let cell = m.cell("step", [one], |_, [x]| [x.tanh()]);
            Box::new(move |g, _, row, values| g.call(cell, values[row])[0])
        }
        Class::Row => {
            let cell = m.cell("step", [one], |_, [x]| [x.softmax()]);
            Box::new(move |g, _, row, values| g.call(cell, values[row])[0])
        }
        Class::Fold => Box::new(move |g, _, row, values| {
            let near = (0..LISTED).map(|i| values[(row + i) % values.len()]);
            g.list(near).sum()
        }),
        Class::Lookup => {
            let tables: Vec<_> = (0..STEPS)
                .map(|step| m.table(&format!("t{step}"), [TABLE_ROWS, width], Init::Uniform(0.1)))
                .collect();
            let cells: Vec<_> = tables
                .into_iter()
                .map(|table| m.cell("step", [INDEX], move |_, [word]| [table.row(word)]))
                .collect();
            Box::new(move |g, step, row, _| g.call(cells[step], (row * 7919 % TABLE_ROWS) as u32)[0])
        }
    };
    (m.build().expect("the model is well typed"), emit)
}
