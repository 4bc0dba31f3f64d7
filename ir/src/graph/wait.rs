//! Awaiting computed values: an `async` model can branch on them.
//!
//! A future of [`Value::get`] or [`Value::index`] registers the value that it awaits. The executor holds a [`Waiting`] and
//! works in rounds. It polls the tasks of all instances, takes the awaited values, executes them together, answers, and
//! polls again. So the planner batches data-dependent instances like all others.

use crate::graph::emit::Graph;
use crate::graph::error::EmitError;
use crate::graph::record::Caller;
use crate::graph::value::Value;
use crate::id::ValueId;
use crate::types::{DType, Type};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::task::{Context, Poll, Waker};

/// The values that tasks await, and the answers since the last poll.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// Whether a [`Waiting`] exists, which answers.
    has_executor: bool,
    /// The awaited values with their wakers. Combinators such as `join` poll only woken futures.
    awaited: Vec<(ValueId, Waker)>,
    /// The values that the executor took and has not answered yet, ascending.
    taken: Vec<(ValueId, Waker)>,
    answers: HashMap<ValueId, Vec<f32>>,
}

/// Answers the tasks that await values of a graph, for as long as it exists.
///
/// `Session::tasks` uses one. It is public for other ways to run tasks.
///
/// ```
/// use autobatch_ir::{Graph, ModuleBuilder};
/// use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
///
/// let module = ModuleBuilder::new("m").build().expect("an empty module");
/// let graph = Graph::new(&module);
/// let waiting = graph.waiting().expect("the graph has no other executor");
/// let mut task = pin!(async { graph.input(&[1.0, 3.0]).argmax().index().await });
/// let mut context = Context::from_waker(Waker::noop());
/// assert!(task.as_mut().poll(&mut context).is_pending());
/// for value in waiting.take_awaited() {
///     waiting.answer(value, &[f32::from_bits(1)]);        // the result of executing it
/// }
/// assert_eq!(task.as_mut().poll(&mut context), Poll::Ready(Ok(1)));
/// ```
#[derive(Debug)]
pub struct Waiting<'g> {
    graph: &'g Graph,
}

impl<'g> Waiting<'g> {
    /// Takes the awaited values, each once, in ascending order, and drops earlier answers.
    #[must_use]
    pub fn take_awaited(&self) -> Vec<Value<'g>> {
        let mut waits = self.graph.waits.borrow_mut();
        waits.answers.clear();
        let mut taken = std::mem::take(&mut waits.awaited);
        taken.sort_by_key(|wait| wait.0);
        let mut awaited: Vec<ValueId> = taken.iter().map(|wait| wait.0).collect();
        awaited.dedup();
        waits.taken = taken;
        let data = self.graph.data();
        awaited.into_iter().map(|id| Value::new(self.graph, id, data.arena.type_of(id))).collect()
    }

    /// Stores the elements of a value and wakes the tasks that await it. Integers and booleans are passed as their bits.
    pub fn answer(&self, value: Value<'g>, elements: &[f32]) {
        if let Some(id) = value.id().filter(|_| value.is_of(self.graph)) {
            let woken = self.graph.waits.borrow_mut().answer(id, elements);
            // The borrow ends before waking, because a woken task may be polled at once.
            woken.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        drop(self.graph.waits.take());
    }
}

impl Waits {
    /// Stores the elements of a value and returns the wakers of its tasks.
    fn answer(&mut self, id: ValueId, elements: &[f32]) -> Vec<Waker> {
        self.answers.insert(id, elements.to_vec());
        let first = self.taken.partition_point(|wait| wait.0 < id);
        let own = self.taken[first..].iter().take_while(|wait| wait.0 == id);
        own.map(|wait| wait.1.clone()).collect()
    }
}

