//! Rules P28 and P29: reductions.

use super::spans::Spans;
use super::{Rule, VerifyErrors};
use crate::numeric::label_loss::{FACTORS, MAX_LABELS};
use crate::plan::address::ends;
use crate::plan::{Address, FieldId, Origin, Plan, ReductionPart, ReductionSum, StepOperand, StoreKind};
use crate::types::DType;

/// A plan may have this number of shards, whatever its lanes: the nodes of some shards may all be dead.
const FEW_SHARDS: usize = 64;

pub(super) fn verify(plan: &Plan, written: &[Spans], findings: &mut VerifyErrors) {
    // Each shard costs a pass over the gradients.
    let ascend = plan.shards.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascend || plan.shards.len() > plan.lanes.len().max(FEW_SHARDS) {
        let message = format!(
            "shards must begin at ascending nodes and be at most as many as lanes, found {} behind the first",
            plan.shards.len()
        );
        findings.report(Rule::Reductions, &"the shards", message);
    }
    for (number, sum) in plan.reductions.iter().enumerate() {
        if findings.is_full() {
            return;
        }
        let Some(store) = plan.stores.get(sum.store.index()) else {
            let message = format!("there is no store {}, only {}", sum.store, plan.stores.len());
            findings.report(Rule::Reductions, &format_args!("reduction {number}"), message);
            continue;
        };
        if !matches!(store.kind, StoreKind::Grad(_)) || store.ty.dtype != DType::F32 {
            let message = format!("it must add to a gradient of f32, found {}: {}", sum.store, store.ty);
            findings.report(Rule::Reductions, &format_args!("reduction {number}"), message);
            continue;
        }
        let Some(widths) = widths(sum.sum, store.ty.shape.dims(), store.ty.shape.elements()) else {
            let message = format!("{:?} is no part of {}: {}", sum.sum, sum.store, store.ty);
            findings.report(Rule::Reductions, &format_args!("reduction {number}"), message);
            continue;
        };
        for (part_number, part) in sum.parts.iter().enumerate() {
            if let Err((rule, message)) = check_part(plan, part, sum.sum, widths, written) {
                findings.report(rule, &format_args!("reduction {number}, part {part_number}"), message);
            }
        }
    }
}

/// The widths of a row of `x` and of `dy`, if the reduction lies inside its store.
fn widths(sum: ReductionSum, dims: &[u32], elements: usize) -> Option<[u64; 2]> {
    match (sum, dims) {
        (ReductionSum::Wgrad { row, col, k, n }, [rows, columns]) => {
            let inside = |first: u32, count: u32, all: u32| {
                count > 0 && u64::from(first) + u64::from(count) <= u64::from(all)
            };
            (inside(row, k, *rows) && inside(col, n, *columns)).then_some([u64::from(k), u64::from(n)])
        }
        (ReductionSum::Colsum, _) => Some([0, elements as u64]),
        (ReductionSum::Tgrad, [_, width]) => Some([1, u64::from(*width)]),
        (ReductionSum::Lgrad, [labels, width]) if *labels <= MAX_LABELS => {
            Some([u64::from(*width), FACTORS as u64])
        }
        _ => None,
    }
}

