//! Rules P1 to P5: pools, ids, waves, storage, sizes.

use super::{AtStep, Rule, Since, VerifyErrors};
use crate::findings::brief;
use crate::graph::text::lex::is_name;
use crate::module::ParamKind;
use crate::plan::{Plan, SlabId, SlabKind, Step, Store, StoreKind, given_stores, is_word_type};
use crate::types::DType;
use std::collections::HashMap;
use std::ops::Range;

pub(super) fn verify(plan: &Plan, since: Since, findings: &mut VerifyErrors) {
    step_ranges(plan, since.steps, findings);
    slab_fields(plan, findings);
    if !findings.is_clean() {
        return;
    }
    ids(plan, since.steps, findings);
    waves(plan, since.waves, findings);
    fields(plan, findings);
    stores(&plan.stores, findings);
    if findings.is_clean() {
        mirrors(plan, findings);
        sizes(plan, findings);
    }
}

/// A pool that the ranges of steps tile.
type Pool = (&'static str, fn(&Step) -> &Range<u32>, usize);

fn step_ranges(plan: &Plan, since: usize, findings: &mut VerifyErrors) {
    let pools: [Pool; 4] = [
        ("operands", |step| &step.operands, plan.operands.len()),
        ("places", |step| &step.places, plan.places.len()),
        ("store arguments", |step| &step.stores, plan.store_args.len()),
        ("lanes", |step| &step.lanes, plan.lanes.len()),
    ];
    for (name, range, len) in pools {
        let mut end = since.checked_sub(1).map_or(0, |last| range(&plan.steps[last]).end);
        for (number, step) in plan.steps.iter().enumerate().skip(since) {
            let range = range(step);
            if range.start != end || range.end < range.start || range.end as usize > len {
                let message = format!(
                    "its {name} must begin at {end}, where those of the step before end, and lie inside 0..{len}, found {}..{}",
                    range.start, range.end
                );
                findings.report(Rule::Ranges, &AtStep { plan, step: number }, message);
                end = range.end.min(len as u32).max(end);
            } else {
                end = range.end;
            }
        }
        if end as usize != len {
            findings.report(
                Rule::Ranges,
                &"the plan",
                format!("every one of the {len} {name} must belong to a step, {end} do"),
            );
        }
    }
}

fn slab_fields(plan: &Plan, findings: &mut VerifyErrors) {
    let len = plan.fields.len();
    let mut end = 0u32;
    for (number, slab) in plan.slabs.iter().enumerate() {
        let Range { start, end: own } = slab.fields;
        if start != end || own < start || own as usize > len {
            let message = format!(
                "its fields must begin at {end}, where those of the slab before end, and lie inside 0..{len}, found {start}..{own}"
            );
            findings.report(Rule::Ranges, &format_args!("slab s{number}"), message);
            return;
        }
        for field in start..own {
            let named = plan.fields[field as usize].slab;
            if named.index() != number {
                let message = format!("it is listed by slab s{number} and names {named}");
                findings.report(Rule::Ranges, &format_args!("field {field}"), message);
            }
        }
        end = own;
    }
    if end as usize != len {
        let message = format!("every one of the {len} fields must belong to a slab, {end} do");
        findings.report(Rule::Ranges, &"the plan", message);
    }
}

fn ids(plan: &Plan, since: usize, findings: &mut VerifyErrors) {
    let mut missing = |at: &dyn std::fmt::Display, what: &dyn std::fmt::Display, count: usize| {
        findings.report(Rule::Ids, at, format!("there is no {what}, only {count} of them"));
    };
    for (number, step) in plan.steps.iter().enumerate().skip(since) {
        let at = AtStep { plan, step: number };
        if step.kernel.index() >= plan.kernels.len() {
            missing(&at, &format_args!("kernel {}", step.kernel), plan.kernels.len());
        }
        for field in plan.operands(step).iter().filter_map(|operand| operand.field()) {
            if field.index() >= plan.fields.len() {
                missing(&at, &field, plan.fields.len());
            }
        }
        for place in plan.places(step) {
            let field = place.field();
            if field.index() >= plan.fields.len() {
                missing(&at, &field, plan.fields.len());
            }
        }
        for store in plan.stores(step) {
            if store.index() >= plan.stores.len() {
                missing(&at, store, plan.stores.len());
            }
        }
    }
    for (number, output) in plan.outputs.iter().enumerate() {
        if output.field.index() >= plan.fields.len() {
            missing(&format_args!("output {number}"), &output.field, plan.fields.len());
        }
    }
    for (number, slab) in plan.slabs.iter().enumerate() {
        if let SlabKind::Mirror(of) = slab.kind
            && of.index() >= plan.slabs.len()
        {
            missing(&format_args!("slab s{number}"), &format_args!("slab {of}"), plan.slabs.len());
        }
    }
}

fn waves(plan: &Plan, since: usize, findings: &mut VerifyErrors) {
    let mut end = since.checked_sub(1).map_or(0, |last| plan.waves[last]);
    for (number, &wave) in plan.waves.iter().enumerate().skip(since) {
        if wave <= end {
            let message = format!("it must end after step {end}, found {wave}");
            findings.report(Rule::Waves, &format_args!("wave {number}"), message);
        }
        end = wave.max(end);
    }
    if end as usize != plan.steps.len() {
        let message = format!("the waves must end with the last of {} steps, found {end}", plan.steps.len());
        findings.report(Rule::Waves, &"the plan", message);
    }
}

fn fields(plan: &Plan, findings: &mut VerifyErrors) {
    let mut names: HashMap<(SlabId, &str), usize> = HashMap::with_capacity(plan.fields.len());
    for (number, field) in plan.fields.iter().enumerate() {
        if let Some(first) = names.insert((field.slab, &field.name), number) {
            let message = format!("its name must be its own, field {first} is {} too", brief(&field.name));
            findings.report(Rule::Storage, &format_args!("field {number}"), message);
        }
        if field.ty.is_list || !is_word_type(field.ty.dtype) {
            let message = format!("a field holds f32, i32, u32 or bool values, found {}", field.ty);
            findings.report(Rule::Storage, &format_args!("field {number}"), message);
        }
    }
}

/// P2 and P4 of the stores of a plan or an update plan.
pub(super) fn stores(stores: &[Store], findings: &mut VerifyErrors) {
    let mut others = false;
    let given = given_stores(stores);
    let mut names: HashMap<&str, usize> = HashMap::with_capacity(stores.len());
    for (number, store) in stores.iter().enumerate() {
        let at = format_args!("store {number}");
        if let Some(first) = names.insert(&store.name, number) {
            let message = format!("its name must be its own, store {first} is @{} too", brief(&store.name));
            findings.report(Rule::Storage, &at, message);
        }
        if store.name.is_empty() || !store.name.bytes().all(is_name) {
            let message = format!(
                "its name must be letters, digits, dots, dashes and underscores, found {:?}",
                brief(&store.name)
            );
            findings.report(Rule::Storage, &at, message);
        }
        if store.ty.is_list || !matches!(store.ty.dtype, DType::F32 | DType::F16 | DType::BF16) {
            findings.report(Rule::Storage, &at, format!("a store holds floats, found {}", store.ty));
        }
        match store.kind {
            StoreKind::Param(_) if others => {
                findings.report(Rule::Storage, &at, "parameters must come before gradients and states");
            }
            StoreKind::Param(ParamKind::Table) if store.ty.shape.rank() != 2 => {
                let message = format!("a table has the shape [rows, width], found {}", store.ty);
                findings.report(Rule::Storage, &at, message);
            }
            StoreKind::Param(_) => {}
            StoreKind::State(_) if number >= given => {
                findings.report(Rule::Storage, &at, "states must come before gradients");
            }
            StoreKind::Grad(of) | StoreKind::State(of) => {
                others = true;
                let Some(param) = stores.get(of.index()) else {
                    let message = format!("there is no {of}, only {} of them", stores.len());
                    findings.report(Rule::Ids, &at, message);
                    continue;
                };
                let of_param = matches!(param.kind, StoreKind::Param(_));
                if !of_param || param.ty.shape != store.ty.shape {
                    let message = format!(
                        "it must have the shape of a parameter, found {} for {of}: {}",
                        store.ty, param.ty
                    );
                    findings.report(Rule::Storage, &at, message);
                }
            }
        }
    }
}

fn mirrors(plan: &Plan, findings: &mut VerifyErrors) {
    let types = |number: usize| {
        let fields = &plan.slabs[number].fields;
        plan.fields[fields.start as usize..fields.end as usize].iter().map(|field| field.ty)
    };
    for (number, slab) in plan.slabs.iter().enumerate() {
        let SlabKind::Mirror(of) = slab.kind else { continue };
        let mirrored = &plan.slabs[of.index()];
        if mirrored.kind != SlabKind::Value
            || mirrored.rows != slab.rows
            || !types(number).eq(types(of.index()))
        {
            let message = format!("it must have the rows and fields of the value slab {of}");
            findings.report(Rule::Storage, &format_args!("slab s{number}"), message);
        }
    }
}

/// Bytes of all slabs, unless they overflow.
pub(super) fn slab_bytes(plan: &Plan) -> Option<u64> {
    let mut total = 0u64;
    for slab in &plan.slabs {
        let mut row = 0u64;
        for field in &plan.fields[slab.fields.start as usize..slab.fields.end as usize] {
            row = row.checked_add(u64::from(field.width()) * 4)?;
        }
        total = total.checked_add(row.checked_mul(u64::from(slab.rows))?)?;
    }
    Some(total)
}

fn sizes(plan: &Plan, findings: &mut VerifyErrors) {
    if slab_bytes(plan).is_none() {
        findings.report(Rule::Sizes, &"the plan", "its slabs take more than 2^64 bytes");
    }
}
