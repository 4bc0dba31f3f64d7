//! The rows that a step writes, and its operands, in execution order.

use super::Places;
use crate::order::{Batch, Rows};
use autobatch_ir::graph::OperandKind;
use autobatch_ir::plan::{FieldId, Operand, Plan};
use std::ops::Range;

/// The slots of a batch: one for each block that it writes, then one for each operand that is a value and no list.
pub(crate) fn slots(rows: &Rows, batch: usize) -> Range<usize> {
    let batch = &rows.problem.batches[batch];
    batch.first_slot as usize..batch.end_slot as usize
}

/// The rows that the lanes of a batch name at a slot.
pub(crate) fn slot_rows(rows: &Rows, batch: &Batch, slot: usize) -> impl Iterator<Item = u32> + Clone {
    let lanes = &rows.lane_order[batch.lanes.clone()];
    let named = rows.problem.slot_rows(&rows.problem.slots[slot], lanes.len() as u32);
    lanes.iter().map(|&lane| rows.rows[named[lane as usize] as usize])
}

/// The first row of a block that a batch writes. Its rows are consecutive.
pub(super) fn result_start(rows: &Rows, batch: usize, block: u32) -> u32 {
    let mut named = slot_rows(rows, &rows.batches[batch], slots(rows, batch).start + block as usize);
    debug_assert!(named.clone().zip(named.clone().skip(1)).all(|(a, b)| a + 1 == b));
    named.next().expect("a batch has lanes")
}

/// The rows that a slot of a step reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotRun {
    slot: usize,
    run: Run,
}

/// Writes the operands of a batch. `runs` is working memory.
pub(super) fn write_operands(places: &Places<'_>, number: usize, plan: &mut Plan, runs: &mut Vec<SlotRun>) {
    let Places { context, storage, rows } = *places;
    let graph = context.graph;
    let batch = &rows.batches[number];
    // Operands of one kind have their slots or columns in the order of their ports.
    let mut slots = slots(rows, number).skip(storage.sigs[batch.sig.index()].blocks_of(batch.copy).len());
    let (mut bound, mut lists) = (0, 0);
    runs.clear();
    for (port, operand) in graph.arena.operands(rows.nodes[batch.lanes.start]).iter().enumerate() {
        let field = storage.port_field(batch.sig, port);
        let operand = match operand.kind() {
            Some(OperandKind::Value(value)) if graph.arena.is_list(value, &graph.sigs) => {
                lists += 1;
                write_lists(rows, batch, lists - 1, field, &mut plan.tables)
            }
            Some(OperandKind::Value(_)) => {
                let slot = slots.next().expect("every operand that is a value has a slot");
                write_slot(rows, batch, slot, &mut plan.tables, runs).rows(field)
            }
            Some(kind @ (OperandKind::Index(_) | OperandKind::Data(_))) => {
                bound += 1;
                let run = write_bound(rows, batch, bound - 1, &mut plan.tables);
                if matches!(kind, OperandKind::Data(_)) { run.floats() } else { run.words() }
            }
            None => unreachable!("verified graphs hold known operands"),
        };
        plan.operands.push(operand);
    }
}

/// Writes the rows that lanes read at the `nth` of their operands that are lists.
fn write_lists(rows: &Rows, batch: &Batch, nth: usize, field: FieldId, tables: &mut Vec<u32>) -> Operand {
    let lanes = &rows.lane_order[batch.lanes.clone()];
    let column = batch.lists as usize + nth * lanes.len();
    let (before, lists) = (tables.len(), lanes.len());
    let operand = append_lists(tables, field, lanes.iter(), |tables, &lane| {
        tables.extend(rows.lists.items(column + lane as usize).iter().map(|&row| rows.rows[row as usize]));
    });
    match operand {
        // If all lists are empty, the step reads no row, and any field serves.
        Operand::Segments { offsets, items, .. } if tables.len() == before + lists + 1 => {
            Operand::Segments { field: FieldId(0), offsets, items }
        }
        operand => operand,
    }
}

