//! The text forms of products.

use super::Reverse;
use crate::cluster::Clusters;
use crate::ids::{JobId, TypeIndex};
use crate::kernels::Kernels;
use crate::layout::Role;
use crate::lower::{field_name, slot_rows, slots};
use crate::order::Rows;
use crate::schedule::{Batches, problem};
use crate::storage::Storage;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{FieldId, Plan};
use std::fmt::{self, Display, Write};

/// A product with a text form.
pub(super) trait Print {
    /// Appends the text form.
    fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result;
}

/// Types, then jobs with what they read, then sources.
impl Print for Clusters {
    fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        for (&sig, ty) in self.types.iter().zip((0..).map(TypeIndex)) {
            writeln!(out, "{ty} {}", callee(graph, sig))?;
        }
        let problem = problem(self);
        for (job, (&node, &ty)) in self.jobs.iter().zip(&self.ty).enumerate() {
            write!(out, "{} {node} {}", JobId(job as u32), TypeIndex(ty))?;
            print_list(out, " reads ", problem.operands(job).map(JobId))?;
            out.push_str(if self.alone.contains(&(job as u32)) { " alone\n" } else { "\n" });
        }
        for (sig, nodes) in self.sources.iter() {
            write!(out, "source {}:", callee(graph, SigId::new(sig)))?;
            nodes.iter().try_for_each(|node| write!(out, " {node}"))?;
            out.push('\n');
        }
        Ok(())
    }
}

/// The kernels of signatures, then the cost of each type of jobs.
impl Print for Kernels {
    fn print(&self, _: &GraphData, out: &mut String) -> fmt::Result {
        let plan = Plan { kernels: self.of_sig.iter().flatten().cloned().collect(), ..Plan::default() };
        for kernel in plan.to_text().split("\n\n").filter(|block| block.starts_with("kernel ")) {
            writeln!(out, "{}", kernel.trim_end())?;
        }
        for (cost, ty) in self.costs.iter().zip((0..).map(TypeIndex)) {
            writeln!(out, "{ty} costs {:.0} ns a step and {:.0} ns a row", cost.fixed, cost.row)?;
        }
        Ok(())
    }
}

impl Print for Batches {
    fn print(&self, _: &GraphData, out: &mut String) -> fmt::Result {
        for (number, jobs) in self.iter().enumerate() {
            write!(out, "batch {number}:")?;
            jobs.iter().try_for_each(|&job| write!(out, " {}", JobId(job)))?;
            out.push('\n');
        }
        if let Some(bound) = self.bound {
            writeln!(out, "at least {bound}; {}", self.why)?;
        }
        Ok(())
    }
}

/// Slabs with their fields, then the fields of each signature's results and operands.
impl Print for Storage {
    fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        for (slab, number) in self.slabs.iter().zip(0..) {
            write!(out, "slab s{number}:")?;
            let mut fields = slab.fields.clone().map(FieldId);
            fields.try_for_each(|field| {
                write!(out, " {} {}", spelling(self, field), self.fields[field.index()].ty)
            })?;
            out.push('\n');
        }
        for (number, own) in self.sigs.iter().enumerate().filter(|(_, own)| !own.results.is_empty()) {
            let sig = SigId::new(number);
            out.push_str(&callee(graph, sig));
            let ports = 0..graph.sigs.get(sig).operands.len();
            print_list(out, " reads ", ports.map(|port| spelling(self, self.port_field(sig, port))))?;
            print_list(out, " writes ", own.results.iter().map(|&(field, _)| spelling(self, field)))?;
            print_list(out, " copies to ", own.extra_fields.iter().map(|&(field, _)| spelling(self, field)))?;
            out.push('\n');
        }
        Ok(())
    }
}

/// Batches in execution order, each with its wave, its nodes, and the rows of its slots.
impl Print for Rows {
    fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        for (number, batch) in self.batches.iter().enumerate() {
            write!(out, "{} {}:", batch.wave, callee(graph, batch.sig))?;
            self.nodes[batch.lanes.clone()].iter().try_for_each(|node| write!(out, " {node}"))?;
            out.push('\n');
            for slot in slots(self, number) {
                let of = &self.problem.slots[slot];
                let verb = if of.role == Role::Result { "writes" } else { "reads" };
                write!(out, "  {verb} s{}:", of.slab.0)?;
                slot_rows(self, batch, slot).try_for_each(|row| write!(out, " {row}"))?;
                out.push('\n');
            }
        }
        for (slab, rows) in self.slab_rows.iter().enumerate() {
            writeln!(out, "slab s{slab} has {rows} rows")?;
        }
        Ok(())
    }
}

impl Print for Plan {
    fn print(&self, _: &GraphData, out: &mut String) -> fmt::Result {
        out.write_str(&self.to_text())
    }
}

impl Print for Reverse<'_> {
    fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        match self.0.certificate.reverse_batches == 0 {
            true => out.write_str("no gradients\n"),
            false => self.0.print(graph, out),
        }
    }
}

/// Items behind a word, separated by commas; nothing without items.
fn print_list(out: &mut String, word: &str, items: impl Iterator<Item = impl Display>) -> fmt::Result {
    items.enumerate().try_for_each(|(index, item)| {
        let before = if index == 0 { word } else { ", " };
        write!(out, "{before}{item}")
    })
}

/// The name of the callee of a signature.
fn callee(graph: &GraphData, sig: SigId) -> String {
    graph.module.callee_name(graph.sigs.get(sig).callee)
}

/// A field as slab and letter; `-` for a port where no value arrives.
fn spelling(storage: &Storage, field: FieldId) -> String {
    let Some(own) = storage.fields.get(field.index()) else { return "-".to_owned() };
    let first = storage.slabs[own.slab.index()].fields.start;
    format!("s{}.{}", own.slab.0, field_name(field.index() - first as usize))
}
