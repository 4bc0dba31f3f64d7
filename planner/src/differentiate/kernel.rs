//! The derivative kernel of a signature.
//!
//! *Needs* a signature, and which of its ports and parameters require gradients. *Ensures* a kernel over one lane that makes
//! the gradients of these ports from the gradients of the results, with the bits of `reference::reverse`, and the rows that
//! reductions take.
//!
//! *How.* The deriver walks the body forward, as the compiler does, with a tape of what every node read and made. It then
//! walks in reverse ([`tape`](super::tape)), and each op appends the stages of its rule ([`rules`](super::rules)). The reverse
//! half could recompute every forward register that it reads. [`cut`](super::cut) instead saves the registers that are worth
//! a row: the forward kernel returns them too and writes them to a node slab. Dead stages are dropped, and the rest is fused
//! like any kernel.
//!
//! The gradient of a result arrives as a list of contributions and is summed first. No contribution gives zeros, one is
//! copied, several are added in graph order.

use super::deriver::{Deriver, Partial, PortUse, Refused};
use crate::ids::{ContributionId, PartId};
use crate::index_vec::IndexVec;
use crate::kernels::compile::{Builder, CompileOptions, Tables, Value};
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{Kernel, ParamPort, PortRole, ReductionSum, View};
use autobatch_ir::types::{DType, Type};
use std::collections::HashMap;
use std::sync::Arc;

/// Where a reduction finds its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowSource {
    /// Where a port of a kernel in reverse with this role finds them.
    Port(PortRole),
    /// In this result that the step in reverse makes for reductions only.
    Part(PartId),
    /// In this contribution that the step in reverse makes, one row per lane.
    Contribution(ContributionId),
}

/// Rows that a reduction takes from every lane.
#[derive(Clone, Debug)]
pub(crate) struct LaneReduction {
    /// The parameter argument of the signature.
    pub(crate) param: ParamPort,
    pub(crate) sum: ReductionSum,
    pub(crate) each: u32,
    pub(crate) x: Option<RowSource>,
    pub(crate) dy: RowSource,
}

/// A contribution to the gradient of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GradientOf {
    /// The forward operand.
    pub(crate) operand: u32,
    pub(crate) rows: GradientRows,
}

/// The rows of a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GradientRows {
    /// The step in reverse makes one row per lane; of a list, it is for all values.
    Lane,
    /// The step in reverse makes one row for every value of the list.
    Edges,
    /// A step that pulls makes one row for every value, of all nodes that attend to it.
    Pulled,
}

/// How the keys and values that a signature attends to pull their gradients.
#[derive(Debug)]
pub(crate) struct Pull {
    /// The operands that are the lists of keys and of values.
    pub(crate) lists: [u32; 2],
    /// The numbers of their contributions, if they are needed.
    pub(crate) gradients: [Option<ContributionId>; 2],
    /// The part that holds the rows of readers.
    pub(crate) part: PartId,
    pub(crate) kernel: Arc<Kernel>,
}

/// The kernels of a signature for training: a forward kernel that saves registers, and a kernel in reverse.
#[derive(Debug)]
pub(crate) struct Derivative {
    /// The forward kernel, which returns the saved registers after its results.
    pub(crate) forward: Arc<Kernel>,
    /// The types of the saved registers.
    pub(crate) saves: Vec<Type>,
    /// The kernel in reverse. Its first results are contributions, the others are for reductions and pulls only.
    pub(crate) kernel: Arc<Kernel>,
    /// All contributions, ascending by operand. A list has one contribution per use in the body.
    pub(crate) gradients: IndexVec<ContributionId, GradientOf>,
    pub(crate) pulls: Vec<Pull>,
    /// The types of the results for reductions and pulls only.
    pub(crate) parts: Vec<Type>,
    /// The reductions that take its rows, ascending by the place in the body that uses the parameter.
    pub(crate) reductions: Vec<LaneReduction>,
}

