//! The text form of storage.

use super::Storage;
use crate::lower::field_name;
use crate::stages::callee;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::FieldId;
use std::fmt::{self, Write};

impl Storage {
    /// Slabs with their fields, then the fields of each signature's results and operands.
    pub(crate) fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        for (slab, number) in self.slabs.iter().zip(0..) {
            write!(out, "slab s{number}:")?;
            slab.fields.clone().try_for_each(|field| {
                write!(out, " {} {}", self.spelling(FieldId(field)), self.fields[field as usize].ty)
            })?;
            out.push('\n');
        }
        for (number, own) in self.sigs.iter().enumerate().filter(|(_, own)| !own.results.is_empty()) {
            let sig = SigId::new(number);
            write!(out, "{}", callee(graph, sig))?;
            for port in 0..graph.sigs.get(sig).operands.len() {
                let field = self.port_field(sig, port);
                write!(out, "{}{}", if port == 0 { " reads " } else { ", " }, self.spelling(field))?;
            }
            for (index, &(field, _)) in own.results.iter().enumerate() {
                write!(out, "{}{}", if index == 0 { " writes " } else { ", " }, self.spelling(field))?;
            }
            for (index, &(field, _)) in own.extra_fields.iter().enumerate() {
                write!(out, "{}{}", if index == 0 { " copies to " } else { ", " }, self.spelling(field))?;
            }
            out.push('\n');
        }
        Ok(())
    }

    /// A field as slab and letter; `-` for a port where no value arrives.
    fn spelling(&self, field: FieldId) -> String {
        let Some(own) = self.fields.get(field.index()) else { return "-".to_owned() };
        let first = self.slabs[own.slab.index()].fields.start;
        format!("s{}.{}", own.slab.0, field_name(field.index() - first as usize))
    }
}
