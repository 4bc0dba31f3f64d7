//! The expected values and gradients of a graph, by the reference evaluator.

use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ParamId, ValueId};
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{OutputKey, Plan};
use autobatch_ir::types::DType;
use autobatch_oracle::naive::Executed;
use autobatch_oracle::reference::{self, RunError};
use std::collections::HashMap;

/// The values of a graph, and its gradients if losses were given.
pub(crate) struct Expected<'a> {
    graph: &'a GraphData,
    forward: reference::Run<f32>,
    reverse: Option<reference::Gradients<f32>>,
}

impl<'a> Expected<'a> {
    /// Evaluates the graph.
    ///
    /// # Errors
    /// If a binding is out of range.
    pub(crate) fn new(
        graph: &'a GraphData,
        weights: &Weights,
        noise: Noise,
        losses: &[(ValueId, f32)],
        shards: &[NodeId],
    ) -> Result<Self, RunError> {
        let forward = reference::forward::<f32>(graph, weights, noise)?;
        let reverse = match losses {
            [] => None,
            _ => Some(
                reference::Evaluation::new(graph, weights, noise)?
                    .reverse_in_shards(&forward, losses, shards)?,
            ),
        };
        Ok(Self { graph, forward, reverse })
    }

    /// Compares every output of a run, and returns their number.
    ///
    /// # Errors
    /// The first output with unexpected bits.
    pub(crate) fn compare(&self, plan: &Plan, run: &Executed) -> Result<u64, String> {
        let outputs = &self.graph.outputs;
        let named: HashMap<&str, ValueId> =
            outputs.iter().map(|output| (output.name.as_str(), output.value)).collect();
        for (number, output) in plan.outputs.iter().enumerate() {
            let found = run.output(number).ok_or_else(|| format!("output {number} has no row"))?;
            let equal = match &output.key {
                OutputKey::Named(name) => {
                    self.value(*named.get(name.as_str()).ok_or("no such output")?, found)
                }
                OutputKey::Value(value) => self.value(*value, found),
                OutputKey::Gradient(value) => self.gradient(*value, found),
            };
            if !equal {
                let floats: Vec<f32> = found.iter().map(|&word| f32::from_bits(word)).collect();
                return Err(format!("output {:?} is {floats:?}, the reference differs", output.key));
            }
        }
        Ok(plan.outputs.len() as u64)
    }

    /// Compares the gradients of all parameters, and returns their number.
    ///
    /// # Errors
    /// The first element that differs.
    pub(crate) fn compare_params(&self, plan: &Plan, run: &Executed) -> Result<u64, String> {
        let Some(reverse) = &self.reverse else { return Ok(0) };
        let mut compared = 0;
        for number in 0..self.graph.module.params.len() {
            let param = ParamId::new(number);
            let Some(found) = plan.gradient_of(param).and_then(|store| run.gradient(store)) else { continue };
            let zeros = vec![0.0; found.len()];
            let expected = reverse.param(param).unwrap_or(&zeros);
            let mut pairs = found.iter().zip(expected);
            if let Some((found, expected)) = pairs.find(|&(&found, &expected)| !is_same(found, expected)) {
                let name = &self.graph.module.params[number].name;
                return Err(format!("@{name}: found {found}, expected {expected}"));
            }
            compared += 1;
        }
        Ok(compared)
    }

    fn value(&self, value: ValueId, found: &[u32]) -> bool {
        match self.graph.type_of(value).dtype {
            DType::F32 => self.forward.floats(value).is_some_and(|expected| {
                let pairs = expected.iter().zip(found);
                expected.len() == found.len() && { pairs }
                    .all(|(x, &word)| same_bits(*x, f32::from_bits(word)))
            }),
            _ => self.forward.words(value) == Some(found),
        }
    }

    /// Compares a gradient. The reference leaves out missing contributions, so zeros of both signs are equal.
    fn gradient(&self, value: ValueId, found: &[u32]) -> bool {
        let expected = self.reverse.as_ref().and_then(|reverse| reverse.value(value));
        let floats = found.iter().map(|&word| f32::from_bits(word));
        match expected {
            Some(expected) => {
                expected.len() == found.len() && floats.zip(expected).all(|(a, &b)| is_same(a, b))
            }
            None => { floats }.all(|x| x == 0.0),
        }
    }
}

/// Returns whether two numbers are equal. Zeros of both signs are equal, and so are all NaNs.
fn is_same(a: f32, b: f32) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}
