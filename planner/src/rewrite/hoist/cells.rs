//! Declares the two cells of a split call.

use super::body::{BodyPart, Half, Plan};
use autobatch_ir::graph::rebuild::Extension;
use autobatch_ir::graph::{Arena, Callee, GraphData, Op, Operand, ParamArg, Signature};
use autobatch_ir::id::{SigId, SiteId, TypeId, ValueId};
use autobatch_ir::module::Body;

/// A call of one of the new cells.
pub(super) struct Call {
    pub(super) signature: Signature,
    /// The operands of the old call that it takes. The rest takes the crossing values after them.
    pub(super) places: Vec<usize>,
}

/// Declares the cell before the recurrence, whose results are the crossing values, and the cell of the rest.
pub(super) fn declare(
    extension: &mut Extension,
    graph: &GraphData,
    sig: SigId,
    plan: &Plan<'_>,
) -> [Call; 2] {
    let signature = graph.sigs.get(sig);
    let Callee::Cell(cell) = signature.callee else { unreachable!("only calls of cells are split") };
    let decl = graph.module.cell_decl(cell);
    let name = decl.name.clone();
    [Half::Before, Half::Rest].map(|half| {
        let mut writer = Writer::new(&mut *extension, graph, plan, half, decl.site);
        let places = writer.ports();
        let results = writer.write();
        let Writer { arena, params, .. } = writer;
        let types: Box<[TypeId]> = results.iter().map(|&value| arena.type_of(value)).collect();
        let ports: usize = places.len() + if half == Half::Rest { plan.crossing.len() } else { 0 };
        let operands = arena.value_types()[..ports].into();
        let param_types: Vec<TypeId> =
            params.iter().map(|&port| signature.param_types[port as usize]).collect();
        let body = Body { ports, noise: false, param_types: param_types.clone(), arena, results };
        let suffix = if half == Half::Before { "before" } else { "rest" };
        let cell = extension.cell(&format!("{suffix}.{name}"), body, decl.site);
        let signature = Signature {
            callee: Callee::Cell(cell),
            operands,
            params: params.iter().map(|&port| signature.params[port as usize]).collect(),
            param_types: param_types.into(),
            results: types,
        };
        Call { signature, places }
    })
}

struct Writer<'a> {
    extension: &'a mut Extension,
    graph: &'a GraphData,
    plan: &'a Plan<'a>,
    half: Half,
    arena: Arena,
    /// The parameter ports of the old body that the new body uses.
    params: Vec<u32>,
    /// The value in the new body of each value of the old body.
    values: Vec<Option<ValueId>>,
    /// Nodes of the old body that the half needs.
    needed: Vec<bool>,
    site: SiteId,
}

impl<'a> Writer<'a> {
    fn new(
        extension: &'a mut Extension,
        graph: &'a GraphData,
        plan: &'a Plan<'a>,
        half: Half,
        site: SiteId,
    ) -> Self {
        let old = &plan.body.arena;
        let (values, needed) = (vec![None; old.values()], plan.needed(half));
        let (arena, params) = (Arena::default(), Vec::new());
        Self { extension, graph, plan, half, arena, params, values, needed, site }
    }

    /// Appends the ports. Returns the old operands of the ports that are no crossing values.
    fn ports(&mut self) -> Vec<usize> {
        let (body, plan) = (self.plan.body, self.plan);
        let places: Vec<usize> = (0..body.ports).filter(|&place| self.needed[place]).collect();
        for &place in &places {
            let port = self.port(body.arena.value_types()[place]);
            self.values[place] = Some(port);
        }
        if self.half == Half::Rest {
            for &value in &plan.crossing {
                let port = self.port(body.arena.type_of(value));
                // A cut product continues from this port and gets a new value later.
                self.values[value.index()] = Some(port);
            }
        }
        places
    }

    fn port(&mut self, ty: TypeId) -> ValueId {
        let sig = self.extension.port(ty);
        self.arena.append(sig, &[], &[ty], self.site)
    }

    /// Appends the needed nodes and returns the results.
    fn write(&mut self) -> Vec<ValueId> {
        let body = self.plan.body;
        for node in body.arena.ids().skip(body.ports) {
            if !self.needed[node.index()] {
                continue;
            }
            let old = body.arena.node(node);
            let mut signature = self.graph.sigs.get(old.sig).clone();
            let first = body.arena.results(node).start;
            let mut operands: Vec<ValueId> = self.plan.reads(self.half, node);
            let begun = self.values[first];
            operands.iter_mut().for_each(|value| *value = self.known(*value));
            if let BodyPart::Cut { row, .. } = self.plan.parts[node.index()] {
                self.half_product(&mut signature, row, &mut operands, begun);
            }
            self.lift(&mut signature);
            let operands: Vec<Operand> = operands.into_iter().map(Operand::value).collect();
            let results = signature.results.clone();
            let sig = self.extension.sig(signature);
            let made = self.arena.append(sig, &operands, &results, old.site).index();
            for (place, value) in body.arena.results(node).enumerate() {
                self.values[value] = Some(ValueId::new(made + place));
            }
        }
        self.plan.results(self.half).iter().map(|&value| self.known(value)).collect()
    }

    fn known(&self, old: ValueId) -> ValueId {
        self.values[old.index()].expect("a half needs only ports and earlier values")
    }

    /// Restricts a cut product to the factors of this half.
    fn half_product(
        &self,
        signature: &mut Signature,
        first_row: u32,
        operands: &mut Vec<ValueId>,
        begun: Option<ValueId>,
    ) {
        let Callee::Op(Op::Affine { bias, .. }) = signature.callee else {
            unreachable!("only affines are cut")
        };
        let op = match begun {
            None => Op::AffineRows { row: 0, bias, onto: false },
            Some(chains) => {
                operands.insert(0, chains);
                (signature.params, signature.param_types) =
                    ([signature.params[0]].into(), [signature.param_types[0]].into());
                Op::AffineRows { row: first_row, bias: false, onto: true }
            }
        };
        signature.callee = Callee::Op(op);
        signature.operands = operands.iter().map(|&value| self.arena.type_of(value)).collect();
    }

    /// Renumbers the parameter arguments for this half.
    fn lift(&mut self, signature: &mut Signature) {
        for arg in &mut signature.params {
            let ParamArg::Port(old) = *arg else { unreachable!("bodies take parameters through ports") };
            let port = self.params.iter().position(|&known| known == old).unwrap_or(self.params.len());
            if port == self.params.len() {
                self.params.push(old);
            }
            *arg = ParamArg::Port(port as u32);
        }
    }
}