/// Writes the rows of a slot. A slot that names the same rows as an earlier one repeats its run.
fn write_slot(
    rows: &Rows,
    batch: &Batch,
    slot: usize,
    tables: &mut Vec<u32>,
    runs: &mut Vec<SlotRun>,
) -> Run {
    let same = rows.problem.slots[slot].same_as.0 as usize;
    // The slots of the runs ascend.
    let twin = runs.binary_search_by_key(&same, |run| run.slot).ok();
    let run = match twin.map(|at| runs[at].run) {
        Some(Run::Table(at)) => {
            let (copy, at) = (tables.len() as u32, at as usize);
            tables.extend_from_within(at..at + batch.lanes.len());
            Run::Table(copy)
        }
        Some(steady) => steady,
        None => progression(tables, slot_rows(rows, batch, slot)),
    };
    runs.push(SlotRun { slot, run });
    run
}

/// Writes the numbers that lanes bind to the `nth` of their bound operands.
fn write_bound(rows: &Rows, batch: &Batch, nth: usize, tables: &mut Vec<u32>) -> Run {
    let lanes = &rows.lane_order[batch.lanes.clone()];
    let column = &rows.bound[batch.bound as usize + nth * lanes.len()..][..lanes.len()];
    progression(tables, lanes.iter().map(|&lane| column[lane as usize]))
}

/// The rows of an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// Lane `i` has `start + i * stride`.
    Steady { start: u32, stride: u32 },
    /// The rows stand in the plan's tables from here on.
    Table(u32),
}

impl Run {
    /// The operand that reads these rows of a field.
    pub(crate) fn rows(self, field: FieldId) -> Operand {
        match self {
            Self::Steady { start, stride } => Operand::Rows { field, start, stride },
            Self::Table(at) => Operand::Table { field, at },
        }
    }

    /// The operand that reads these words of the bindings.
    pub(crate) fn words(self) -> Operand {
        match self {
            Self::Steady { start, stride } => Operand::Words { start, stride },
            Self::Table(at) => Operand::WordTable { at },
        }
    }

    /// The operand that reads these floats of the bindings.
    pub(crate) fn floats(self) -> Operand {
        match self {
            Self::Steady { start, stride } => Operand::Floats { start, stride },
            Self::Table(at) => Operand::FloatTable { at },
        }
    }
}

/// Recognises `start + lane * stride`. Other rows are appended to the tables. A single lane is a range.
pub(crate) fn progression(tables: &mut Vec<u32>, rows: impl Iterator<Item = u32> + Clone) -> Run {
    steady(rows.clone()).unwrap_or_else(|| {
        let at = tables.len() as u32;
        tables.extend(rows);
        Run::Table(at)
    })
}

/// The run of the rows at the end of the tables. A steady run leaves the tables.
pub(crate) fn run_at_the_end(tables: &mut Vec<u32>, first: usize) -> Run {
    match steady(tables[first..].iter().copied()) {
        Some(run) => {
            tables.truncate(first);
            run
        }
        None => Run::Table(first as u32),
    }
}

#[inline]
fn steady(mut rows: impl Iterator<Item = u32>) -> Option<Run> {
    let start = rows.next().unwrap_or(0);
    let Some(second) = rows.next() else { return Some(Run::Steady { start, stride: 1 }) };
    let stride = second.checked_sub(start)?;
    let mut expected = u64::from(second);
    let steady = rows.all(|row| {
        expected += u64::from(stride);
        u64::from(row) == expected
    });
    steady.then_some(Run::Steady { start, stride })
}

/// Appends to the tables the list that `append` makes of each item; gives the operand that names them.
#[inline]
pub(crate) fn append_lists<T>(
    tables: &mut Vec<u32>,
    field: FieldId,
    items: impl ExactSizeIterator<Item = T>,
    append: impl Fn(&mut Vec<u32>, T),
) -> Operand {
    let offsets = tables.len();
    let first = offsets + items.len() + 1;
    tables.resize(first, 0);
    for (end, item) in (offsets + 1..first).zip(items) {
        append(tables, item);
        tables[end] = (tables.len() - first) as u32;
    }
    Operand::Segments { field, offsets: offsets as u32, items: first as u32 }
}
