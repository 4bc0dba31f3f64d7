//! The rows that contribute to the gradient of each value, in graph order.

use super::emitter::Emitter;
use super::pulls::Pulls;
use super::reverse_steps::Rows;
use crate::lists::Groups;
use autobatch_ir::id::ValueId;

/// Contributions to the gradients of all values, in graph order. Its memory is reused from plan to plan.
#[derive(Default)]
pub(super) struct Contributions {
    /// The rows of each value.
    rows: Groups<u32>,
    /// Pairs of value and row, in graph order.
    uses: Vec<(u32, u32)>,
}

impl Contributions {
    pub(super) fn of(&self, value: ValueId) -> &[u32] {
        self.rows.of(value.index())
    }

    /// Finds every use of every value that needs a gradient. Seeds come last: each is a
    /// value and the row of its seed, if it needs one.
    pub(super) fn collect(
        &mut self,
        emitter: &Emitter<'_>,
        pulls: &Pulls,
        seeds: impl Iterator<Item = (ValueId, Option<u32>)>,
    ) {
        let Emitter { input, needs, sigs, reverse_steps } = *emitter;
        let graph = input.graph;
        self.uses.clear();
        let mut add = |value: ValueId, row: u32| self.uses.push((value.index() as u32, row));
        for node in graph.arena.ids() {
            let Some((back, lane)) = reverse_steps.of(node) else { continue };
            let rows = reverse_steps.rows(back);
            for group in &sigs[back.sig].groups {
                let Some(value) = graph.arena.operands(node)[group.operand as usize].as_value() else {
                    continue;
                };
                if group.pulled {
                    for pulled in pulls.ending_at(node, &group.uses) {
                        add(pulled.item, pulled.row);
                    }
                    continue;
                }
                let rows = &rows[group.uses.clone()];
                if !group.list {
                    if needs[value.index()] {
                        add(value, rows[0].first + lane);
                    }
                    continue;
                }
                let row_of = |own: usize, rows: &Rows, number: u32| {
                    if rows.are_pulled() {
                        return pulls.row(node, own, number);
                    }
                    let edge = reverse_steps.before(rows).get(lane as usize).map(|before| before + number);
                    Some(rows.first + edge.unwrap_or(lane))
                };
                let items = graph.arena.items(value, &graph.sigs);
                for (number, item) in items.iter().filter_map(|item| item.as_value()).enumerate() {
                    for (own, rows) in (group.uses.start..).zip(rows).filter(|_| needs[item.index()]) {
                        let row = row_of(own, rows, number as u32);
                        row.iter().for_each(|&row| add(item, row));
                    }
                }
            }
        }
        for (value, row) in seeds {
            row.iter().for_each(|&row| add(value, row));
        }
        let Self { uses, rows } = self;
        rows.fill(graph.arena.values(), uses.iter().map(|&(value, row)| (value as usize, row)));
    }
}