impl Derivative {
    /// The values that the ports of the kernel in reverse read.
    pub(crate) fn ports(&self) -> &[PortRole] {
        self.kernel.roles.as_ref().map_or(&[], |roles| &roles.ports)
    }
}

/// Which operands and parameters of a signature require gradients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    /// Per operand of the signature.
    pub(crate) operands: Vec<bool>,
    /// Per parameter argument.
    pub(crate) params: Vec<bool>,
}

/// The derivative of a signature; `None` if nothing that requires a gradient gets one.
pub(crate) fn derive(
    tables: Tables<'_>,
    sig: SigId,
    options: CompileOptions,
    wanted: &Wanted,
) -> Result<Option<Derivative>, Refused> {
    let signature = tables.sigs.get(sig);
    let (builder, ports, args) = Builder::of(tables, signature, options);
    let mut deriver = Deriver {
        b: builder,
        params: wanted.params.clone(),
        reductions: Vec::new(),
        kept: Vec::new(),
        kept_at: HashMap::new(),
        incoming: Vec::new(),
        pulls: Vec::new(),
    };
    let (results, needs, tape) = deriver.forward(signature, &ports, &wanted.operands, &args);
    let results: Vec<View> = results.into_iter().map(|value| deriver.b.one_view(value)).collect();
    let types = signature.results.iter().map(|&ty| tables.types.get(ty)).collect();
    let forward = Forward { regs: deriver.b.regs.len(), stages: deriver.b.stages.len(), results, types };
    let grads = signature.results.iter().zip(&needs).map(|(&ty, &needs)| {
        let ty = tables.types.get(ty);
        (needs && ty.dtype == DType::F32).then_some(ty)
    });
    let types: Vec<Option<Type>> = grads.collect();
    let incoming = |(result, ty): (usize, Option<Type>)| ty.map(|ty| deriver.incoming(result as u32, ty));
    let grads: Vec<Option<Value>> = types.into_iter().enumerate().map(incoming).collect();
    if grads.iter().all(Option::is_none) {
        return Ok(None);
    }
    let partials = deriver.reverse(&tape, &grads)?;
    let (mut gradients, mut made) = (IndexVec::default(), Vec::new());
    let mut pulled = vec![[None; 2]; deriver.pulls.len()];
    for (place, partial) in partials.into_iter().enumerate() {
        let uses = match partial {
            _ if !wanted.operands[place] => continue,
            Partial::One(value) => vec![PortUse::Shared(value)],
            Partial::Port(uses) => uses,
            Partial::None | Partial::Many(_) => continue,
        };
        for contribution in uses {
            let (rows, view) = match contribution {
                PortUse::Shared(value) => (GradientRows::Lane, Some(deriver.b.one_view(value))),
                PortUse::Edges(view) => (GradientRows::Edges, Some(view)),
                PortUse::Pulled(pull, side) => {
                    pulled[pull][side] = Some(gradients.next_id());
                    (GradientRows::Pulled, None)
                }
            };
            gradients.push(GradientOf { operand: place as u32, rows });
            made.push(view);
        }
    }
    deriver.drop_unread(&pulled);
    if gradients.is_empty() && deriver.reductions.is_empty() {
        return Ok(None);
    }
    let name = tables.module.callee_name(signature.callee);
    Ok(Some(deriver.finish(name, &forward, Contributed { gradients, made, pulled })))
}

/// The forward half of the registers and stages.
pub(super) struct Forward {
    pub(super) regs: usize,
    pub(super) stages: usize,
    pub(super) results: Vec<View>,
    /// The types of the results, which may have other shapes than the registers that they are views of.
    pub(super) types: Vec<Type>,
}

/// The contributions of a signature.
pub(super) struct Contributed {
    pub(super) gradients: IndexVec<ContributionId, GradientOf>,
    /// The results of the kernel in reverse that are contributions; `None` for a pulled contribution.
    pub(super) made: Vec<Option<View>>,
    /// Per pull the contributions to its keys and values.
    pub(super) pulled: Vec<[Option<ContributionId>; 2]>,
}
