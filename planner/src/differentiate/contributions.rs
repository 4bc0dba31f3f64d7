//! Which rows contribute to the gradient of which value, in the order of the graph.

use super::Gradients;
use super::backs::Backs;
use super::seeds::Seeds;
use super::signatures::Signatures;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;

/// Contributions to the gradients of values, in the order of the graph. Kept from plan to plan.
#[derive(Default)]
pub(super) struct Contributions {
    /// Where those of each value begin, and where the last one's end.
    start: Vec<u32>,
    rows: Vec<u32>,
    /// Values and rows as they are met.
    uses: Vec<(u32, u32)>,
}

impl Contributions {
    pub(super) fn of(&self, value: ValueId) -> &[u32] {
        &self.rows[self.start[value.index()] as usize..self.start[value.index() + 1] as usize]
    }

    /// Finds every use of every value that needs a gradient, once; a loss uses a value last.
    pub(super) fn collect(
        &mut self,
        graph: &GraphData,
        needs: &[bool],
        (backs, sigs): (&Backs, &Signatures),
        (seeds, request): (&Seeds, &Gradients<'_>),
    ) {
        self.uses.clear();
        let mut add = |value: ValueId, row: u32| self.uses.push((value.index() as u32, row));
        for node in graph.arena.ids() {
            let Some((back, lane)) = backs.of(node) else { continue };
            let rows = backs.rows(back);
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
                        let edge = backs.before(rows).get(lane as usize).map(|before| before + number as u32);
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

    /// Sorts uses by value, in the order in which they were met.
    fn sort(&mut self, values: usize) {
        let Self { start, rows, uses } = self;
        // Counted two places ahead, so that a place ahead is where the next row of a value goes, and in the end where the next
        // value's begin.
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
