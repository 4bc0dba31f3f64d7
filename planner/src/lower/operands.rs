//! The rows that a step writes, and its operands, in execution order.

use super::places::Places;
use crate::ids::{BatchId, BlockId, ListId, ProvisionalRow, SlotId};
use crate::order::{Batch, Lists, Rows};
use crate::storage;
use autobatch_ir::graph::OperandKind;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{Address, FieldId, Group, GroupRange, GroupRule, Mode, Origin, Plan, StepOperand};

/// The first row of a block that a batch writes. Its rows are consecutive.
pub(super) fn result_start(rows: &Rows, batch: BatchId, block: BlockId) -> u32 {
    let mut named = rows.slot_rows(&rows.batches[batch], rows.problem.block_slot(batch, block));
    debug_assert!(named.clone().zip(named.clone().skip(1)).all(|(a, b)| a + 1 == b));
    named.next().expect("a batch has lanes")
}

/// The rows that a slot of a step reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotAddress {
    slot: SlotId,
    address: Address,
}

/// Writes the operands of a batch. `known` is working memory.
pub(super) fn write_operands(
    places: &Places<'_>,
    id: BatchId,
    plan: &mut Plan,
    known: &mut Vec<SlotAddress>,
) {
    let Places { context, storage, rows } = *places;
    let graph = context.graph;
    let batch = &rows.batches[id];
    // Operands of one kind have their slots or columns in the order of their ports.
    let mut slots = rows.slots(id).skip(storage.sigs[batch.sig].blocks_of(batch.copy).len());
    let (mut bound, mut lists, first) = (0, 0, plan.operands.len());
    // Executors of growing plans know no groups yet.
    let grouped = context.request.mode != Mode::Grow;
    known.clear();
    for (port, operand) in graph.arena.operands(rows.nodes[batch.lanes.start]).iter().enumerate() {
        let field = storage.port_field(batch.sig, port);
        let operand = match operand.kind() {
            Some(OperandKind::Value(value)) if graph.arena.is_list(value, &graph.sigs) => {
                lists += 1;
                write_lists(places, batch, lists - 1, field, plan, first, grouped)
            }
            Some(OperandKind::Value(_)) => {
                let slot = slots.next().expect("every operand that is a value has a slot");
                let address = write_slot(rows, batch, slot, &mut plan.tables, known);
                StepOperand::of_field(field, address)
            }
            Some(kind @ (OperandKind::Index(_) | OperandKind::Data(_))) => {
                bound += 1;
                let address = write_bound(rows, batch, bound - 1, &mut plan.tables);
                let is_float = matches!(kind, OperandKind::Data(_));
                StepOperand { origin: if is_float { Origin::Floats } else { Origin::Words }, address }
            }
            None => unreachable!("verified graphs hold known operands"),
        };
        plan.operands.push(operand);
    }
}

/// Writes the rows that lanes read at the `nth` of their operands that are lists. The operands of the step begin at `first`.
/// Lanes may share lists in groups if `grouped`.
fn write_lists(
    places: &Places<'_>,
    batch: &Batch,
    nth: usize,
    field: FieldId,
    plan: &mut Plan,
    first: usize,
    grouped: bool,
) -> StepOperand {
    let Places { context, rows, .. } = *places;
    let lanes = &rows.lane_order[batch.lanes.clone()];
    let column = batch.lists as usize + nth * lanes.len();
    let numbers = lanes.iter().map(|&lane| rows.lists.number(column + lane.index()));
    let append = |tables: &mut Vec<u32>, number: ListId| {
        let items = rows.lists.items(number).iter();
        match context.is_growing() {
            true => tables.extend(items.map(|&value| {
                let value = ValueId::new(value as usize);
                context.existing.get(value).map_or_else(|| rows.row(value), |(_, row)| row.0)
            })),
            false => tables.extend(items.map(|&row| rows.rows[ProvisionalRow(row)])),
        }
    };
    let tables = &mut plan.tables;
    let address = if grouped && groups_are_smaller(&rows.lists, numbers.clone()) {
        let mark = (plan.groups.len(), tables.len());
        for Shared { end, last, rule, .. } in shared(numbers, rule_of(&rows.lists)) {
            let at = tables.len();
            append(tables, last);
            let len = (tables.len() - at) as u32;
            let range = GroupRange::of_last(tables, at);
            plan.groups.push(Group { end, len, range, rule });
        }
        let earlier = plan.operands[first..].iter().map(|operand| operand.address);
        Address::of_last_groups(&mut plan.groups, tables, mark.0, mark.1, earlier)
    } else {
        Address::of_lists(tables, numbers, append)
    };
    // If the lists of all steps are empty, no row is read, and any field serves.
    StepOperand::of_field(if field == storage::NO_FIELD { FieldId(0) } else { field }, address)
}

