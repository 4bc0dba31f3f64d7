//! The order of steps: rows are written before they are read and once a wave (P6, P24 to P26), and the certificate counts
//! what the plan has (P27). The rules of reductions and roles (P28, P29, P36) are called from here.
//!
//! Per field a set of runs holds the rows that earlier waves wrote, and another the rows that the current wave writes. An
//! operand or place that is a range costs one lookup, a table one lookup per row.

use super::roles::ForwardNodes;
use super::spans::Spans;
use super::{AtStep, Rule, Since, VerifyErrors};
use crate::plan::{Certificate, FieldId, Place, Plan, SlabKind, Step, StepOperand};
use std::ops::Range;

/// The state after the waves so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// Per field the rows that earlier waves wrote.
    written: Vec<Spans>,
    /// The nodes that the forward steps executed.
    forward: ForwardNodes,
    /// The numbers of the certificate so far.
    counts: Certificate,
}

impl Order {
    /// Verifies the new part of a plan.
    pub(super) fn verify(&mut self, plan: &Plan, since: Since, findings: &mut VerifyErrors) {
        self.written.resize_with(plan.fields.len(), Spans::default);
        let writing = vec![Spans::default(); plan.fields.len()];
        let mut walk = Walk { plan, written: &mut self.written, writing, touched: Vec::new(), findings };
        let pause = plan.pause.as_ref().map(|pause| pause.waves as usize);
        for (number, wave) in (since.waves..).zip(plan.waves_from(since.waves)) {
            if walk.findings.is_full() {
                return;
            }
            if pause == Some(number) {
                super::pause::outputs(plan, walk.written, walk.findings);
            }
            walk.wave(wave);
        }
        if pause == Some(plan.waves.len()) {
            super::pause::outputs(plan, walk.written, walk.findings);
        }
        walk.outputs();
        walk.slabs();
        super::reductions::verify(plan, &self.written, findings);
        self.forward.verify(plan, since.steps, findings);
        if findings.is_clean() {
            self.certificate(plan, since.steps, findings);
        }
    }
}

struct Walk<'a> {
    plan: &'a Plan,
    /// Per field the rows that earlier waves wrote.
    written: &'a mut [Spans],
    /// Per field the rows that the current wave writes.
    writing: Vec<Spans>,
    /// The fields that the current wave writes.
    touched: Vec<FieldId>,
    findings: &'a mut VerifyErrors,
}

impl Walk<'_> {
    fn wave(&mut self, steps: Range<usize>) {
        let plan = self.plan;
        for number in steps.clone() {
            let step = &plan.steps[number];
            for (result, &place) in plan.places(step).iter().enumerate() {
                self.write(number, result, step, place);
            }
        }
        for number in steps.clone() {
            let step = &plan.steps[number];
            for (place, &operand) in plan.operands(step).iter().enumerate() {
                self.read(number, place, step, operand);
            }
        }
        for number in steps {
            let step = &plan.steps[number];
            for &place in plan.places(step) {
                let written = &mut *self.written;
                for_place_runs(plan, step, place, |field, start, end| {
                    written[field.index()].insert(start, end);
                });
            }
        }
        for field in self.touched.drain(..) {
            self.writing[field.index()].clear();
        }
    }

    /// Checks that no other step of the wave writes the rows of a result (P25).
    fn write(&mut self, number: usize, result: usize, step: &Step, place: Place) {
        let (plan, writing) = (self.plan, &mut self.writing);
        let mut twice = None;
        let mut written = None;
        for_place_runs(plan, step, place, |field, start, end| {
            let spans = &mut writing[field.index()];
            if twice.is_none() {
                twice = spans.first_present(start, end).map(|row| (field, row));
            }
            spans.insert(start, end);
            written = Some(field);
        });
        self.touched.extend(written);
        if let Some((field, row)) = twice {
            let message =
                format!("result {result} writes row {row} of {field}, which its wave writes already");
            self.findings.report(Rule::Distinct, &AtStep { plan, step: number }, message);
        }
    }

    /// Checks that earlier waves wrote all rows that an operand reads (P24), and that no step of its own wave writes one (P26).
    fn read(&mut self, number: usize, place: usize, step: &Step, operand: StepOperand) {
        let (plan, written, writing) = (self.plan, &*self.written, &self.writing);
        // Mostly all rows between the first and the last were written, and one lookup shows it.
        if let Some((field, Range { start, end })) = operand.hull(plan, step.rows)
            && written[field.index()].first_missing(start, end).is_none()
            && writing[field.index()].first_present(start, end).is_none()
        {
            return;
        }
        let (mut missing, mut hazard) = (None, None);
        operand.for_each_run(plan, step.rows, |field, Range { start, end }| {
            if missing.is_none() {
                missing = written[field.index()].first_missing(start, end).map(|row| (field, row));
            }
            if hazard.is_none() {
                hazard = writing[field.index()].first_present(start, end).map(|row| (field, row));
            }
        });
        if let Some((field, row)) = missing {
            let message = format!("operand {place} reads row {row} of {field}, which no earlier wave wrote");
            self.findings.report(Rule::Definition, &AtStep { plan, step: number }, message);
        }
        if let Some((field, row)) = hazard {
            let message = format!("operand {place} reads row {row} of {field}, which its own wave writes");
            self.findings.report(Rule::Hazards, &AtStep { plan, step: number }, message);
        }
    }

    fn outputs(&mut self) {
        for (number, output) in self.plan.outputs.iter().enumerate() {
            let (row, field) = (u64::from(output.row), output.field);
            if self.written[field.index()].first_missing(row, row + 1).is_some() {
                let message = format!("it reads row {row} of {field}, which no step wrote");
                self.findings.report(Rule::Definition, &format_args!("output {number}"), message);
            }
        }
    }

    /// P6
    fn slabs(&mut self) {
        for (number, slab) in self.plan.slabs.iter().enumerate() {
            let fields = slab.fields.start as usize..slab.fields.end as usize;
            let written = self.written[fields].iter().map(Spans::len).max().unwrap_or(0);
            if slab.kind == SlabKind::Value && written != u64::from(slab.rows) {
                let message = format!("it declares {} rows, steps write {written} of them", slab.rows);
                self.findings.report(Rule::Rows, &format_args!("slab s{number}"), message);
            }
        }
    }
}

