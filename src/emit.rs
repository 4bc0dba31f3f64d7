//! Emits items into a graph, on several threads where that is faster.
//!
//! Each worker records a contiguous slice of the items into a graph of its own. The graphs are then
//! appended in the order of the items. Types, signatures and lines are numbered by first appearance, so
//! the result equals, byte by byte, the graph that one thread would record. The measured pace alone
//! decides the number of threads.

use crate::error::{Error, Result};
use autobatch_ir::{Graph, Module, Value, ValueKey};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest emitting or planning time that repays a thread of its own.
pub(crate) const WORTH_A_THREAD: Duration = Duration::from_micros(150);

/// Reusable graphs, one per worker.
#[derive(Debug)]
pub(crate) struct Emitter {
    graphs: Vec<Graph>,
    threads: Threads,
    pace: Pace,
}

/// The values of items, in order.
#[derive(Debug, Default)]
pub(crate) struct Emitted {
    pub(crate) keys: Vec<ValueKey>,
    /// For each item, the number of values up to its end.
    pub(crate) ends: Vec<usize>,
}

/// One minibatch in this many is emitted on one thread, to renew the measurement. The first minibatch is
/// slower than most, and on a busy machine threads wait for one another.
const TRIED_ALONE: u32 = 32;

/// The measured time per item.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// On one thread, at the last measurement.
    alone: Duration,
    /// On several threads, at the last measurement.
    shared: Option<Duration>,
    /// The number of minibatches that use the faster way before the next measurement.
    left: u32,
}

impl Pace {
    /// Returns the best number of threads for this many items, out of at most `threads`.
    fn workers(&self, items: usize, threads: usize) -> usize {
        let expected = self.alone.as_nanos() * items as u128;
        let paying = threads.min((expected / WORTH_A_THREAD.as_nanos()) as usize);
        let lost = self.shared.is_some_and(|shared| shared > self.alone);
        if self.left == 0 || lost { 1 } else { paying }
    }

    fn note(&mut self, workers: usize, took: Duration, items: usize) {
        let pace = took / items.max(1) as u32;
        match workers {
            1 if self.left == 0 => *self = Self { alone: pace, shared: None, left: TRIED_ALONE },
            1 => self.alone = pace,
            _ => self.shared = Some(pace),
        }
        self.left = self.left.saturating_sub(1);
    }
}

/// The number of threads that emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// At most this many, by the measured pace.
    UpTo(usize),
    /// Exactly this many.
    Exactly(usize),
}

impl Emitter {
    pub(crate) fn new(module: &Arc<Module>, threads: Threads) -> Self {
        Self { graphs: vec![Graph::new(module)], threads, pace: Pace::default() }
    }

    /// Returns another emitter over the same module with the same threads.
    pub(crate) fn another(&self) -> Self {
        let module = Arc::clone(&self.graphs[0].data().module);
        Self { pace: self.pace, ..Self::new(&module, self.threads) }
    }

    pub(crate) fn set_threads(&mut self, threads: Threads) {
        self.threads = threads;
    }

