//! The derivative kernel of a signature.
//!
//! *Needs* a signature and which of its ports and parameters want gradients. *Ensures* a kernel over
//! one lane that, from the gradients of the results, makes the gradients of those ports with the
//! bits of `reference::reverse`, and whatever the sums over parameters take.
//!
//! *How.* The body is walked forward once, exactly as it is compiled, with a tape of what every
//! node read and made; then in reverse ([`tape`](super::tape)), each op appending the stages
//! of its rule ([`rules`](super::rules)). Everything forward that the reverse half reads would thus
//! be computed again. What is worth keeping is cut out instead ([`cut`](super::cut)): the forward
//! kernel returns those registers too, written in place to a node slab. Dead stages go, the
//! rest is fused like any kernel.
//!
//! A result's gradient arrives as a list of contributions, folded first: none gives zeros, one is
//! copied, several are added in the order of the graph.

use super::rules::{Partial, PortUse};
use crate::compile::{Builder, CompileOptions, Tables, Value};
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{Code, Kernel, ListSource, PortRole, ReductionSum, RegKind, Source, Stage, View};
use autobatch_ir::types::{DType, Type};
use std::collections::HashMap;
use std::sync::Arc;

/// An op that has no rule here; gradients are refused rather than wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) op: &'static str,
}

/// Where a reduction finds its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowSource {
    /// Where a port of a kernel in reverse with this role finds them.
    Port(PortRole),
    /// In this result that the step in reverse makes for reductions only.
    Part(u32),
    /// In this contribution that the step in reverse makes, one row per lane.
    Contribution(u32),
}

/// Rows that a sum over a parameter takes from every lane.
#[derive(Clone, Debug)]
pub(crate) struct LaneReduction {
    /// The parameter argument of the signature.
    pub(crate) param: u32,
    pub(crate) sum: ReductionSum,
    pub(crate) each: u32,
    pub(crate) x: Option<RowSource>,
    pub(crate) dy: RowSource,
}

/// What a result in reverse contributes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GradientOf {
    /// The forward operand. Of a list, one row is for all its values unless they are edges.
    pub(crate) operand: u32,
    /// Whether every value of the list has a row of its own.
    pub(crate) edges: bool,
}

/// What is executed in reverse for a signature, and what the forward step must keep for it.
#[derive(Debug)]
pub(crate) struct Derivative {
    /// The forward kernel, which returns the saved registers after its results.
    pub(crate) forward: Arc<Kernel>,
    /// The types of the saved registers.
    pub(crate) saves: Vec<Type>,
    /// The kernel in reverse: first the gradients of operands, then what is kept for reductions.
    pub(crate) kernel: Arc<Kernel>,
    /// What its first results contribute to: of a list, one for each use of it in the body.
    pub(crate) gradients: Vec<GradientOf>,
    /// The types of the results after those.
    pub(crate) kept: Vec<Type>,
    /// The sums that it feeds.
    pub(crate) reductions: Vec<LaneReduction>,
}

impl Derivative {
    /// What the ports of the kernel in reverse read.
    pub(crate) fn ports(&self) -> &[PortRole] {
        self.kernel.roles.as_ref().map_or(&[], |roles| &roles.ports)
    }
}

/// What wants gradients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    /// Per operand of the signature.
    pub(crate) operands: Vec<bool>,
    /// Per parameter argument.
    pub(crate) params: Vec<bool>,
}

