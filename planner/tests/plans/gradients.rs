//! Gradients of plans, by the naive player, are those of the reference.
//!
//! Gradients of values agree bit for bit, except for the sign of a zero: what has no gradient is
//! left out by the reference and added as 0 by a kernel. Gradients of parameters are the same terms
//! in another order: they agree within `8 eps sqrt(terms)` of the sum of the terms' sizes.

use crate::agreement::planner;
use crate::graphs::{MODELS, Random};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{ParamId, ValueId};
use autobatch_ir::plan::interp::{Played, play};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{FieldId, FinalSum, Mode, Operand, Plan, Verified};
use autobatch_ir::types::DType;
use autobatch_ir::{Weights, reference};
use autobatch_planner::{Gradients, Request, RowOrder};

fn is_float(graph: &GraphData, value: ValueId) -> bool {
    let ty = graph.type_of(value);
    ty.dtype == DType::F32 && !ty.is_list
}

/// Every float output is a loss, with factors that differ.
fn losses(graph: &GraphData) -> Vec<(ValueId, f32)> {
    let floats = graph.outputs.iter().map(|output| output.value).filter(|&value| is_float(graph, value));
    floats.enumerate().map(|(number, value)| (value, [1.0, -0.5, 0.75][number % 3])).collect()
}

fn row(plan: &Plan, run: &Played, operand: Operand, lane: u32) -> Vec<f32> {
    let (field, row): (FieldId, u32) = match operand {
        Operand::Rows { field, start, stride } => (field, start + lane * stride),
        Operand::Table { field, at } => (field, plan.tables[(at + lane) as usize]),
        other => panic!("{other:?} is no row"),
    };
    run.row(field, row).expect("a row").iter().map(|&word| f32::from_bits(word)).collect()
}

/// Per element of a gradient, how many terms it has and the sum of their sizes.
fn sizes(plan: &Plan, run: &Played, words: &[u32], param: ParamId) -> Vec<(f64, f64)> {
    let store = plan.gradient_of(param).expect("a gradient");
    let shape = plan.stores[store.index()].ty.shape;
    let mut sizes = vec![(0.0, 0.0); shape.elements()];
    let mut add = |at: usize, term: f32| {
        sizes[at].0 += 1.0;
        sizes[at].1 += f64::from(term.abs());
    };
    for sum in plan.finals.iter().filter(|sum| sum.store == store) {
        for part in &sum.parts {
            for lane in 0..part.lanes {
                let dy = row(plan, run, part.dy, lane);
                match (sum.sum, part.x) {
                    (FinalSum::Wgrad { row: first, col, k, n }, Some(x)) => {
                        let x = row(plan, run, x, lane);
                        for (x, dy) in x.chunks_exact(k as usize).zip(dy.chunks_exact(n as usize)) {
                            for (i, x) in x.iter().enumerate() {
                                for (j, dy) in dy.iter().enumerate() {
                                    add((first as usize + i) * shape.width() + col as usize + j, x * dy);
                                }
                            }
                        }
                    }
                    (FinalSum::Tgrad, Some(index)) => {
                        let index = match index {
                            Operand::Words { start, stride } => words[(start + lane * stride) as usize],
                            Operand::WordTable { at } => words[plan.tables[(at + lane) as usize] as usize],
                            rows => row(plan, run, rows, lane)[0].to_bits(),
                        };
                        let first = index as usize * shape.width();
                        dy.iter().enumerate().for_each(|(j, &dy)| add(first + j, dy));
                    }
                    _ => dy.iter().enumerate().for_each(|(j, &dy)| add(j % shape.elements(), dy)),
                }
            }
        }
    }
    sizes
}

/// Equal, zeros of both signs being one, NaN being NaN.
fn same(a: f32, b: f32) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

struct Case<'a> {
    graph: &'a GraphData,
    weights: Weights,
    training: bool,
}

