//! Declares the cell of a run, with the signature of its calls.

use super::find::{MemberId, NodeRun, Origin, Use, result_of};
use crate::index_vec::IndexVec;
use autobatch_ir::graph::rebuild::Extension;
use autobatch_ir::graph::{Arena, Callee, GraphData, Operand, ParamArg, Signature};
use autobatch_ir::id::{NodeId, SigId, SiteId, TypeId, ValueId};
use autobatch_ir::module::Body;

/// Declares the cell of a run, or finds an equal cell. Returns the signature of its calls.
pub(super) fn declare(extension: &mut Extension, graph: &GraphData, run: &NodeRun) -> Signature {
    let site = graph.arena.node(run.heads()[0]).site;
    let (params, constants) = (Vec::new(), Vec::new());
    let mut writer = Writer { extension, graph, site, arena: Arena::default(), params, constants };
    let ports: Vec<TypeId> = run.ports.iter().map(|&at| writer.port_type(run, at)).collect();
    ports.iter().for_each(|&ty| writer.port(ty));
    let mut firsts = IndexVec::default();
    for (member, origins) in run.members.iter().zip(&run.origins) {
        let operands: Vec<Operand> = origins.iter().map(|&origin| writer.operand(origin, &firsts)).collect();
        let first = writer.member(member[0], &operands);
        firsts.push(first);
    }
    let results: Vec<ValueId> = run
        .results
        .iter()
        .map(|&(member, result)| ValueId::new(firsts[member].index() + result as usize))
        .collect();
    let types = run
        .results
        .iter()
        .map(|&(member, result)| graph.arena.type_of(result_of(graph, run.members[member][0], result)));
    let types: Box<[TypeId]> = types.collect();
    let Writer { extension, arena, params, .. } = writer;
    let (args, param_types): (Vec<ParamArg>, Vec<TypeId>) = params.into_iter().unzip();
    let head = run.heads()[0];
    let name = format!("run.{}", graph.module.callee_name(graph.signature(head).callee));
    let body = Body { ports: ports.len(), noise: false, param_types: param_types.clone(), arena, results };
    let cell = extension.cell(&name, body, site);
    Signature {
        callee: Callee::Cell(cell),
        operands: ports.into(),
        params: args.into(),
        param_types: param_types.into(),
        results: types,
    }
}

struct Writer<'a> {
    extension: &'a mut Extension,
    graph: &'a GraphData,
    /// The site of the head, for nodes without a line in the model.
    site: SiteId,
    arena: Arena,
    /// Lifted parameter arguments with their types.
    params: Vec<(ParamArg, TypeId)>,
    /// The constants of the body so far.
    constants: Vec<(SigId, ValueId)>,
}

impl Writer<'_> {
    fn port_type(&self, run: &NodeRun, (member, place): Use) -> TypeId {
        self.graph.signature(run.members[member][0]).operands[place as usize]
    }

    fn port(&mut self, ty: TypeId) {
        let sig = self.extension.port(ty);
        self.arena.append(sig, &[], &[ty], self.site);
    }

    fn operand(&mut self, origin: Origin, firsts: &IndexVec<MemberId, ValueId>) -> Operand {
        Operand::value(match origin {
            Origin::Inside { member, result } => ValueId::new(firsts[member].index() + result as usize),
            Origin::Port(port) => ValueId::new(port as usize),
            Origin::Constant(sig) => self.constant(sig),
        })
    }

    fn constant(&mut self, sig: SigId) -> ValueId {
        if let Some(&(_, value)) = self.constants.iter().find(|(known, _)| *known == sig) {
            return value;
        }
        let value = self.arena.append(sig, &[], &self.graph.sigs.get(sig).results, self.site);
        self.constants.push((sig, value));
        value
    }

    /// Appends a member, whose parameter arguments become ports.
    fn member(&mut self, node: NodeId, operands: &[Operand]) -> ValueId {
        let mut signature = self.graph.signature(node).clone();
        for (arg, &ty) in signature.params.iter_mut().zip(&signature.param_types) {
            let port = self.params.iter().position(|(known, _)| known == arg).unwrap_or(self.params.len());
            if port == self.params.len() {
                self.params.push((*arg, ty));
            }
            *arg = ParamArg::Port(port as u32);
        }
        let results = signature.results.clone();
        let sig = self.extension.sig(signature);
        self.arena.append(sig, operands, &results, self.graph.arena.node(node).site)
    }
}
