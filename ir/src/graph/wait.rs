//! Values that a model waits for: so that an `async` model goes on as what was computed tells it.
//!
//! A future of [`Value::get`] or [`Value::index`] writes down which value it waits for. Whoever executes the
//! graph holds a [`Waiting`]: it polls the tasks of all instances, takes what they wait for, executes all of
//! it at once, answers, and polls again. So instances whose course depends on values are batched as
//! others are, round by round.

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

/// What tasks wait for, and what was answered since they were polled last.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// Whether anybody will answer.
    served: bool,
    /// What is waited for, and whom to tell that it is there: futures that join others poll nobody else.
    wanted: Vec<(ValueId, Waker)>,
    /// The same of what was taken and is to be answered, ascending.
    taken: Vec<(ValueId, Waker)>,
    answers: HashMap<ValueId, Vec<f32>>,
}

/// Answers those that wait for values of a graph, as long as it lives.
///
/// A session's tasks are run by one; it is here for other ways to run them.
///
/// ```
/// use autobatch_ir::{Graph, ModuleBuilder};
/// use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
///
/// let module = ModuleBuilder::new("m").build().expect("an empty module");
/// let graph = Graph::new(&module);
/// let waiting = graph.waiting().expect("nobody else answers");
/// let mut task = pin!(async { graph.input(&[1.0, 3.0]).argmax().index().await });
/// let mut context = Context::from_waker(Waker::noop());
/// assert!(task.as_mut().poll(&mut context).is_pending());
/// for value in waiting.wanted() {
///     waiting.answer(value, &[f32::from_bits(1)]);        // whatever executed it says so
/// }
/// assert_eq!(task.as_mut().poll(&mut context), Poll::Ready(Ok(1)));
/// ```
#[derive(Debug)]
pub struct Waiting<'g> {
    graph: &'g Graph,
}

impl<'g> Waiting<'g> {
    /// Takes what is waited for, each value once, in ascending order. Earlier answers are forgotten.
    #[must_use]
    pub fn wanted(&self) -> Vec<Value<'g>> {
        let mut waits = self.graph.waits.borrow_mut();
        waits.answers.clear();
        let mut taken = std::mem::take(&mut waits.wanted);
        taken.sort_by_key(|wait| wait.0);
        let mut wanted: Vec<ValueId> = taken.iter().map(|wait| wait.0).collect();
        wanted.dedup();
        waits.taken = taken;
        let data = self.graph.data();
        wanted.into_iter().map(|id| Value::new(self.graph, id, data.arena.type_of(id))).collect()
    }

    /// Gives the elements of a value to those that wait for it and are polled next, and wakes them.
    /// Integers and truth values are given as their bits.
    pub fn answer(&self, value: Value<'g>, elements: &[f32]) {
        if let Some(id) = value.id().filter(|_| value.is_of(self.graph)) {
            let woken = self.graph.waits.borrow_mut().answer(id, elements);
            // Nothing is borrowed meanwhile: whoever is woken may be polled at once.
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
    /// Keeps the elements of a value; who is to be woken.
    fn answer(&mut self, id: ValueId, elements: &[f32]) -> Vec<Waker> {
        self.answers.insert(id, elements.to_vec());
        let first = self.taken.partition_point(|wait| wait.0 < id);
        let own = self.taken[first..].iter().take_while(|wait| wait.0 == id);
        own.map(|wait| wait.1.clone()).collect()
    }
}

impl Graph {
    /// Lets values of this graph be waited for; nothing if somebody answers already.
    #[must_use]
    pub fn waiting(&self) -> Option<Waiting<'_>> {
        let served = std::mem::replace(&mut self.waits.borrow_mut().served, true);
        if served { None } else { Some(Waiting { graph: self }) }
    }

    /// Waits for the elements of several values at once: one round, where [`Value::get`] one after
    /// another takes a round each.
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
        // An answer is there for one round, and they may come in several.
        let mut rows: Vec<Option<Vec<f32>>> = vec![None; values.len()];
        poll_fn(move |context| {
            for (row, value) in rows.iter_mut().zip(&values).filter(|(row, _)| row.is_none()) {
                if let Poll::Ready(found) = value.poll(context, caller, <[f32]>::to_vec) {
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

/// Waiting for what is computed.
impl<'g> Value<'g> {
    /// Waits for the elements, in a task: all tasks go on until each waits or is done, then
    /// everything that is waited for is executed together.
    ///
    /// # Errors
    /// The first fault of emitting; or that nobody answers, because this is no task of the graph.
    #[track_caller]
    pub fn get(self) -> impl Future<Output = Result<Vec<f32>, EmitError>> + use<'g> {
        let caller = Location::caller();
        poll_fn(move |context| self.poll(context, caller, <[f32]>::to_vec))
    }

    /// Waits for the number that an unsigned or truth value is: what an `argmax` chose, say.
    ///
    /// # Errors
    /// As [`get`](Self::get); or that it is no such value.
    #[track_caller]
    pub fn index(self) -> impl Future<Output = Result<u32, EmitError>> + use<'g> {
        let caller = Location::caller();
        poll_fn(move |context| {
            if self.id().is_some() && ![DType::U32, DType::Bool].map(Type::scalar).contains(&self.ty()) {
                let help =
                    "wait for its elements with get(), or for the place of the largest with argmax().index()";
                return Poll::Ready(Err(self.refused("index", "a single index is wanted", help, caller)));
            }
            self.poll(context, caller, |row| row.first().map_or(0, |x| x.to_bits()))
        })
    }

    /// The answer, if it is there; else this value is waited for from now on.
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
        let id = self.id().expect("there was no fault, so there is no poison");
        if let Some(row) = waits.answers.get(&id) {
            return Poll::Ready(Ok(read(row)));
        }
        let refuse = |message, help| Poll::Ready(Err(self.refused("await", message, help, caller)));
        if !waits.served {
            let help = "wait for values in a future that Session::tasks or Trainer::step_tasks runs";
            return refuse("nobody executes this graph meanwhile", help);
        }
        if self.ty().is_list {
            return refuse(
                "a list has no elements of its own",
                "wait for its items, or for what is made of them",
            );
        }
        waits.wanted.push((id, context.waker().clone()));
        Poll::Pending
    }

    #[cold]
    fn refused(self, op: &str, message: &str, help: &str, caller: Caller) -> EmitError {
        self.graph().fault(op, message, help, self, caller)
    }
}
