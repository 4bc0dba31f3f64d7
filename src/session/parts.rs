//! Executes items in parts, and emits and plans the next part while the current one executes.

use super::{Planning, Prefetch, Prepared, Session};
use crate::emit::{Emitted, Emitter, Threads};
use crate::error::Result;
use crate::row::Row;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::{Graph, Value};
use autobatch_planner::Request;
use std::iter::Fuse;
use std::time::Instant;

/// A part: its graph lies in an emitter, and its plan is ready.
struct Part<I> {
    items: Vec<I>,
    /// For each item, the number of values up to its end.
    ends: Vec<usize>,
}

/// Items, and the number of them per graph.
pub(crate) struct Together<I> {
    items: I,
    most: usize,
    taken: usize,
}

impl<I: Iterator> Together<Fuse<I>> {
    pub(crate) fn new(items: impl IntoIterator<IntoIter = I>, most: usize) -> Self {
        Self::from(items, most, 0)
    }

    /// The first item has number `first`.
    pub(crate) fn from(items: impl IntoIterator<IntoIter = I>, most: usize, first: usize) -> Self {
        Self { items: items.into_iter().fuse(), most: most.max(1), taken: first }
    }
}

impl<I: Iterator> Iterator for Together<I> {
    /// The number of a part's first item, and its items.
    type Item = (usize, Vec<I::Item>);

    fn next(&mut self) -> Option<Self::Item> {
        let (first, items) = (self.taken, self.items.by_ref().take(self.most).collect::<Vec<_>>());
        self.taken += items.len();
        (!items.is_empty()).then_some((first, items))
    }
}

impl Session {
    /// Emits the values of every item, at most `part` items per graph, and executes one graph after the
    /// other. `read` receives each item, in order, with the elements of its values. The bits equal those of
    /// one graph of all items; the memory is that of one part.
    ///
    /// On a GPU, and on a CPU with several threads, the session emits and plans the next part while the
    /// current one executes. It therefore takes and emits items one part early and reports their errors
    /// when their turn comes. Everything that `read` received before an error is correct.
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
    /// As [`run`](Self::run), for the first part that has a fault.
    pub fn run_in_parts<I: Copy + Send>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        part: usize,
        emit: impl for<'g> Fn(&'g Graph, I, &mut Vec<Value<'g>>) + Sync,
        read: impl FnMut(I, &[&Row]),
    ) -> Result<()> {
        let mut emitter = Emitter::new(&self.module, Threads::UpTo(self.threads));
        in_parts(self, &mut emitter, Together::new(items, part), &emit, read)
    }
}

/// [`Session::run_in_parts`] with a given emitter.
pub(crate) fn in_parts<I: Copy + Send>(
    session: &mut Session,
    emitter: &mut Emitter,
    mut parts: Together<impl Iterator<Item = I>>,
    emit: &(impl for<'g> Fn(&'g Graph, I, &mut Vec<Value<'g>>) + Sync),
    mut read: impl FnMut(I, &[&Row]),
) -> Result<()> {
    let mut prefetch = Prefetch::new(emitter.another());
    loop {
        let ready = prefetch.take_or_prepare(emitter, |emitter| {
            let (first, items) = parts.next()?;
            Some(prepare(session.planning(), emitter, first, items, emit))
        });
        let Some(ready) = ready else { return Ok(()) };
        let Prepared { plan, wanted, of, .. } = ready?;
        let next = if prefetch.is_worthwhile(session) { parts.next() } else { None };
        let data = emitter.graph().data();
        let executed = match next {
            Some((first, items)) => {
                let prepare = |planning: &mut Planning, emitter: &mut Emitter| {
                    prepare(planning, emitter, first, items, emit)
                };
                prefetch.execute(session, &plan, &data, Noise::Off, prepare)
            }
            None => session.execute(&plan, &data, Noise::Off),
        };
        executed.map_err(|error| session.explained(&data, &plan, &wanted, error))?;
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

/// Emits and plans one part.
fn prepare<I: Copy + Send>(
    planning: &mut Planning,
    emitter: &mut Emitter,
    first: usize,
    items: Vec<I>,
    emit: &(impl for<'g> Fn(&'g Graph, I, &mut Vec<Value<'g>>) + Sync),
) -> Result<Prepared<Part<I>>> {
    let start = Instant::now();
    let Emitted { keys, ends } = emitter.emit_all(items.clone(), first, emit)?;
    let emitted = start.elapsed();
    let mut wanted: Vec<ValueId> = keys.iter().map(|key| key.id()).collect();
    if wanted.is_empty() {
        // No item of the part returned a value, and a plan needs at least one output.
        wanted.extend(emitter.graph().constant(0.0).id());
    }
    let request = Request { wanted: &wanted, rows: planning.rows(), ..Request::default() };
    let plan = planning.plan(&emitter.graph().data(), &request)?;
    Ok(Prepared {
        plan,
        emit: emitted,
        planning: start.elapsed() - emitted,
        wanted,
        of: Part { items, ends },
    })
}