fn check_part(
    plan: &Plan,
    part: &ReductionPart,
    sum: ReductionSum,
    [x_width, dy_width]: [u64; 2],
    written: &[Spans],
) -> Result<(), (Rule, String)> {
    let refuse = |message: String| Err((Rule::Reductions, message));
    if part.lanes == 0 || part.each == 0 {
        return refuse(format!("it must have lanes and rows, found {} of {}", part.lanes, part.each));
    }
    let ends = part.cuts.iter().copied().chain([part.lanes]);
    if part.cuts.len() != plan.shards.len() || !ends.is_sorted() {
        return refuse(format!(
            "its lanes must be cut into {} shards, found {:?}",
            plan.shard_count(),
            part.cuts
        ));
    }
    match (part.x, sum) {
        (None, ReductionSum::Colsum) => {}
        (Some(x), ReductionSum::Wgrad { .. }) => rows(plan, part, "x", x, x_width, DType::F32, written)?,
        (Some(x), ReductionSum::Lgrad) if part.each == 1 => {
            rows(plan, part, "x", x, x_width, DType::F32, written)?;
        }
        (Some(StepOperand { origin: Origin::Words, address }), ReductionSum::Tgrad) if part.each == 1 => {
            let last = match address {
                Address::Steps { start, stride } => {
                    u64::from(start) + u64::from(part.lanes - 1) * u64::from(stride)
                }
                Address::Table { at } => {
                    table(plan, at, part.lanes)?.iter().max().copied().map_or(0, u64::from)
                }
                Address::Lists { .. } | Address::Groups { .. } => {
                    return refuse("the index must be one word, found a list".to_owned());
                }
            };
            words(plan, last)?;
        }
        (Some(x), ReductionSum::Tgrad) if part.each == 1 => {
            rows(plan, part, "the index", x, 1, DType::U32, written)?;
        }
        _ => return refuse(format!("{sum:?} does not take {:?} with {} rows a lane", part.x, part.each)),
    }
    rows(plan, part, "dy", part.dy, dy_width, DType::F32, written)?;
    // One row may serve all lanes, so no other rule bounds their number.
    match part.lanes as usize > plan.lanes.len() {
        true => {
            refuse(format!("its {} lanes are more than the {} of all steps", part.lanes, plan.lanes.len()))
        }
        false => Ok(()),
    }
}

fn words(plan: &Plan, last: u64) -> Result<(), (Rule, String)> {
    if last < u64::from(plan.words) {
        return Ok(());
    }
    Err((Rule::ReductionRows, format!("the index is word {last} of {} that are bound", plan.words)))
}

fn table(plan: &Plan, at: u32, lanes: u32) -> Result<&[u32], (Rule, String)> {
    let end = u64::from(at) + u64::from(lanes);
    let entries = usize::try_from(end).ok().and_then(|end| plan.tables.get(at as usize..end));
    entries.ok_or_else(|| {
        (Rule::ReductionRows, format!("it reads the table entries {at}..{end} of {}", plan.tables.len()))
    })
}

/// Checks that an operand names written rows of a field, each `part.each` times as wide as given.
fn rows(
    plan: &Plan,
    part: &ReductionPart,
    what: &str,
    operand: StepOperand,
    width: u64,
    dtype: DType,
    written: &[Spans],
) -> Result<(), (Rule, String)> {
    let Some(field) = operand.field().filter(|_| !operand.is_list()) else {
        return Err((Rule::Reductions, format!("{what} must be rows of a field, found {operand:?}")));
    };
    let Some(known) = plan.fields.get(field.index()) else {
        return Err((Rule::Reductions, format!("there is no {field}, only {}", plan.fields.len())));
    };
    let wanted = width * u64::from(part.each);
    if known.ty.dtype != dtype || u64::from(known.width()) != wanted {
        let message =
            format!("{what} must be {wanted} elements of {dtype} a lane, found {field}: {}", known.ty);
        return Err((Rule::Reductions, message));
    }
    match operand.address {
        Address::Steps { start, stride: 0 } => {
            present(field, u64::from(start), u64::from(start) + 1, written)
        }
        Address::Steps { start, stride: 1 } => {
            present(field, u64::from(start), u64::from(start) + u64::from(part.lanes), written)
        }
        Address::Steps { start, stride } => (0..u64::from(part.lanes)).try_for_each(|lane| {
            let row = u64::from(start) + lane * u64::from(stride);
            present(field, row, row + 1, written)
        }),
        Address::Table { at } => {
            let rows = table(plan, at, part.lanes)?;
            match ends(rows) {
                Some((first, last))
                    if present(field, u64::from(first), u64::from(last) + 1, written).is_ok() =>
                {
                    Ok(())
                }
                _ => rows
                    .iter()
                    .try_for_each(|&row| present(field, u64::from(row), u64::from(row) + 1, written)),
            }
        }
        Address::Lists { .. } | Address::Groups { .. } => Ok(()),
    }
}

fn present(field: FieldId, start: u64, end: u64, written: &[Spans]) -> Result<(), (Rule, String)> {
    match written[field.index()].first_missing(start, end) {
        None => Ok(()),
        Some(row) => {
            Err((Rule::ReductionRows, format!("it takes row {row} of {field}, which no step wrote")))
        }
    }
}
