//! The rows that contribute to the gradient of each value, in graph order.

use super::Gradients;
use super::reverse_steps::ReverseSteps;
use super::seeds::Seeds;
use super::signatures::Signatures;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;

/// Contributions to the gradients of all values, in graph order. Its memory is reused from plan to plan.
#[derive(Default)]
pub(super) struct Contributions {
    /// The place of the first row of each value, then the number of rows.
    start: Vec<u32>,
    rows: Vec<u32>,
    /// Pairs of value and row, in graph order.
    uses: Vec<(u32, u32)>,
}

impl Contributions {
    pub(super) fn of(&self, value: ValueId) -> &[u32] {
        &self.rows[self.start[value.index()] as usize..self.start[value.index() + 1] as usize]
    }

    /// Finds every use of every value that needs a gradient. Losses come last.
    pub(super) fn collect(
        &mut self,
        graph: &GraphData,
        needs: &[bool],
        (reverse_steps, sigs): (&ReverseSteps, &Signatures),
        (seeds, request): (&Seeds, &Gradients<'_>),
    ) {
        self.uses.clear();
        let mut add = |value: ValueId, row: u32| self.uses.push((value.index() as u32, row));
        for node in graph.arena.ids() {
            let Some((back, lane)) = reverse_steps.of(node) else { continue };
            let rows = reverse_steps.rows(back);
            for group in &sigs[back.sig].groups {
                let Some(value) = graph.arena.operands(node)[group.operand as usize].as_value() else {
                    continue;
                };
                let rows = &rows[group.uses.clone()];
                if !group.list {
                    if needs[value.index()] {
                        add(value, rows[0].first + lane);
                    }
                    continue;
                }
                let items = graph.arena.operands(graph.arena.producer(value));
                for (number, item) in items.iter().filter_map(|item| item.as_value()).enumerate() {
                    for rows in rows.iter().filter(|_| needs[item.index()]) {
                        let edge = reverse_steps
                            .before(rows)
                            .get(lane as usize)
                            .map(|before| before + number as u32);
                        add(item, rows.first + edge.unwrap_or(lane));
                    }
                }
            }
        }
        for (&(value, _), row) in request.losses.iter().zip(seeds.rows()) {
            row.into_iter().for_each(|row| add(value, row));
        }
        self.sort(graph.arena.values());
    }

    /// Sorts uses by value and keeps their order otherwise.
    fn sort(&mut self, values: usize) {
        let Self { start, rows, uses } = self;
        // Counts lie two places ahead. So entry `value + 1` is the place of the value's next row, and in the end the place of the
        // next value's first row.
        start.clear();
        start.resize(values + 2, 0);
        uses.iter().for_each(|&(value, _)| start[value as usize + 2] += 1);
        for value in 2..start.len() {
            start[value] += start[value - 1];
        }
        rows.clear();
        rows.resize(uses.len(), 0);
        for &(value, row) in &*uses {
            let at = &mut start[value as usize + 1];
            rows[*at as usize] = row;
            *at += 1;
        }
    }
}