/// The rows that a place names, as runs.
fn for_place_runs(plan: &Plan, step: &Step, place: Place, mut run: impl FnMut(FieldId, u64, u64)) {
    match place {
        Place::Rows { field, start } => run(field, u64::from(start), u64::from(start) + u64::from(step.rows)),
        Place::Edges { field, start, offsets } => {
            let total = plan.tables[offsets as usize + step.rows as usize];
            run(field, u64::from(start), u64::from(start) + u64::from(total));
        }
        Place::Table { field, at } => {
            for &row in &plan.tables[at as usize..][..step.rows as usize] {
                run(field, u64::from(row), u64::from(row) + 1);
            }
        }
    }
}

impl Order {
    /// Recounts the certificate (P27).
    fn certificate(&mut self, plan: &Plan, since: usize, findings: &mut VerifyErrors) {
        let own = &mut self.counts;
        (own.bound, own.slab_bytes) =
            (plan.certificate.bound, super::memory::slab_bytes(plan).unwrap_or(u64::MAX));
        for step in &plan.steps[since..] {
            let (kernel, rows) = (plan.kernel(step), u64::from(step.rows));
            let is_forward = kernel.roles.is_none();
            let batches = if is_forward { &mut own.batches } else { &mut own.reverse_batches };
            *batches += u32::from(!kernel.source);
            if kernel.only_moves() {
                own.copied += rows * plan.places(step).len() as u64;
            }
            for operand in plan.operands(step) {
                let [direct, gathered] = operand.direct_and_gathered(plan, step.rows);
                own.direct += direct;
                own.gathered += gathered;
            }
        }
        if *own != plan.certificate {
            let message = corrections(own, &plan.certificate);
            findings.report(Rule::Certificate, &"the certificate", message);
        }
        if plan.certificate.bound > plan.certificate.batches {
            let Certificate { bound, batches, .. } = plan.certificate;
            let message =
                format!("no plan can have fewer batches than the bound, found {batches} and {bound}");
            findings.report(Rule::Certificate, &"the certificate", message);
        }
    }
}

/// The numbers of a certificate that are wrong: `gathered must be 6, found 5`.
fn corrections(own: &Certificate, claimed: &Certificate) -> String {
    let numbers = |certificate: &Certificate| {
        let Certificate { batches, reverse_batches, bound, copied, gathered, direct, slab_bytes } =
            *certificate;
        [batches.into(), reverse_batches.into(), bound.into(), copied, gathered, direct, slab_bytes]
    };
    let names = ["batches", "batches in reverse", "bound", "copied", "gathered", "direct", "bytes of slabs"];
    let pairs: [(u64, u64); 7] = std::array::from_fn(|place| (numbers(own)[place], numbers(claimed)[place]));
    let wrong = names.iter().zip(pairs).filter(|(_, (own, claimed))| own != claimed);
    let words = wrong.map(|(name, (own, claimed))| format!("{name} must be {own}, found {claimed}"));
    words.collect::<Vec<String>>().join("; ")
}