/// Neighbouring lanes whose lists one rule describes.
pub(crate) struct Shared<T> {
    /// The lane after the last.
    pub(crate) end: u32,
    pub(crate) first: T,
    pub(crate) last: T,
    pub(crate) rule: GroupRule,
}

/// Divides lanes, given their lists, into as long runs as possible. `rule` says how a list follows from the one before.
pub(crate) fn shared<T: Copy>(
    lists: impl Iterator<Item = T>,
    rule: impl Fn(T, T) -> Option<GroupRule>,
) -> impl Iterator<Item = Shared<T>> {
    let mut lists = lists.peekable();
    let mut end = 0;
    std::iter::from_fn(move || {
        let first = lists.next()?;
        let (mut last, mut common) = (first, None);
        end += 1;
        while let Some(&next) = lists.peek() {
            let Some(found) = rule(last, next) else { break };
            if *common.get_or_insert(found) != found {
                break;
            }
            (last, end) = (next, end + 1);
            lists.next();
        }
        Some(Shared { end, first, last, rule: common.unwrap_or(GroupRule::All) })
    })
}

/// How a list follows from the list before: it is the same, or has one item more.
fn rule_of(lists: &Lists) -> impl Fn(ListId, ListId) -> Option<GroupRule> {
    |last, next| match next == last {
        true => Some(GroupRule::All),
        false => lists.continues(next, last).then_some(GroupRule::Prefix),
    }
}

/// Whether groups of neighbouring lanes take fewer words than a list for each lane.
fn groups_are_smaller(lists: &Lists, numbers: impl Iterator<Item = ListId> + Clone) -> bool {
    let words = |number| lists.items(number).len();
    let alone: usize = numbers.clone().map(|number| 1 + words(number)).sum();
    let grouped = shared(numbers, rule_of(lists))
        .map(|shared| size_of::<Group>() / size_of::<u32>() + words(shared.last));
    grouped.sum::<usize>() < alone
}

/// Writes the rows of a slot. A slot that names the same rows as an earlier one repeats its address.
fn write_slot(
    rows: &Rows,
    batch: &Batch,
    slot: SlotId,
    tables: &mut Vec<u32>,
    known: &mut Vec<SlotAddress>,
) -> Address {
    let same = rows.problem.slots[slot].same_as;
    // The known slots ascend.
    let address = match known.binary_search_by_key(&same, |known| known.slot) {
        Ok(twin) => known[twin].address.copied(tables, batch.lanes.len() as u32),
        Err(_) => Address::of(tables, rows.slot_rows(batch, slot)),
    };
    known.push(SlotAddress { slot, address });
    address
}

/// Writes the numbers that lanes bind to the `nth` of their bound operands.
fn write_bound(rows: &Rows, batch: &Batch, nth: usize, tables: &mut Vec<u32>) -> Address {
    let lanes = &rows.lane_order[batch.lanes.clone()];
    let column = &rows.bound[batch.bound as usize + nth * lanes.len()..][..lanes.len()];
    Address::of(tables, lanes.iter().map(|&lane| column[lane.index()]))
}
