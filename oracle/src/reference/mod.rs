//! What a graph means: an interpreter that applies one op after the other, forward and reverse.
//!
//! It is the oracle of everything that is fast, so it is written to be read: one definition per op
//! ([`ops`]), one derivative rule per op ([`derivative`]), a walk forward and a walk in reverse. It is generic over [`Real`]: in `f32` its values are *the* bits, in
//! `f64` it says how far they are from the truth, and takes finite differences.
//!
//! # Forward
//! Nodes are evaluated in the order of the arena, each by the definitions of
//! [`numeric`](autobatch_ir::numeric). A cell call evaluates the cell's body in a frame of its own and
//! keeps its results only.
//!
//! # Noise
//! A use of noise has the key `[low, high]` (two operands) and an ordinal. In training, element `i`
//! of the operand (row by row) is dropped or kept by `numeric::noise::uniform(seed, step, key, i)`,
//! where `[l, h] = hash::noise_key([low, high], ordinal)` and `key = l + 2^32 h`. `fork_noise` is
//! `hash::noise_key` itself. Its derivative uses the same numbers. In evaluation dropout is the
//! identity.
//!
//! # Indices
//! An index that is looked up in a table, or that labels scores, must be below their number where it comes *as it
//! was bound*: in place or through an input, through ports, and in the body of a cell through `reshape`, `stack`, and `slice`,
//! `split` and `concat` along the first axis, such that what is read is a stretch of one bound vector. Anything
//! else is an error at the line of the lookup. An index that came another way is clamped to the last: an op
//! computed it, or another node of the graph handed it on. `pick` and `one_hot` clamp by their definition.
//!
//! # Reverse
//! The gradient of a value is the sum of the contributions of its uses: a left fold that begins
//! with the first contribution, in ascending order of (node, operand place, place in the
//! list). A list is a name: the node that takes it uses its elements. A loss is used after
//! all nodes, in the order given; so are the results of a body. A call contributes one
//! gradient for each of its operands, which is what the reverse of the body gives to the port; to
//! the values of a list operand it contributes once for each use of the list in the body.
//!
//! A value with no path to a loss has no gradient. Where another result of its node has one it
//! reads as zeros (`+0`): an op makes of them what its rule says, and a call that the graph makes hands
//! them to its body, so that a derivative that is infinite there becomes NaN. (Batches are made of calls
//! of the graph, and their lanes share a kernel.) Inside of a body a result without a gradient hands none on.
//!
//! The gradient of a parameter begins with `+0` and takes its uses in ascending order of
//! (node, the same inside the body.., row of the operand).

mod bound;
mod datum;
pub mod derivative;
mod error;
mod frame;
pub mod ops;
mod reverse;
mod single;
mod uses;

pub(crate) use datum::Argument;
pub use datum::{BoundWord, Datum, Run, Words};
pub(crate) use derivative::Partial;
pub use error::{Place, RunError, RunFault};
pub(crate) use frame::Call;
pub use reverse::Gradients;
pub(crate) use single::{Returned, Single, costs};
pub(crate) use uses::Share;

pub use autobatch_ir::numeric::noise::Noise;

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{ParamId, ValueId};
use autobatch_ir::numeric::Real;
use autobatch_ir::weights::Weights;
use frame::{Level, Scope};

/// A graph with the numbers that it is evaluated at.
///
/// Weights and bindings are `f32`; here they are `T` and can be moved by less than an `f32` could,
/// which finite differences need.
#[derive(Clone, Debug)]
pub struct Evaluation<'g, T> {
    graph: &'g GraphData,
    params: Vec<Vec<T>>,
    floats: Vec<T>,
    noise: Noise,
}

impl<'g, T: Real> Evaluation<'g, T> {
    /// The evaluation of a graph at these weights and at its own bindings.
    ///
    /// # Errors
    /// If the weights are those of another module, or the graph is too large or cells are nested
    /// too deeply for an interpreter.
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

    /// The values of a parameter, to be moved.
    ///
    /// # Panics
    /// If the module has no such parameter.
    pub fn param_mut(&mut self, param: ParamId) -> &mut [T] {
        &mut self.params[param.index()]
    }

    /// The pool of float inputs, to be moved.
    pub fn floats_mut(&mut self) -> &mut [T] {
        &mut self.floats
    }

    /// The elements of every value.
    ///
    /// # Errors
    /// If a binding is missing, an index is out of range, lists that belong together differ in
    /// length, or the graph is malformed.
    pub fn forward(&self) -> Result<Run<T>, RunError> {
        let slots = vec![None; self.graph.arena.values()];
        let slots = frame::evaluate(&self.scope(self.noise), &Level::top(self.graph), slots)?;
        Ok(Run { slots, noise: self.noise })
    }

    /// The gradients of `sum of scale * sum(value)` over the losses: each names a float value,
    /// normally a scalar, and its factor.
    ///
    /// # Errors
    /// As [`forward`](Self::forward), or if a loss is no float value of the graph.
    pub fn reverse(&self, run: &Run<T>, losses: &[(ValueId, f32)]) -> Result<Gradients<T>, RunError> {
        reverse::gradients(&self.scope(run.noise), run, losses)
    }

    fn scope(&self, noise: Noise) -> Scope<'_, T> {
        Scope { graph: self.graph, params: &self.params, floats: &self.floats, noise }
    }
}

/// What two sequences of declarations first differ in, spelled.
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

/// Evaluates a graph: the elements of every value.
///
/// # Errors
/// As [`Evaluation::new`] and [`Evaluation::forward`].
pub fn forward<T: Real>(graph: &GraphData, weights: &Weights, noise: Noise) -> Result<Run<T>, RunError> {
    Evaluation::new(graph, weights, noise)?.forward()
}

/// Differentiates a graph that was evaluated: see [`Evaluation::reverse`].
///
/// # Errors
/// As [`Evaluation::new`] and [`Evaluation::reverse`].
pub fn reverse<T: Real>(
    graph: &GraphData,
    weights: &Weights,
    run: &Run<T>,
    losses: &[(ValueId, f32)],
) -> Result<Gradients<T>, RunError> {
    Evaluation::new(graph, weights, run.noise)?.reverse(run, losses)
}
