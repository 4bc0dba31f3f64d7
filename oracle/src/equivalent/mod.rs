//! Proof that two graphs compute the same bits.
//!
//! [`equivalent`] takes pairs of values, one of each graph. It proves that both have the same elements for all
//! bindings, parameters, seeds and modes, or reports the first difference. It validates the rewriting passes, but
//! shares no code with them and does not know them.
//!
//! *Needs* nothing: it verifies both graphs first. *Ensures* that the values of an accepted pair agree under
//! [`same_bits`](autobatch_ir::numeric::same_bits), element by element.
//!
//! *How.* Both graphs are expanded into one pool of hash-consed terms, so equal terms have equal numbers and common
//! subexpressions are merged. The normal form:
//! * A value is a *view*: a sequence of ranges of terms and of runs of one constant. `concat`, `stack`, `split`,
//!   `slice` and `reshape` only regroup ranges; adjacent ranges of one term are joined.
//! * Calls of cells are inlined and parameter ports resolved. If the right module starts with the cells of the left
//!   one, calls of common cells are first compared without inlining, because equal cells have equal results for equal
//!   operands. If that fails, they are inlined too.
//! * The operands of an affine are concatenated to one row, so splits of the row do not matter, but the order of the
//!   chain does.
//! * Lists are ordered sequences, so the order of a fold is preserved.
//! * `stop_gradient`, `scale_gradient`, a cast to the own type, `x * 1`, `1 * x`, `x / 1`, `x + -0`, `-0 + x`, `x - +0`
//!   (and their integer forms) are `x`. Each identity is exact for every `x`, including signed zeros and infinities;
//!   payloads of NaN do not count. `x + +0` is not `x` (it changes `-0` to `+0`), and `x * 0` is not zero.
//! * Elementwise ops of constants are constants, computed by the reference interpreter. A select with a constant
//!   condition is the selected operand.
//! * Bindings are identified by their slots: two slots differ even if they hold equal numbers. Noise keys are words
//!   like others.
//!
//! *Cost.* Linear in the number of nodes after inlining, which is limited to [`MAX_EXPANDED`].
//!
//! *Limits.* "Different" means that the normal forms differ, not that some input distinguishes the graphs.
//!
//! # Why this proof has its own terms
//! [`check`](crate::check) has a second term language, and both stay. The two proofs compare different objects. This
//! one expands every node of two graphs, up to 2^26 of them, and needs terms of whole values: one per node.
//! [`check`](crate::check) expands each signature once and compares it with kernels, whose stages cover element ranges
//! and parts of products; it needs terms of elements. With element terms, a product of `m` rows would be `m` chains
//! here, so the cost would no longer be linear in the nodes. With value terms, kernels would not normalise. The two
//! also follow different laws: opaque calls, both modes of dropout and neutral constants exist only here, and adding
//! the last to [`check`](crate::check) would make it accept more plans.

mod expand;
mod report;
mod terms;

#[cfg(test)]
mod tests;

pub use report::{Difference, Unproved};

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use expand::Expander;
use terms::Terms;

/// The maximum number of nodes of a graph after inlining.
pub const MAX_EXPANDED: u64 = 1 << 26;

/// A successful proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The number of proved pairs.
    pub pairs: usize,
    /// The number of distinct terms of both graphs together.
    pub terms: usize,
}

/// Proves that both values of each pair, the first of `left`, the second of `right`, have the same bits.
///
/// # Errors
/// The first pair without a proof, with the first subterms that differ, or the reason why the graphs cannot be
/// compared.
pub fn equivalent(
    left: &GraphData,
    right: &GraphData,
    pairs: &[(ValueId, ValueId)],
) -> Result<Proof, Unproved> {
    check(left, right, pairs)?;
    let common = common_cells(left, right);
    match compare(left, right, pairs, common) {
        Err(Unproved::Different(_)) if common > 0 => compare(left, right, pairs, 0),
        outcome => outcome,
    }
}

/// [`equivalent`] with its result as text, in the form of the planner's `passes::Prover`.
///
/// # Errors
/// If a pair cannot be proved: the report of [`Unproved`].
pub fn prove(left: &GraphData, right: &GraphData, pairs: &[(ValueId, ValueId)]) -> Result<(), String> {
    equivalent(left, right, pairs).map(drop).map_err(|unproved| unproved.to_string())
}

fn compare(
    left: &GraphData,
    right: &GraphData,
    pairs: &[(ValueId, ValueId)],
    common: usize,
) -> Result<Proof, Unproved> {
    let mut terms = Terms::default();
    let (left_values, right_values): (Vec<ValueId>, Vec<ValueId>) = pairs.iter().copied().unzip();
    let ours = Expander::new(left, &mut terms, common).expand(&left_values)?;
    let theirs = Expander::new(right, &mut terms, common).expand(&right_values)?;
    for (&(a, b), (ours, theirs)) in pairs.iter().zip(ours.iter().zip(&theirs)) {
        if ours != theirs {
            return Err(Unproved::Different(report::explain(&terms, left, a, b, (ours, theirs))));
        }
    }
    Ok(Proof { pairs: pairs.len(), terms: terms.len() })
}

/// Checks the preconditions of a proof.
fn check(left: &GraphData, right: &GraphData, pairs: &[(ValueId, ValueId)]) -> Result<(), Unproved> {
    for (side, graph) in [("left", left), ("right", right)] {
        graph.verify().map_err(|errors| Unproved::Malformed { side, errors })?;
    }
    let decls = |graph: &GraphData| -> Vec<_> {
        graph.module.params.iter().map(|decl| (decl.name.clone(), decl.ty)).collect()
    };
    if decls(left) != decls(right) {
        return Err(Unproved::Parameters);
    }
    for &(a, b) in pairs {
        for (side, graph, value) in [("left", left, a), ("right", right, b)] {
            if value.index() >= graph.arena.values() {
                return Err(Unproved::NoSuchValue { side, value });
            }
        }
        let (ours, theirs) = (left.type_of(a), right.type_of(b));
        if ours != theirs {
            return Err(Unproved::Types { left: (a, ours), right: (b, theirs) });
        }
    }
    Ok(())
}

/// The number of initial cells that both modules share, including the ids of their types and signatures.
fn common_cells(left: &GraphData, right: &GraphData) -> usize {
    let (ours, theirs) = (&left.module, &right.module);
    if std::sync::Arc::ptr_eq(ours, theirs) {
        return ours.cells.len();
    }
    let tables = theirs.types.items().starts_with(ours.types.items())
        && theirs.sigs.items().starts_with(ours.sigs.items());
    let same = ours.cells.iter().zip(&theirs.cells).take_while(|(a, b)| a.body == b.body);
    if tables { same.count() } else { 0 }
}
