//! `g.summary()`: a listing of the emitted graph that needs no planner.

use crate::graph::text::write::{push_list, put};
use crate::graph::{Callee, Graph, GraphData, Op};
use std::collections::BTreeSet;
use std::fmt;

impl Graph {
    /// Lists the nodes by depth: `step: callee = n x (operand types)`. The listing equals the plan of
    /// the depth policy, without running the planner.
    #[must_use]
    pub fn summary(&self) -> String {
        self.data().to_string()
    }
}

impl fmt::Display for GraphData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let depths = self.depths();
        let mut rows: Vec<(u32, usize)> =
            depths.iter().zip(self.arena.nodes()).map(|(&depth, node)| (depth, node.sig.index())).collect();
        rows.retain(|&(depth, sig)| depth > 0 && !needs_no_step(self.sigs.items()[sig].callee));
        rows.sort_unstable();
        let sigs: BTreeSet<usize> = rows.iter().map(|&(_, sig)| sig).collect();
        writeln!(
            f,
            "graph of module {}: {} instances, {} nodes of {} signatures",
            self.module.name,
            self.instances(),
            rows.len(),
            sigs.len()
        )?;
        for group in rows.chunk_by(|a, b| a == b) {
            let (depth, sig) = group[0];
            let signature = &self.sigs.items()[sig];
            let mut operands = String::new();
            push_list(&mut operands, &*signature.operands, |out, &ty| put(out, self.ty(ty)));
            let name = self.module.callee_name(signature.callee);
            writeln!(f, "{:>4}: {name} = {} x ({operands})", depth - 1, group.len())?;
        }
        Ok(())
    }
}

impl GraphData {
    /// The depth of each node, from 1. A list has the depth of its deepest element. Inputs, parameters
    /// and constants have depth 0.
    #[must_use]
    pub fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.arena.len());
        for id in self.arena.ids() {
            let operands = self.arena.operands(id).iter().filter_map(|operand| operand.as_value());
            let below = operands.map(|value| depths[self.arena.producer(value).index()]).max().unwrap_or(0);
            depths.push(below + u32::from(!needs_no_step(self.signature(id).callee)));
        }
        depths
    }
}

/// Whether the callee needs no step: inputs, constants, parameters, ports and lists.
fn needs_no_step(callee: Callee) -> bool {
    matches!(
        callee,
        Callee::Op(Op::List | Op::Append | Op::Input(_) | Op::Fill { .. } | Op::Param | Op::Port(_))
    )
}
