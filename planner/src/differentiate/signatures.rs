//! Facts of differentiation about the signatures of a graph.

use super::kernel::{Derivative, GradientRows, Wanted};
use super::tape::blocks;
use autobatch_ir::graph::{Callee, GraphData, ParamArg, Signature};
use autobatch_ir::id::SigId;
use autobatch_ir::plan::FieldId;
use autobatch_ir::types::DType;
use std::ops::{Index, IndexMut, Range};
use std::sync::Arc;

/// Facts of every signature of a graph. Entries of an earlier, larger graph may follow. Its memory is reused from plan to plan.
#[derive(Default)]
pub(super) struct Signatures(Vec<SigFacts>);

impl Signatures {
    /// Starts with a new graph. `params` says which of its parameters get gradients.
    pub(super) fn begin(&mut self, graph: &GraphData, params: &[bool]) {
        let signatures = graph.sigs.items();
        if self.0.len() < signatures.len() {
            self.0.resize_with(signatures.len(), SigFacts::default);
        }
        self.0.iter_mut().zip(signatures).for_each(|(facts, own)| facts.begin(graph, own, params));
    }
}

impl Index<SigId> for Signatures {
    type Output = SigFacts;

    fn index(&self, sig: SigId) -> &SigFacts {
        &self.0[sig.index()]
    }
}

impl IndexMut<SigId> for Signatures {
    fn index_mut(&mut self, sig: SigId) -> &mut SigFacts {
        &mut self.0[sig.index()]
    }
}

/// Facts about a signature.
#[derive(Default)]
pub(super) struct SigFacts {
    /// Whether a parameter of it needs a gradient.
    pub(super) params: bool,
    /// Whether no gradient passes through its results.
    pub(super) blocked: bool,
    pub(super) is_list: bool,
    pub(super) is_source: bool,
    /// Per operand whether it is a list.
    pub(super) lists: Vec<bool>,
    /// Per result whether it is a float.
    pub(super) floats: Vec<bool>,
    /// Whether some planned node has it.
    pub(super) planned: bool,
    /// Which operands and parameters require gradients in some planned node.
    pub(super) wanted: Wanted,
    /// The derivative, after the first live node requested it; `Some(None)` if there is none.
    derivative: Option<Option<Arc<Derivative>>>,
    /// The contributions of the derivative by operand, ascending.
    pub(super) groups: Vec<Group>,
    /// The first field of the registers that forward steps save.
    pub(super) saved: Option<FieldId>,
    /// The first field of the parts that reductions take.
    pub(super) parts: Option<FieldId>,
}

/// The results in reverse that contribute to one operand.
pub(super) struct Group {
    pub(super) operand: u32,
    pub(super) list: bool,
    /// Whether the values of the list pull all these contributions.
    pub(super) pulled: bool,
    pub(super) uses: Range<usize>,
}

impl SigFacts {
    fn begin(&mut self, graph: &GraphData, signature: &Signature, params: &[bool]) {
        fn refill(list: &mut Vec<bool>, with: impl Iterator<Item = bool>) {
            list.clear();
            list.extend(with);
        }
        let wants = |arg: &ParamArg| matches!(*arg, ParamArg::Module(param) if params[param.index()]);
        self.params = signature.params.iter().any(wants);
        self.blocked = matches!(signature.callee, Callee::Op(op) if blocks(op));
        self.is_list = signature.is_list();
        self.is_source = signature.callee.is_source();
        refill(&mut self.lists, signature.operands.iter().map(|&ty| graph.ty(ty).is_list));
        refill(&mut self.floats, signature.results.iter().map(|&ty| graph.ty(ty).dtype == DType::F32));
        self.planned = false;
        refill(&mut self.wanted.operands, signature.operands.iter().map(|_| false));
        refill(&mut self.wanted.params, signature.params.iter().map(wants));
        self.derivative = None;
        self.groups.clear();
        (self.saved, self.parts) = (None, None);
    }

    /// Whether no node has requested the derivative.
    pub(super) fn is_unrequested(&self) -> bool {
        self.derivative.is_none()
    }

    /// The derivative, if it was requested and there is one.
    pub(super) fn derivative(&self) -> Option<&Arc<Derivative>> {
        self.derivative.as_ref()?.as_ref()
    }

    /// Sets the derivative, whose contributions ascend by operand.
    pub(super) fn set_derivative(&mut self, derivative: Option<Arc<Derivative>>) {
        let gradients = derivative.as_ref().map_or(&[][..], |found| &found.gradients);
        for (number, of) in gradients.iter().enumerate() {
            match self.groups.last_mut() {
                Some(last) if last.operand == of.operand => {
                    last.uses.end = number + 1;
                    last.pulled &= of.rows == GradientRows::Pulled;
                }
                _ => {
                    let list = self.lists[of.operand as usize];
                    let pulled = of.rows == GradientRows::Pulled;
                    self.groups.push(Group { operand: of.operand, list, pulled, uses: number..number + 1 });
                }
            }
        }
        self.derivative = Some(derivative);
    }
}
