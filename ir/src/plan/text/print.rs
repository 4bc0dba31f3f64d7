//! Plans to text: memory first, then kernels, steps wave by wave, outputs and the certificate.

use super::HEADER;
use super::print_kernel;
use super::print_step::Steps;
use super::runs::{REACHES, allowance};
use crate::graph::text::write::{push_list, push_text, put};
use crate::module::ParamKind;
use crate::plan::normal::within;
use crate::plan::{Certificate, Kernel, Pause, Plan, PlanOutput, Slab, SlabKind, Store, StoreId, StoreKind};
use std::sync::Arc;

/// Lines are broken at this column where they can be.
pub(super) const COLUMNS: usize = 110;

/// The text of a plan. Runs are cut if a reader would otherwise refuse the text for its unspelled numbers.
pub(super) fn plan(plan: &Plan) -> String {
    let mut text = String::new();
    for reach in REACHES {
        let mut printer = Printer { out: format!("{HEADER}\n"), plan };
        let unspelled = printer.plan(reach);
        text = printer.out;
        if unspelled <= allowance(text.len()) {
            break;
        }
    }
    text
}

/// Whether a name can stand without quotes.
pub(super) fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A name, in quotes if it must be.
pub(super) fn push_name(out: &mut String, name: &str) {
    if is_plain(name) { out.push_str(name) } else { push_text(out, name) }
}

struct Printer<'a> {
    out: String,
    plan: &'a Plan,
}

impl Printer<'_> {
    /// Writes the plan; gives how many numbers runs leave unspelled.
    fn plan(&mut self, reach: usize) -> usize {
        let Plan {
            module,
            structure,
            mode,
            stores,
            words,
            floats,
            slabs,
            fields: _, // by their slabs
            kernels,
            steps: _, // with their waves and pools
            waves: _,
            operands: _,
            groups: _,
            places: _,
            store_args: _,
            lanes: _,
            tables: _,
            shards,
            reductions: _,
            outputs,
            pause,
            certificate,
        } = self.plan;
        self.out.push_str("module ");
        push_text(&mut self.out, module);
        put(&mut self.out, format_args!("\nstructure {structure:#034x}\nmode {}\n", mode.spelling()));
        if !shards.is_empty() {
            self.out.push_str("shards");
            shards.iter().for_each(|first| put(&mut self.out, format_args!(" {first}")));
            self.out.push('\n');
        }
        push_stores(&mut self.out, stores);
        put(&mut self.out, format_args!("\nbind words {words} floats {floats}\n"));
        self.gap(!slabs.is_empty());
        slabs.iter().enumerate().for_each(|(number, slab)| self.slab(number, slab));
        push_kernels(&mut self.out, kernels);
        let unspelled = Steps::new(self.plan, reach).print(&mut self.out);
        self.gap(!outputs.is_empty());
        outputs.iter().for_each(|output| self.output(output));
        pause.iter().for_each(|pause| self.pause(pause));
        self.certificate(certificate);
        unspelled
    }

    fn gap(&mut self, wanted: bool) {
        self.out.push_str(if wanted { "\n" } else { "" });
    }

    fn slab(&mut self, number: usize, slab: &Slab) {
        let Slab { kind, rows, fields } = slab;
        put(&mut self.out, format_args!("slab s{number} "));
        match kind {
            SlabKind::Value => self.out.push_str("value {"),
            SlabKind::Node => self.out.push_str("node {"),
            SlabKind::Mirror(of) => put(&mut self.out, format_args!("mirror {of} {{")),
        }
        push_list(&mut self.out, within(&self.plan.fields, fields), |out, field| {
            push_name(out, &field.name);
            put(out, format_args!(": {}", field.ty));
        });
        put(&mut self.out, format_args!("}} x{rows}\n"));
    }

    fn output(&mut self, output: &PlanOutput) {
        let PlanOutput { key, field, row } = output;
        put(&mut self.out, format_args!("output {key} "));
        push_field(&mut self.out, self.plan, field.index());
        put(&mut self.out, format_args!("[{row}]\n"));
    }

    /// Writes the pause. Long lists of outputs take several lines.
    fn pause(&mut self, pause: &Pause) {
        let Pause { waves, outputs } = pause;
        put(&mut self.out, format_args!("\npause waves {waves} outputs"));
        let mut line = self.out.rfind('\n').map_or(0, |end| end + 1);
        for output in outputs {
            if self.out.len() + 11 > line + COLUMNS {
                self.out.push_str("\n ");
                line = self.out.len();
            }
            put(&mut self.out, format_args!(" {output}"));
        }
        self.out.push('\n');
    }

    fn certificate(&mut self, certificate: &Certificate) {
        let Certificate { batches, reverse_batches, bound, copied, gathered, direct, slab_bytes } =
            certificate;
        put(&mut self.out, format_args!("\ncertificate batches {batches} bound {bound}"));
        if *reverse_batches > 0 {
            put(&mut self.out, format_args!(" | reverse {reverse_batches}"));
        }
        put(&mut self.out, format_args!(" | rows copied {copied} "));
        put(&mut self.out, format_args!("gathered {gathered} direct {direct} | slabs {slab_bytes} bytes\n"));
    }
}

/// Writes the declarations of stores, in columns.
pub(super) fn push_stores(out: &mut String, stores: &[Store]) {
    let width = stores.iter().map(|store| store.name.len()).max().unwrap_or(0).min(24);
    out.push_str(if stores.is_empty() { "" } else { "\n" });
    for Store { name, ty, kind } in stores {
        put(out, format_args!("store @{name:width$} "));
        match kind {
            StoreKind::Param(ParamKind::Param) => out.push_str("param "),
            StoreKind::Param(ParamKind::Table) => out.push_str("table "),
            StoreKind::Grad(of) => put(out, format_args!("grad @{} ", store_name(stores, *of))),
            StoreKind::State(of) => put(out, format_args!("state @{} ", store_name(stores, *of))),
        }
        put(out, format_args!("{ty}\n"));
    }
}

/// Writes all kernels, each after an empty line.
pub(super) fn push_kernels(out: &mut String, kernels: &[Arc<Kernel>]) {
    for (number, kernel) in kernels.iter().enumerate() {
        out.push('\n');
        print_kernel::kernel(out, number, kernel);
    }
}

/// The name of a store; `?`, which no reader accepts, if there is no such store.
pub(super) fn store_name(stores: &[Store], store: StoreId) -> &str {
    stores.get(store.index()).map_or("?", |store| &store.name)
}

/// `s0.a`
pub(super) fn push_field(out: &mut String, plan: &Plan, field: usize) {
    match plan.fields.get(field) {
        Some(field) => {
            put(out, format_args!("{}.", field.slab));
            push_name(out, &field.name);
        }
        None => out.push('?'),
    }
}
