//! The meaning of a graph: an interpreter that evaluates one op after the other, forward and reverse.
//!
//! All optimised code is tested against this interpreter, so it is written for clarity. It has one definition per op
//! ([`ops`]), one derivative rule per op ([`derivative`]), and one traversal in each direction. It is generic over
//! [`Real`]: its `f32` values define *the* bits, and its `f64` values measure rounding errors and support finite
//! differences.
//!
//! # Forward
//! Nodes are evaluated in the order of the arena, each by the definitions of [`numeric`](autobatch_ir::numeric). A cell
//! call evaluates the cell's body in a frame of its own and returns its results.
//!
//! # Noise
//! A use of noise has a key `[low, high]` (two operands) and an ordinal. In training, `numeric::noise::uniform(seed,
//! step, key, i)` decides whether element `i` of the operand (in row-major order) is dropped, where `[l, h] =
//! hash::noise_key([low, high], ordinal)` and `key = l + 2^32 h`. `fork_noise` is `hash::noise_key` itself. The
//! derivative uses the same numbers. In inference dropout is the identity.
//!
//! # Indices
//! An index of a table, of scores or of a value must be in range, whether it is bound or computed. Otherwise the
//! evaluation fails at the line of the op that reads it.
//!
//! # Reverse
//! The gradient of a value is the sum of the contributions of its uses: a left fold that starts with the first
//! contribution, in ascending order of (node, operand index, position in the list). A list has no gradient of its own;
//! the node that takes it uses its elements. Losses count as uses after all nodes, in the given order, and so do the
//! results of a body. A call contributes one gradient per operand: the gradient of the port in the reverse of the body.
//! To the values of a list operand, it contributes once per use of the list in the body.
//!
//! Attention contributes to its keys and values by chains. All nodes of a signature that attend to a key together with a value,
//! in whatever lists, contribute *one* chain from `+0` of fused multiply-adds per use, in ascending order of (node, position in
//! the list). It counts as a contribution of the last of them. A list that is made in a body belongs to one node.
//!
//! A value without a path to a loss has no gradient. If another result of its node has one, the value's gradient counts
//! as zeros (`+0`): an op applies its rule to them, and a call of the graph passes them to its body, where an infinite
//! derivative turns them into NaN. (Batches consist of calls of the graph, and all lanes share a kernel.) Inside a
//! body, a result without a gradient contributes nothing.
//!
//! The gradient of a parameter is one chain. It starts with `+0` and adds the uses of the parameter, ascending by (signature
//! of the node, place of the use in its body, node, row of the operand). [Content](autobatch_ir::graph::Signatures::compare)
//! orders the signatures, so the order of two uses does not depend on the rest of the graph.

mod bound;
mod constants;
mod datum;
pub mod derivative;
mod error;
mod frame;
mod on_demand;
pub mod ops;
mod reverse;
mod single;
mod uses;

pub(crate) use bound::CallCost;
pub(crate) use constants::{Constants, is_wild};
pub(crate) use datum::Argument;
pub use datum::{Datum, Run};
pub(crate) use derivative::{Addend, Partial};
pub use error::{Place, RunError, RunFault};
pub(crate) use frame::Call;
pub use on_demand::{Given, OnDemand};
pub use reverse::Gradients;
pub(crate) use single::{Returned, Single, With, costs};
pub(crate) use uses::{Share, ShareKind};

pub use autobatch_ir::numeric::noise::Noise;

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ParamId, ValueId};
use autobatch_ir::numeric::Real;
use autobatch_ir::weights::Weights;
use frame::{Frame, Scope};

/// A graph with the values of its parameters and inputs.
///
/// Weights and bindings are `T`, so finite differences can change them by less than the resolution of `f32`.
#[derive(Clone, Debug)]
pub struct Evaluation<'g, T> {
    graph: &'g GraphData,
    params: Vec<Vec<T>>,
    floats: Vec<T>,
    noise: Noise,
}

