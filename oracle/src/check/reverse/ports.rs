//! Ports of a derivative: each lane must read the row that the role of the port names.

use super::{Name, Reverse};
use crate::check::lanes::Lanes;
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::id::{NodeId, SigId, TypeId};
use autobatch_ir::plan::{Kernel, ListSource, PortRole, RegId, Stage, Step, StepOperand};

/// Returns whether a stage does more with a list port than sum it. The sum of no contributions is zero; other stages
/// may differ.
fn is_read_apart(kernel: &Kernel, port: RegId) -> bool {
    kernel.stages.iter().any(|stage| match stage {
        Stage::Seg { op: Op::ListFold(ListFold::Sum), .. } => false,
        Stage::Seg { lists, .. } => lists.contains(&ListSource::Port(port)),
        Stage::SegGrad { lists, .. } => lists.contains(&port),
        Stage::MeanGrad { list, .. } => *list == port,
        Stage::AttendGrad { keys, values, .. } => [*keys, *values].contains(&port),
        Stage::AttendPull { readers, .. } => *readers == port,
        _ => false,
    })
}

impl Lanes<'_> {
    /// The first lane that does not read the row of a port's role. The forward step saves `saves` registers.
    pub(super) fn first_wrong_lane(
        &self,
        step: &Step,
        sig: SigId,
        port: usize,
        saves: usize,
        reverse: &Reverse<'_>,
    ) -> Option<(usize, NodeId)> {
        let kernel = self.plan.kernel(step);
        let role = kernel.roles.as_ref()?.ports[port];
        let lanes = self.plan.lanes(step);
        if !self.has_type(kernel, sig, port, role, saves) {
            return Some((0, lanes[0]));
        }
        let operand = self.plan.operands(step)[port];
        let is_wrong =
            |&(lane, &node): &(usize, &NodeId)| !self.holds(reverse, role, lane as u32, node, operand);
        lanes.iter().enumerate().find(is_wrong).map(|(lane, &node)| (lane, node))
    }

    /// Returns whether the signature has an operand, result or register for the role, in the type of the port.
    fn has_type(&self, kernel: &Kernel, sig: SigId, port: usize, role: PortRole, saves: usize) -> bool {
        let (signature, ty) = (self.graph.sigs.get(sig), kernel.regs[port].ty);
        let fits = |types: &[TypeId], number: u32, list: bool| {
            types.get(number as usize).is_some_and(|&own| {
                let own = self.graph.ty(own);
                (own.dtype, own.shape.elements(), own.is_list) == (ty.dtype, ty.shape.elements(), list)
            })
        };
        match role {
            PortRole::Operand(number) => fits(&signature.operands, number, ty.is_list),
            PortRole::Result(number) => !ty.is_list && fits(&signature.results, number, false),
            PortRole::Saved(number) => !ty.is_list && (number as usize) < saves,
            PortRole::Gradient(number) => {
                fits(&signature.results, number, false)
                    && !(ty.is_list && is_read_apart(kernel, RegId(port as u32)))
            }
            PortRole::Contributions | PortRole::Arriving | PortRole::Item(_) | PortRole::Readers(_) => false,
        }
    }

    /// Returns whether a lane reads the row of a role.
    fn holds(
        &self,
        reverse: &Reverse<'_>,
        role: PortRole,
        lane: u32,
        node: NodeId,
        operand: StepOperand,
    ) -> bool {
        let first = self.graph.arena.results(node).start;
        let row = || self.plan.operand_row(operand, lane);
        match role {
            PortRole::Operand(number) => self.agrees(lane, node, number as usize, operand),
            PortRole::Result(number) => {
                row().is_some_and(|(field, row)| self.at(field, row) as usize == first + number as usize)
            }
            PortRole::Saved(number) => row().is_some_and(|(field, row)| {
                self.name(reverse, field, row) == Name::Saved { node: node.index() as u32, number }
            }),
            PortRole::Gradient(number) => self.is_gradient(reverse, first + number as usize, lane, operand),
            PortRole::Contributions | PortRole::Arriving | PortRole::Item(_) | PortRole::Readers(_) => false,
        }
    }
}