    /// Returns the graph that holds the items emitted last; further workers append theirs to it.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graphs[0]
    }

    /// Emits one value per item and returns their keys in the order of the items. The keys of the instances
    /// count from `first`.
    ///
    /// # Errors
    /// The first fault in the order of the items.
    pub(crate) fn emit<I: Send>(
        &mut self,
        items: Vec<I>,
        first: usize,
        emit: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
    ) -> Result<Vec<ValueKey>> {
        let emitted = self.emit_all(items, first, &|g, item, values| values.push(emit(g, item)))?;
        Ok(emitted.keys)
    }

    /// Emits any number of values per item; otherwise as [`emit`](Self::emit).
    ///
    /// # Errors
    /// The first fault in the order of the items.
    pub(crate) fn emit_all<I: Send>(
        &mut self,
        items: Vec<I>,
        first: usize,
        emit: &(impl for<'g> Fn(&'g Graph, I, &mut Vec<Value<'g>>) + Sync),
    ) -> Result<Emitted> {
        let start = Instant::now();
        let count = items.len();
        let workers = self.workers(count);
        while self.graphs.len() < workers {
            let data = self.graphs[0].data();
            let graph = Graph::new(&data.module);
            drop(data);
            self.graphs.push(graph);
        }
        let graphs = &mut self.graphs[..workers];
        let mut parts: Vec<Result<Emitted>> = Vec::with_capacity(workers);
        match graphs {
            [graph] => parts.push(emit_part(graph, first, items, emit)),
            graphs => std::thread::scope(|scope| {
                let mut left = items.into_iter();
                let mut spawned = Vec::with_capacity(workers);
                for (number, graph) in graphs.iter_mut().enumerate() {
                    let (from, to) = (count * number / workers, count * (number + 1) / workers);
                    let part: Vec<I> = left.by_ref().take(to - from).collect();
                    spawned.push(scope.spawn(move || emit_part(graph, first + from, part, emit)));
                }
                for worker in spawned {
                    match worker.join() {
                        Ok(part) => parts.push(part),
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
            }),
        }
        let emitted = join(&self.graphs[..workers], parts);
        self.pace.note(workers, start.elapsed(), count);
        self.graphs[0].check()?;
        emitted
    }

    /// Clears the first worker's graph and returns it.
    pub(crate) fn restart(&mut self) -> &Graph {
        let graph = &mut self.graphs[0];
        graph.clear();
        graph.set_instances_before(0);
        graph
    }

    fn workers(&self, items: usize) -> usize {
        let wanted = match self.threads {
            Threads::Exactly(threads) => threads,
            Threads::UpTo(threads) => self.pace.workers(items, threads),
        };
        wanted.clamp(1, items.max(1))
    }
}

/// Refuses a value of another graph. A fault of that other graph takes precedence.
pub(crate) fn check_own(graph: &Graph, value: Value<'_>) -> Result<()> {
    let other = value.graph();
    if std::ptr::eq(other, graph) {
        return Ok(());
    }
    other.check()?;
    let data = other.data();
    let site = value.id().map(|id| data.site(data.arena.node(data.arena.producer(id)).site).clone());
    Err(Error::OtherGraph { value: other.number(), graph: graph.number(), site })
}

/// Emits the items numbered from `first`.
fn emit_part<I>(
    graph: &mut Graph,
    first: usize,
    items: Vec<I>,
    emit: &impl for<'g> Fn(&'g Graph, I, &mut Vec<Value<'g>>),
) -> Result<Emitted> {
    graph.clear();
    graph.set_instances_before(first);
    let graph = &*graph;
    let (mut emitted, mut values) = (Emitted::default(), Vec::new());
    for (number, item) in items.into_iter().enumerate() {
        graph.instance((first + number) as u64);
        values.clear();
        emit(graph, item, &mut values);
        values.iter().try_for_each(|&value| check_own(graph, value))?;
        emitted.keys.extend(values.iter().filter_map(|value| value.key()));
        emitted.ends.push(emitted.keys.len());
    }
    Ok(emitted)
}

/// Appends all graphs to the first one and returns the values there.
#[track_caller]
fn join(graphs: &[Graph], parts: Vec<Result<Emitted>>) -> Result<Emitted> {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_else(|| Ok(Emitted::default()))?;
    for (graph, part) in graphs.iter().skip(1).zip(parts) {
        let (shift, part, before) = (graphs[0].append(graph), part?, all.keys.len());
        let moved = |key: ValueKey| graphs[0].appended(key, shift?);
        all.keys.extend(part.keys.into_iter().filter_map(moved));
        all.ends.extend(part.ends.into_iter().map(|end| before + end));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEMS: usize = 100;

    /// Counts, of 200 minibatches, those emitted on several threads at these times per item.
    fn shared(alone: Duration, shared: Duration) -> usize {
        let mut pace = Pace::default();
        let minibatch = |_: &usize| {
            let workers = pace.workers(ITEMS, 2);
            pace.note(workers, if workers > 1 { shared } else { alone } * ITEMS as u32, ITEMS);
            workers > 1
        };
        (0..200).filter(minibatch).count()
    }

    #[test]
    fn several_threads_emit_only_while_they_are_faster() {
        let micros = Duration::from_micros;
        assert_eq!(shared(micros(1), micros(1)), 0, "100 us do not repay a thread");
        assert!(shared(micros(10), micros(6)) > 180);
        // The emitter measures several threads again from time to time, even if they were slow.
        assert!((1..=8).contains(&shared(micros(10), micros(90))));
    }
}