impl<'g, T: Real> Evaluation<'g, T> {
    /// The evaluation of a graph with these weights and the graph's own bindings.
    ///
    /// # Errors
    /// If the weights belong to another module, the graph is too large, or cells are nested too deeply.
    pub fn new(graph: &'g GraphData, weights: &Weights, noise: Noise) -> Result<Self, RunError> {
        bound::check(graph)?;
        let decls = graph.module.params.iter().map(|decl| (decl.name.as_str(), decl.ty));
        let held = weights.iter().map(|param| (param.name(), param.ty()));
        if let Some((expected, found)) = first_difference(decls, held) {
            return Err(RunFault::Weights { expected, found }.into());
        }
        let widen = |numbers: &[f32]| numbers.iter().map(|&number| T::from_f32(number)).collect();
        let params = weights.iter().map(|param| widen(param.values())).collect();
        Ok(Self { graph, params, floats: widen(&graph.bindings.floats), noise })
    }

    /// Mutable access to the values of a parameter.
    ///
    /// # Panics
    /// If the module has no such parameter.
    pub fn param_mut(&mut self, param: ParamId) -> &mut [T] {
        &mut self.params[param.index()]
    }

    /// Mutable access to the pool of float inputs.
    pub fn floats_mut(&mut self) -> &mut [T] {
        &mut self.floats
    }

    /// Evaluates the elements of every value.
    ///
    /// # Errors
    /// If a binding is missing, an index is out of range, lists have different lengths, or the graph is malformed.
    pub fn forward(&self) -> Result<Run<T>, RunError> {
        let slots = vec![None; self.graph.arena.values()];
        let params = slices(&self.params);
        let scope = self.scope(&params, self.noise);
        let mut frame = Frame::of(&scope, &self.graph.arena, slots);
        frame.evaluate()?;
        Ok(Run { slots: frame.slots, noise: self.noise })
    }

    /// The gradients of `sum of scale * sum(value)` over the losses: float values, normally scalars, and their factors,
    /// `f32` or `f64`.
    ///
    /// # Errors
    /// As [`forward`](Self::forward), or if a loss is not a float value of the graph.
    pub fn reverse(
        &self,
        run: &Run<T>,
        losses: &[(ValueId, impl Into<f64> + Copy)],
    ) -> Result<Gradients<T>, RunError> {
        self.reverse_in_shards(run, losses, &[])
    }

    /// The same with a chain for each shard in the gradients of parameters, and the chains added in the tree of the shards.
    /// `shards` are the first nodes of all shards but the first, ascending.
    ///
    /// # Errors
    /// As [`reverse`](Self::reverse).
    pub fn reverse_in_shards(
        &self,
        run: &Run<T>,
        losses: &[(ValueId, impl Into<f64> + Copy)],
        shards: &[NodeId],
    ) -> Result<Gradients<T>, RunError> {
        reverse::gradients(&self.scope(&slices(&self.params), run.noise), run, losses, shards)
    }

    fn scope<'a>(&'a self, params: &'a [&'a [T]], noise: Noise) -> Scope<'a, T> {
        Scope {
            graph: self.graph,
            params,
            floats: &self.floats,
            noise,
            constants: Constants::Given,
            clamps: false,
        }
    }
}

/// The values of parameters, as an evaluation reads them.
fn slices<T>(params: &[Vec<T>]) -> Vec<&[T]> {
    params.iter().map(Vec::as_slice).collect()
}

/// The first difference between two sequences of declarations, as text.
fn first_difference<'a>(
    mut expected: impl Iterator<Item = (&'a str, autobatch_ir::Type)>,
    mut found: impl Iterator<Item = (&'a str, autobatch_ir::Type)>,
) -> Option<(String, String)> {
    let spell = |decl: Option<(&str, autobatch_ir::Type)>| match decl {
        Some((name, ty)) => format!("@{name}: {ty}"),
        None => "no parameter".to_owned(),
    };
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => return Some((spell(a), spell(b))),
        }
    }
}

/// Evaluates a graph.
///
/// # Errors
/// As [`Evaluation::new`] and [`Evaluation::forward`].
pub fn forward<T: Real>(graph: &GraphData, weights: &Weights, noise: Noise) -> Result<Run<T>, RunError> {
    Evaluation::new(graph, weights, noise)?.forward()
}

/// Differentiates an evaluated graph; see [`Evaluation::reverse`].
///
/// # Errors
/// As [`Evaluation::new`] and [`Evaluation::reverse`].
pub fn reverse<T: Real>(
    graph: &GraphData,
    weights: &Weights,
    run: &Run<T>,
    losses: &[(ValueId, impl Into<f64> + Copy)],
) -> Result<Gradients<T>, RunError> {
    Evaluation::new(graph, weights, run.noise)?.reverse(run, losses)
}