/// The derivative of a signature; none if nothing that wants a gradient gets one.
pub(crate) fn derive(
    tables: Tables<'_>,
    sig: SigId,
    options: CompileOptions,
    wanted: &Wanted,
) -> Result<Option<Derivative>, Refused> {
    let signature = tables.sigs.get(sig);
    let mut builder = Builder::new(tables, options);
    let ports: Vec<Value> = signature.operands.iter().map(|&ty| builder.port(tables.types.get(ty))).collect();
    builder.ports = ports.len() as u32;
    builder.params = signature.param_types.iter().map(|&ty| tables.types.get(ty)).collect();
    let mut deriver = Deriver {
        b: builder,
        params: wanted.params.clone(),
        reductions: Vec::new(),
        kept: Vec::new(),
        kept_at: HashMap::new(),
        incoming: Vec::new(),
    };
    let args: Vec<u32> = (0..signature.params.len() as u32).collect();
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
    let mut gradients = Vec::new();
    let mut made = Vec::new();
    for (place, partial) in partials.into_iter().enumerate() {
        let uses = match partial {
            _ if !wanted.operands[place] => continue,
            Partial::One(value) => vec![PortUse::Shared(value)],
            Partial::Port(uses) => uses,
            Partial::None | Partial::Many(_) => continue,
        };
        for contribution in uses {
            let edges = matches!(contribution, PortUse::Edges(_));
            gradients.push(GradientOf { operand: place as u32, edges });
            made.push(match contribution {
                PortUse::Shared(value) => deriver.b.one_view(value),
                PortUse::Edges(view) => view,
            });
        }
    }
    if gradients.is_empty() && deriver.reductions.is_empty() {
        return Ok(None);
    }
    Ok(Some(deriver.finish(tables.module.callee_name(signature.callee), &forward, gradients, made)))
}

/// How far the forward half of the stages goes.
pub(super) struct Forward {
    pub(super) regs: usize,
    pub(super) stages: usize,
    pub(super) results: Vec<View>,
    /// The types of the results, which may have other shapes than the registers that they are views of.
    pub(super) types: Vec<Type>,
}

/// A sum over a parameter in the making.
pub(super) struct PendingReduction {
    pub(super) param: u32,
    pub(super) sum: ReductionSum,
    pub(super) each: u32,
    pub(super) x: Option<View>,
    /// One of the `kept` views.
    pub(super) dy: usize,
    /// For a transposed weight the roles are exchanged.
    pub(super) swapped: bool,
}

pub(super) struct Deriver<'a> {
    pub(super) b: Builder<'a>,
    /// Which parameter arguments want gradients.
    pub(super) params: Vec<bool>,
    pub(super) reductions: Vec<PendingReduction>,
    /// Views that reductions take.
    pub(super) kept: Vec<View>,
    /// The places of views among them.
    pub(super) kept_at: HashMap<View, usize>,
    /// The register of each gradient that arrives, and the result it belongs to.
    pub(super) incoming: Vec<(u32, u32)>,
}

impl<'a> Deriver<'a> {
    /// A port for the contributions to a gradient, and their sum.
    fn incoming(&mut self, result: u32, ty: Type) -> Value {
        let list = self.b.reg(RegKind::Port, Type { is_list: true, ..ty });
        self.incoming.push((list.reg, result));
        let dst = self.b.temp(ty);
        let lists = vec![ListSource::Port(list.reg)];
        self.b.stages.push(Stage::Seg {
            op: Op::ListFold(ListFold::Sum),
            query: None,
            lists,
            elements: vec![ty],
            dst,
        });
        Value::Pieces(vec![dst], ty)
    }
    /// One elementwise instruction.
    pub(super) fn instr(&mut self, code: Code, sources: Vec<Source>, ty: Type) -> View {
        let dst = self.b.temp(ty);
        self.instr_to(dst, code, ty.dtype, sources);
        dst
    }

    /// One elementwise instruction with a place for its result.
    pub(super) fn instr_to(&mut self, dst: View, code: Code, dtype: DType, sources: Vec<Source>) {
        let instr = autobatch_ir::plan::Instr { code, dtype, sources, store: Some(dst) };
        self.b.stages.push(Stage::Map { width: dst.width, code: vec![instr] });
    }

    /// Keeps a view for reductions.
    pub(super) fn keep(&mut self, view: View) -> usize {
        let next = self.kept.len();
        let place = *self.kept_at.entry(view).or_insert(next);
        if place == next {
            self.kept.push(view);
        }
        place
    }
}
