//! Emits the items of a minibatch, on several threads where that pays.
//!
//! Each worker records a contiguous slice of the items into a graph of its own; the graphs are
//! appended in the order of the items. The result is the graph that one thread would have recorded,
//! byte by byte, so how many threads there are is decided by how long emitting took last time.

use autobatch_ir::{EmitError, Graph, Module, Value, ValueKey};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Emitting or planning less than this on a thread of its own costs more than it saves.
pub(crate) const WORTH_A_THREAD: Duration = Duration::from_micros(150);

/// Graphs that are used again, one a worker.
#[derive(Debug)]
pub(crate) struct Emitter {
    graphs: Vec<Graph>,
    threads: Threads,
    /// How long one item took when it was emitted last.
    pace: Duration,
}

/// How many threads emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// At most so many, as pays.
    UpTo(usize),
    /// So many.
    Exactly(usize),
}

impl Emitter {
    pub(crate) fn new(module: &Arc<Module>, threads: Threads) -> Self {
        Self { graphs: vec![Graph::new(module)], threads, pace: Duration::ZERO }
    }

    /// Another of the same module, on as many threads.
    pub(crate) fn another(&self) -> Self {
        let module = Arc::clone(&self.graphs[0].data().module);
        Self { pace: self.pace, ..Self::new(&module, self.threads) }
    }

    pub(crate) fn set_threads(&mut self, threads: Threads) {
        self.threads = threads;
    }

    /// The graph that was emitted last.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graphs[0]
    }

    /// Emits one value an item; their keys in the order of the items. The keys of the instances count
    /// from `first`.
    ///
    /// # Errors
    /// The first fault in the order of the items.
    pub(crate) fn emit<I: Send>(
        &mut self,
        items: Vec<I>,
        first: usize,
        emit: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
    ) -> Result<Vec<ValueKey>, EmitError> {
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
        let mut parts: Vec<Vec<Option<ValueKey>>> = Vec::with_capacity(workers);
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
        let values = join(&self.graphs[..workers], parts);
        self.pace = start.elapsed() / count.max(1) as u32;
        self.graphs[0].check()?;
        Ok(values.into_iter().flatten().collect())
    }

    /// Emits one graph freely; the value's key.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn emit_one(
        &mut self,
        emit: impl for<'g> FnOnce(&'g Graph) -> Value<'g>,
    ) -> Result<Vec<ValueKey>, EmitError> {
        let graph = &mut self.graphs[0];
        graph.clear();
        graph.set_instances_before(0);
        let key = emit(graph).key();
        graph.check()?;
        Ok(key.into_iter().collect())
    }

    fn workers(&self, items: usize) -> usize {
        let wanted = match self.threads {
            Threads::Exactly(threads) => threads,
            Threads::UpTo(threads) => {
                let expected = self.pace.as_nanos() * items as u128;
                threads.min((expected / WORTH_A_THREAD.as_nanos()) as usize)
            }
        };
        wanted.clamp(1, items.max(1))
    }
}

/// Emits the items whose numbers begin with `first`.
fn emit_part<I>(
    graph: &mut Graph,
    first: usize,
    items: Vec<I>,
    emit: &impl for<'g> Fn(&'g Graph, I) -> Value<'g>,
) -> Vec<Option<ValueKey>> {
    graph.clear();
    graph.set_instances_before(first);
    let graph = &*graph;
    let one = |(number, item): (usize, I)| {
        graph.instance((first + number) as u64);
        emit(graph, item).key()
    };
    items.into_iter().enumerate().map(one).collect()
}

/// Appends the graphs to the first; the values' keys there.
#[track_caller]
fn join(graphs: &[Graph], parts: Vec<Vec<Option<ValueKey>>>) -> Vec<Option<ValueKey>> {
    let mut parts = parts.into_iter();
    let mut values = parts.next().unwrap_or_default();
    for (graph, part) in graphs.iter().skip(1).zip(parts) {
        let shift = graphs[0].append(graph);
        let moved = |key: Option<ValueKey>| graphs[0].appended(key?, shift?);
        values.extend(part.into_iter().map(moved));
    }
    values
}
