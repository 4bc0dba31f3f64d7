//! Proof that two graphs compute the same bits.
//!
//! [`equivalent`] takes pairs of values, one of each graph, and proves that both have the same
//! elements for all bindings, parameters, seeds and modes, or says where it cannot. A rewriting pass
//! is right on a graph iff this proof goes through; the prover knows nothing of passes, and shares
//! no code with them.
//!
//! *Needs* nothing: both graphs are verified first. *Ensures* that an accepted pair agrees under
//! [`same_bits`](autobatch_ir::numeric::same_bits), element by element.
//!
//! *How.* Both sides are expanded into one pool of hash-consed terms, so equal terms are one number
//! and common subexpressions are found by construction. The normal form:
//! * a value is a *view*: ranges of elements of terms, and runs of one constant, side by side.
//!   `concat`, `stack`, `split`, `slice` and `reshape` only regroup ranges; neighbouring ranges of
//!   one term join;
//! * calls of cells are inlined, parameter ports resolved. Where the right module begins with the
//!   left one, calls of common cells are first compared as they stand, and inlined only if that
//!   fails: equal cells on equal operands are equal;
//! * an affine's operands are one row, so how the row was cut does not matter, while the order of
//!   the chain does;
//! * lists are ordered sequences, so the order of a fold stays;
//! * `stop_gradient`, `scale_gradient`, a cast to the own type, `x * 1`, `1 * x`, `x / 1`,
//!   `x + -0`, `-0 + x`, `x - +0` (and the like for integers) are `x`: each is exact for every `x`,
//!   signed zeros and infinities included, and no NaN has a payload. `x + +0` is not `x` (it turns
//!   `-0` into `+0`), and neither is `x * 0` zero;
//! * elementwise ops of constants are constants, by the functions of the reference interpreter;
//!   a choice by a constant is what it chooses;
//! * bound numbers are their slots: two slots are different even where they hold equal numbers now.
//!   Noise keys are words like others.
//!
//! *Cost.* Linear in the nodes after inlining, of which there may be [`MAX_EXPANDED`].
//!
//! *Refuses* what it cannot prove: the answer "different" means that the normal forms differ, not
//! that some input tells the graphs apart.

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

/// How many nodes one side may have after inlining.
pub const MAX_EXPANDED: u64 = 1 << 26;

/// What a proof rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// How many pairs were proved.
    pub pairs: usize,
    /// How many distinct terms both sides have together.
    pub terms: usize,
}

/// Proves that the two values of each pair, the first of `left`, the second of `right`, have the
/// same bits.
///
/// # Errors
/// The first pair that is not proved, with the first subterms that differ; or why there is no proof
/// to be had at all.
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
    let wanted: (Vec<ValueId>, Vec<ValueId>) = pairs.iter().copied().unzip();
    let ours = Expander::new(left, &mut terms, common).expand(&wanted.0)?;
    let theirs = Expander::new(right, &mut terms, common).expand(&wanted.1)?;
    for (&(a, b), (ours, theirs)) in pairs.iter().zip(ours.iter().zip(&theirs)) {
        if ours != theirs {
            return Err(Unproved::Different(report::explain(&terms, left, (a, b), (ours, theirs))));
        }
    }
    Ok(Proof { pairs: pairs.len(), terms: terms.len() })
}

/// What both sides must agree on before there is anything to prove.
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

/// How many cells the modules begin with in common, ids of types and signatures included.
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
