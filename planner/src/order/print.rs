//! The text form of rows.

use super::Rows;
use crate::layout::Role;
use crate::stages::callee;
use autobatch_ir::graph::GraphData;
use std::fmt::{self, Write};

impl Rows {
    /// Batches in execution order, each with its wave, its nodes, and the rows of its slots.
    pub(crate) fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        for (number, batch) in self.batches.iter().enumerate() {
            write!(out, "{} {}:", batch.wave, callee(graph, batch.sig))?;
            self.nodes(batch).iter().try_for_each(|node| write!(out, " {node}"))?;
            out.push('\n');
            for slot in self.slots(number) {
                let of = self.problem.slot(slot);
                let verb = if of.role == Role::Result { "writes" } else { "reads" };
                write!(out, "  {verb} s{}:", of.slab.0)?;
                self.slot_rows(batch, slot).try_for_each(|row| write!(out, " {row}"))?;
                out.push('\n');
            }
        }
        for (slab, rows) in self.slab_rows.iter().enumerate() {
            writeln!(out, "slab s{slab} has {rows} rows")?;
        }
        Ok(())
    }
}