impl Case<'_> {
    fn noise(&self) -> Noise {
        if self.training { Noise::On { seed: 5, step: 2 } } else { Noise::Off }
    }

    fn plan(&self, policy: &str, rows: RowOrder, gradients: Gradients<'_>) -> Result<Verified<Plan>, String> {
        let gradients = Some(gradients);
        let request = Request { mode: Mode::Train, training: self.training, rows, gradients, wanted: &[] };
        let plan = planner(policy).plan(self.graph, &request).map_err(|error| error.to_string())?;
        plan.verify().map_err(|errors| errors.to_string())
    }

    fn play(&self, plan: &Verified<Plan>) -> Played {
        let stores: Vec<Vec<f32>> = self.weights.iter().map(|param| param.values().to_vec()).collect();
        let bound = &self.graph.bindings;
        play(plan, &stores, &bound.words, &bound.floats, self.noise()).expect("indices are in range")
    }

    fn reference(&self, losses: &[(ValueId, f32)]) -> reference::Gradients<f32> {
        let mode = match self.training {
            true => reference::Mode::Train { seed: 5, step: 2 },
            false => reference::Mode::Eval,
        };
        let run = reference::forward::<f32>(self.graph, &self.weights, mode).expect("sound");
        reference::reverse(self.graph, &self.weights, &run, losses).expect("sound")
    }

    /// Compares all gradients of one plan.
    fn agrees(&self, policy: &str, rows: RowOrder) -> Result<(), String> {
        let losses = losses(self.graph);
        let values: Vec<ValueId> = (0..self.graph.arena.values())
            .map(ValueId::new)
            .filter(|&value| is_float(self.graph, value))
            .collect();
        let plan = self.plan(policy, rows, Gradients { losses: &losses, params: None, values: &values })?;
        let (run, expected) = (self.play(&plan), self.reference(&losses));
        let first = plan.outputs.len() - values.len();
        for (number, &value) in values.iter().enumerate() {
            let words = run.output(first + number).expect("an output");
            let found: Vec<f32> = words.iter().map(|&word| f32::from_bits(word)).collect();
            let zeros = vec![0.0; found.len()];
            let expected = expected.value(value).unwrap_or(&zeros);
            if !found.iter().zip(expected).all(|(&a, &b)| same(a, b)) {
                let callee = self.graph.module.callee_name(self.graph.signature(self.graph.arena.producer(value)).callee);
                return Err(format!("gradient of {value} of {callee} is {found:?}, the reference says {expected:?}"));
            }
        }
        for number in 0..self.graph.module.params.len() {
            let param = ParamId::new(number);
            let found = run.gradient(plan.gradient_of(param).expect("wanted")).expect("made");
            let zeros = vec![0.0; found.len()];
            let expected = expected.param(param).unwrap_or(&zeros);
            let sizes = sizes(&plan, &run, &self.graph.bindings.words, param);
            for ((&a, &b), (terms, size)) in found.iter().zip(expected).zip(sizes) {
                let bound = 8.0 * f64::from(f32::EPSILON) * terms.sqrt() * size;
                if !same(a, b) && (f64::from(a) - f64::from(b)).abs() > bound {
                    let name = &self.graph.module.params[number].name;
                    return Err(format!("@{name}: {found:?}, the reference says {expected:?}"));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn gradients_of_every_model_are_those_of_the_reference() {
    let mut failures = Vec::new();
    for (name, model) in MODELS {
        for round in 0..3 {
            let graph = model(&mut Random(round));
            for training in [false, true] {
                let case = Case { graph: &graph, weights: Weights::init(&graph.module, 3), training };
                for (policy, rows) in [("none", RowOrder::Batch), ("auto", RowOrder::Propagated), ("agenda", RowOrder::Propagated)] {
                    if let Err(error) = case.agrees(policy, rows) {
                        failures.push(format!("{name} seed {round} {policy} {training}: {error}"));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}
