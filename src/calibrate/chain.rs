//! Plans that repeat one kind of step many times, for timing that step.

use crate::Result;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, INDEX, Init, Module, ModuleBuilder, Value, Weights, f32};
use autobatch_planner::schedule::{Class, Policy};
use autobatch_planner::{Planner, Request, Work};
use autobatch_runtime_cpu::{Executor, Inputs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of steps in a chain.
pub(super) const STEPS: usize = 24;
/// Number of rows of each table that lookups read.
const TABLE_ROWS: usize = 512;
/// Number of values in each list that a fold reads.
const LIST_LENGTH: usize = 2;

/// A chain of steps of one class, ready for execution.
pub(super) struct Chain {
    plan: Verified<Plan>,
    words: Vec<u32>,
    floats: Vec<f32>,
    weights: Weights,
    executor: Executor,
    /// The number of nodes of the graph.
    pub(super) nodes: usize,
    /// The shortest time in which the planner planned them.
    pub(super) planning: Duration,
}

/// The operands of the steps of a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// One operand, the rows of the previous step in order.
    Direct,
    /// Two operands, both direct.
    TwoDirect,
    /// Two operands, one direct and one gathered.
    Gathered,
}

impl Chain {
    /// Plans a chain whose steps have `rows` rows of `width` elements.
    pub(super) fn new(class: Class, rows: usize, width: usize, reads: Reads) -> Result<Self> {
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
            // Lookups read no row of an earlier step, so each of them must be an output.
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

    /// The work of the step that occurs most often in the chain.
    pub(super) fn work(&self) -> Work {
        let busiest = self.plan.steps.iter().max_by_key(|step| {
            let same = self.plan.steps.iter().filter(|other| other.kernel == step.kernel).count();
            (!self.plan.kernel(step).source, same)
        });
        busiest.map_or_else(Work::default, |step| Work::of(self.plan.kernel(step)))
    }

    /// Executes the chain repeatedly for the time `duration`, at least twice, and returns the
    /// nanoseconds a step of the fastest run.
    pub(super) fn time(&mut self, duration: Duration) -> Result<f64> {
        let begin = Instant::now();
        let mut best = f64::INFINITY;
        for run in 0.. {
            let start = Instant::now();
            let bound = Inputs { words: &self.words, floats: &self.floats, noise: Noise::Off };
            self.executor.execute(&self.plan, &self.weights, bound)?;
            // The first run packs weights and touches memory.
            if run > 0 {
                best = best.min(start.elapsed().as_secs_f64());
            }
            if run > 1 && begin.elapsed() >= duration {
                break;
            }
        }
        Ok(best * 1e9 / self.plan.steps.len().max(1) as f64)
    }
}

/// Emits the value of one row of a step: arguments are the step, the row and the values of the
/// previous step.
type Emit = Box<dyn for<'g> Fn(&'g Graph, usize, usize, &[Value<'g>]) -> Value<'g>>;

fn model(class: Class, width: usize, reads: Reads) -> (Arc<Module>, Emit) {
    let mut m = ModuleBuilder::new("calibration");
    let one = f32([width]);
    let emit: Emit = match class {
        _ if reads != Reads::Direct => {
            let cell = m.cell("step", [one; 2], |_, [x, y]| [x + y]);
            Box::new(move |g, _, row, values| {
                let other = match reads {
                    // An odd factor is invertible modulo a power of two, so each row is read once.
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
            let near = (0..LIST_LENGTH).map(|i| values[(row + i) % values.len()]);
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
