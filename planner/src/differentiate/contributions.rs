//! Which rows contribute to the gradient of which value, in the order of the graph.

use super::Gradients;
use super::emit::Work;
use autobatch_ir::id::ValueId;

/// Contributions to the gradients of values, in the order of the graph.
pub(super) struct Contributions {
    /// Where those of each value begin, and where the last one's end.
    start: Vec<u32>,
    rows: Vec<u32>,
}

impl Contributions {
    pub(super) fn of(&self, value: ValueId) -> &[u32] {
        &self.rows[self.start[value.index()] as usize..self.start[value.index() + 1] as usize]
    }

    /// Every use of every value that needs a gradient, once; a loss uses a value last.
    pub(super) fn new<F>(work: &Work<'_>, seeds: &[Option<(F, u32)>], request: &Gradients<'_>) -> Self {
        let (graph, needs) = (work.graph, work.parts.needs);
        let mut uses: Vec<(u32, u32)> = Vec::with_capacity(graph.arena.values());
        let mut add = |value: ValueId, row: u32| uses.push((value.index() as u32, row));
        for app in graph.arena.ids() {
            let (back, lane) = work.at[app.index()];
            let Some(back) = work.backs.get(back as usize) else { continue };
            for group in &back.groups {
                let Some(value) = graph.arena.operands(app)[group.operand as usize].as_value() else {
                    continue;
                };
                let rows = &back.rows[group.uses.clone()];
                if !group.list {
                    if needs[value.index()] {
                        add(value, rows[0].first + lane);
                    }
                    continue;
                }
                let items = graph.arena.operands(graph.arena.producer(value));
                for (number, item) in items.iter().filter_map(|item| item.as_value()).enumerate() {
                    for rows in rows.iter().filter(|_| needs[item.index()]) {
                        let edge = rows.before.get(lane as usize).map(|before| before + number as u32);
                        add(item, rows.first + edge.unwrap_or(lane));
                    }
                }
            }
        }
        for (&(value, _), seed) in request.losses.iter().zip(seeds) {
            if let Some((_, row)) = seed {
                add(value, *row);
            }
        }
        let mut start = vec![0u32; graph.arena.values() + 1];
        uses.iter().for_each(|&(value, _)| start[value as usize + 1] += 1);
        for value in 1..start.len() {
            start[value] += start[value - 1];
        }
        let mut next = start.clone();
        let mut rows = vec![0; uses.len()];
        for (value, row) in uses {
            let at = &mut next[value as usize];
            rows[*at as usize] = row;
            *at += 1;
        }
        Self { start, rows }
    }
}