impl Graph {
    /// Registers an executor, so that tasks can await values; `None` if there is one already.
    #[must_use]
    pub fn waiting(&self) -> Option<Waiting<'_>> {
        let served = std::mem::replace(&mut self.waits.borrow_mut().has_executor, true);
        if served { None } else { Some(Waiting { graph: self }) }
    }

    /// Awaits the elements of several values in one round. Consecutive calls of [`Value::get`] take a round each.
    ///
    /// # Errors
    /// As [`Value::get`].
    #[track_caller]
    pub fn get_all<'g>(
        &'g self,
        values: &[Value<'g>],
    ) -> impl Future<Output = Result<Vec<Vec<f32>>, EmitError>> + use<'g> {
        let caller = Location::caller();
        let values = values.to_vec();
        // An answer lives for one round, and the answers may arrive in different rounds.
        let mut rows: Vec<Option<Vec<f32>>> = vec![None; values.len()];
        poll_fn(move |context| {
            for (row, value) in rows.iter_mut().zip(&values).filter(|(row, _)| row.is_none()) {
                if let Poll::Ready(found) = value.poll(context, caller, |row| value.numbers(row)) {
                    *row = Some(found?);
                }
            }
            if rows.iter().any(Option::is_none) {
                return Poll::Pending;
            }
            Poll::Ready(Ok(std::mem::take(&mut rows).into_iter().flatten().collect()))
        })
    }
}

/// Awaiting computed elements.
impl<'g> Value<'g> {
    /// Awaits the elements, in a task; integers and truth values come as numbers. All tasks run until each awaits a value or
    /// ends; then the executor computes all awaited values together.
    ///
    /// # Errors
    /// The first fault of emitting, or a fault if the graph has no executor.
    #[track_caller]
    pub fn get(self) -> impl Future<Output = Result<Vec<f32>, EmitError>> + use<'g> {
        let caller = Location::caller();
        poll_fn(move |context| self.poll(context, caller, |row| self.numbers(row)))
    }

    /// Awaits a scalar of type u32 or bool, such as the result of `argmax`.
    ///
    /// # Errors
    /// As [`get`](Self::get), or a fault if the value has another type.
    #[track_caller]
    pub fn index(self) -> impl Future<Output = Result<u32, EmitError>> + use<'g> {
        let caller = Location::caller();
        poll_fn(move |context| {
            if self.id().is_some() && ![DType::U32, DType::Bool].map(Type::scalar).contains(&self.ty()) {
                let help = "await its elements with get(), or the index of the largest with argmax().index()";
                return Poll::Ready(Err(self.refused(
                    "index",
                    "expected a single u32 or bool",
                    help,
                    caller,
                )));
            }
            self.poll(context, caller, |row| row.first().map_or(0, |x| x.to_bits()))
        })
    }

    /// The elements of this value as numbers; integers and truth values arrive as their bits.
    fn numbers(self, row: &[f32]) -> Vec<f32> {
        let dtype = self.ty().dtype;
        row.iter().map(|&element| dtype.number(element)).collect()
    }

    /// Returns the answer if there is one; otherwise registers the value as awaited.
    fn poll<R>(
        self,
        context: &Context<'_>,
        caller: Caller,
        read: impl FnOnce(&[f32]) -> R,
    ) -> Poll<Result<R, EmitError>> {
        let graph = self.graph();
        if let Err(fault) = graph.check() {
            return Poll::Ready(Err(fault));
        }
        let mut waits = graph.waits.borrow_mut();
        let id = self.id().expect("a graph without faults has no poison values");
        if let Some(row) = waits.answers.get(&id) {
            return Poll::Ready(Ok(read(row)));
        }
        let refuse = |message, help| Poll::Ready(Err(self.refused("await", message, help, caller)));
        if !waits.has_executor {
            let help = "await values in a future that Session::tasks or Trainer::step_tasks runs";
            return refuse("no executor runs this graph", help);
        }
        if self.ty().is_list {
            return refuse(
                "a list has no elements of its own",
                "await its items, or a value computed from them",
            );
        }
        waits.awaited.push((id, context.waker().clone()));
        Poll::Pending
    }

    #[cold]
    fn refused(self, op: &str, message: &str, help: &str, caller: Caller) -> EmitError {
        self.graph().fault(op, message, help, self, caller)
    }
}
