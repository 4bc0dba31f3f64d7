//! The inverse of outlining: inlining calls of cells without noise turns random graphs of cells into random graphs of
//! ops.

use autobatch_ir::graph::rebuild::{Rebuild, Renaming};
use autobatch_ir::graph::{Callee, GraphData, Op, Operand, OperandKind, ParamArg, Signature};
use autobatch_ir::id::{NodeId, SiteId, ValueId};
use autobatch_ir::{INDEX, SigId};

/// Replaces calls of cells without noise by their bodies.
pub(crate) fn inline(graph: &GraphData) -> (GraphData, Renaming) {
    let mut inliner = Inliner { graph, rebuild: Rebuild::new(graph) };
    for node in graph.arena.ids() {
        if !inliner.opens(graph.arena.node(node).sig) {
            inliner.rebuild.copy(node);
            continue;
        }
        let operands: Vec<Operand> =
            graph.arena.operands(node).iter().map(|&operand| inliner.rebuild.renamed(operand)).collect();
        let results = inliner.call(node, graph.signature(node).clone(), &operands);
        for (old, new) in graph.arena.results(node).zip(results) {
            inliner.rebuild.name(ValueId::new(old), new);
        }
    }
    inliner.rebuild.finish()
}

struct Inliner<'a> {
    graph: &'a GraphData,
    rebuild: Rebuild<'a>,
}

impl Inliner<'_> {
    fn opens(&self, sig: SigId) -> bool {
        let signature = self.graph.sigs.get(sig);
        matches!(signature.callee, Callee::Cell(_)) && self.graph.module.noise_ports(signature) == 0
    }

    /// Appends the body of a cell and returns its results.
    fn call(&mut self, at: NodeId, signature: Signature, operands: &[Operand]) -> Vec<ValueId> {
        let graph = self.graph;
        let Callee::Cell(cell) = signature.callee else { unreachable!("only cells are inlined") };
        let body = &graph.module.cell_decl(cell).body;
        let mut values: Vec<Operand> = operands.to_vec();
        for node in body.arena.ids().skip(body.ports) {
            let sig = body.arena.node(node).sig;
            let mut inner = graph.sigs.get(sig).clone();
            for arg in &mut inner.params {
                if let ParamArg::Port(port) = *arg {
                    *arg = signature.params[port as usize];
                }
            }
            let read = body.arena.operands(node).iter().filter_map(|operand| operand.as_value());
            let args: Vec<Operand> = read.map(|value| values[value.index()]).collect();
            if self.opens(sig) {
                values.extend(self.call(at, inner, &args).into_iter().map(Operand::value));
                continue;
            }
            let site = body.arena.node(node).site;
            let args: Vec<Operand> = args
                .into_iter()
                .enumerate()
                .map(|(place, operand)| self.readable(at, &inner, place, operand, site))
                .collect();
            let count = inner.results.len();
            let sig = self.rebuild.sig(inner);
            let first = self.rebuild.append(at, sig, &args, site).index();
            values.extend((first..first + count).map(|value| Operand::value(ValueId::new(value))));
        }
        let mut results = Vec::new();
        for result in &body.results {
            let operand = values[result.index()];
            let site = body.arena.node(body.arena.producer(*result)).site;
            results.push(operand.as_value().unwrap_or_else(|| self.input(at, operand, site)));
        }
        results
    }

    /// A binding as a value.
    fn input(&mut self, at: NodeId, operand: Operand, site: SiteId) -> ValueId {
        let ty = self.rebuild.ty(INDEX);
        let input = Signature {
            callee: Callee::Op(Op::Input(INDEX)),
            operands: [ty].into(),
            params: Box::default(),
            param_types: Box::default(),
            results: [ty].into(),
        };
        let sig = self.rebuild.sig(input);
        self.rebuild.append(at, sig, &[operand], site)
    }

    /// A binding as an operand. Some ops read it directly, others as a value.
    fn readable(
        &mut self,
        at: NodeId,
        inner: &Signature,
        place: usize,
        operand: Operand,
        site: SiteId,
    ) -> Operand {
        let direct = match inner.callee {
            Callee::Op(Op::Lookup | Op::OneHot { .. }) | Callee::Cell(_) => true,
            Callee::Op(Op::Pick | Op::PickNegLogSoftmax | Op::Hinge { .. } | Op::LabelLoss) => place == 1,
            Callee::Op(_) => false,
        };
        if direct || matches!(operand.kind(), Some(OperandKind::Value(_))) {
            return operand;
        }
        Operand::value(self.input(at, operand, site))
    }
}
