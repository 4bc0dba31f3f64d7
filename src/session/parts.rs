//! Items that are executed in parts: while one part is executed, the next is emitted and planned.

use super::{Meanwhile, Planning, Prepared, Session};
use crate::emit::{Emitted, Emitter, Threads};
use crate::error::Result;
use crate::row::Row;
use crate::train::explained;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::{Graph, Value};
use autobatch_planner::Request;
use std::iter::Fuse;
use std::time::Instant;

/// A part whose graph an emitter holds and whose plan is made.
struct Part<I> {
    items: Vec<I>,
    /// How many values there are up to the end of each item.
    ends: Vec<usize>,
}

/// Items, and how many of them go into a graph.
pub(crate) struct Together<I> {
    items: I,
    most: usize,
    taken: usize,
}

impl<I: Iterator> Together<Fuse<I>> {
    pub(crate) fn new(items: impl IntoIterator<IntoIter = I>, most: usize) -> Self {
        Self { items: items.into_iter().fuse(), most: most.max(1), taken: 0 }
    }
}

impl<I: Iterator> Iterator for Together<I> {
    /// The number of the first item of a part, and the items.
    type Item = (usize, Vec<I::Item>);

    fn next(&mut self) -> Option<Self::Item> {
        let (first, items) = (self.taken, self.items.by_ref().take(self.most).collect::<Vec<_>>());
        self.taken += items.len();
        (!items.is_empty()).then_some((first, items))
    }
}

impl Session {
    /// Emits values of every item, at most `part` items a graph, and executes one graph after the other; `read` takes each item,
    /// in their order, with the elements of its values. Bits are those of one graph of all items, and memory is that of a part.
    ///
    /// On a GPU, and where there are threads, the next part is emitted and planned while one is executed, so items are taken and
    /// emitted a part before they are read; what goes wrong with them is told when their turn comes. Whatever was read before an
    /// error was right.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
    /// let mut sums = 0.0;
    /// session.run_in_parts(
    ///     (0..1000).map(|number| number as f32),
    ///     64,
    ///     |g, x, values| {
    ///         let x = g.input(&[x, 1.0]);
    ///         values.extend([x.sum(), x.relu()]);
    ///     },
    ///     |x, rows| {
    ///         assert_eq!(rows[1][..], [x, 1.0]);
    ///         sums += rows[0][0];
    ///     },
    /// )?;
    /// assert_eq!(sums, 500_500.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run), for the first part with a fault.
    pub fn run_in_parts<I: Copy + Send>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        part: usize,
        emit: impl for<'g> Fn(&'g Graph, I, &mut Vec<Value<'g>>) + Sync,
        read: impl FnMut(I, &[&Row]),
    ) -> Result<()> {
        let mut emitter = Emitter::new(&self.module, Threads::UpTo(self.threads));
        in_parts(self, &mut emitter, (items, part), &emit, read)
    }
}

/// [`Session::run_in_parts`] with an emitter at hand.
pub(crate) fn in_parts<I: Copy + Send>(
    session: &mut Session,
    emitter: &mut Emitter,
    (items, most): (impl IntoIterator<Item = I>, usize),
    emit: &(impl for<'g> Fn(&'g Graph, I, &mut Vec<Value<'g>>) + Sync),
    mut read: impl FnMut(I, &[&Row]),
) -> Result<()> {
    let mut parts = Together::new(items, most);
    let mut meanwhile = Meanwhile::new(emitter.another());
    loop {
        let ready = meanwhile.due(emitter, |emitter| {
            let part = parts.next()?;
            Some(prepare(session.planning(), emitter, part, emit))
        });
        let Some(ready) = ready else { return Ok(()) };
        let Prepared { plan, of, .. } = ready?;
        let next = if meanwhile.pays(session) { parts.next() } else { None };
        let data = emitter.graph().data();
        let executed = match next {
            Some(next) => {
                let prepare =
                    |planning: &mut Planning, emitter: &mut Emitter| prepare(planning, emitter, next, emit);
                meanwhile.execute(session, &plan, (&data, Noise::Off), prepare)
            }
            None => session.execute(&plan, &data, Noise::Off),
        };
        executed.map_err(|error| explained(&data, error))?;
        let (mut rows, mut at) = (Vec::new(), 0);
        let first = plan.outputs.len() - of.ends.last().copied().unwrap_or(0);
        for (&item, &end) in of.items.iter().zip(&of.ends) {
            rows.extend((at..end).map(|number| Row::new(session.executor.output(&plan, first + number))));
            read(item, &rows);
            rows.clear();
            at = end;
        }
    }
}

/// Emits and plans a part.
fn prepare<I: Copy + Send>(
    planning: &mut Planning,
    emitter: &mut Emitter,
    (first, items): (usize, Vec<I>),
    emit: &(impl for<'g> Fn(&'g Graph, I, &mut Vec<Value<'g>>) + Sync),
) -> Result<Prepared<Part<I>>> {
    let start = Instant::now();
    let Emitted { keys, ends } = emitter.emit_all(items.clone(), first, emit)?;
    let emitted = start.elapsed();
    let mut wanted: Vec<ValueId> = keys.iter().map(|key| key.id()).collect();
    if wanted.is_empty() {
        // No item of the part asks for anything, and no plan makes nothing.
        wanted.extend(emitter.graph().constant(0.0).id());
    }
    let request = Request { wanted: &wanted, rows: planning.rows(), ..Request::default() };
    let plan = planning.plan(&emitter.graph().data(), &request)?;
    Ok(Prepared { plan, emit: emitted, planning: start.elapsed() - emitted, of: Part { items, ends } })
}
