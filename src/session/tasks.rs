//! Tasks: instances whose course depends on what was computed of them.
//!
//! A task is a future that emits into a graph and waits for values of it. All tasks go on until each
//! waits or is done, in their order; then one plan of what is new serves everything that is waited
//! for, and they go on. So what is emitted is a function of the tasks, and a round is as few
//! batches as its values can be computed in, however many tasks there are.

use super::Session;
use super::growing::Growing;
use crate::error::{Error, Result};
use autobatch_ir::Graph;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

impl Session {
    /// Runs tasks over one graph, each an instance whose key is its place; their results in their order.
    ///
    /// A task waits for the elements of a value with [`Value::get`](autobatch_ir::Value::get), for a number that was
    /// chosen with [`Value::index`](autobatch_ir::Value::index), and for nothing else: there is no other executor
    /// behind it. What is emitted while the futures are made is common to all instances, noise included; an `async`
    /// function emits nothing before it runs.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
    /// /// How often a number is halved before it is below 1.
    /// async fn halvings(g: &Graph, x: f32) -> autobatch::Result<usize> {
    ///     let mut x = g.input(&[x]);
    ///     let mut halvings = 0;
    ///     while x.get().await?[0] >= 1.0 {
    ///         x = x * 0.5;
    ///         halvings += 1;
    ///     }
    ///     Ok(halvings)
    /// }
    ///
    /// let g = session.graph();
    /// let found = session.tasks(&g, [1000.0, 0.3, 8.0].map(|x| halvings(&g, x)))?;
    /// assert_eq!(found, [10, 0, 4]);              // ten multiplications in a row, not fourteen
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the first task in their order that fails gives, the first fault of emitting, or as
    /// [`Session::run`]; [`Error::Stalled`] if a task waits for something else, [`Error::Nested`] if
    /// tasks of this graph are run already.
    #[track_caller]
    pub fn tasks<T>(
        &mut self,
        graph: &Graph,
        tasks: impl IntoIterator<Item = impl Future<Output = Result<T>>>,
    ) -> Result<Vec<T>> {
        self.growing(graph).tasks(tasks)
    }
}

impl Growing<'_, '_> {
    /// Runs tasks over the graph, as [`Session::tasks`]; what was computed before stays.
    ///
    /// # Errors
    /// As [`Session::tasks`].
    pub fn tasks<T>(
        &mut self,
        tasks: impl IntoIterator<Item = impl Future<Output = Result<T>>>,
    ) -> Result<Vec<T>> {
        let graph = self.graph();
        let waiting = graph.waiting().ok_or(Error::Nested)?;
        let mut tasks: Vec<Task<_, T>> = tasks.into_iter().map(|task| Task::Open(Box::pin(task))).collect();
        loop {
            let mut open = None;
            for (number, task) in tasks.iter_mut().enumerate().filter(|(_, task)| task.is_open()) {
                graph.resume_instance(number as u64);
                if !task.go_on()? {
                    open.get_or_insert(number);
                }
                graph.check()?;
            }
            let Some(task) = open else { break };
            let wanted = waiting.take_awaited();
            if wanted.is_empty() {
                return Err(Error::Stalled { task });
            }
            let run = self.run(&wanted)?;
            for &value in &wanted {
                waiting.answer(value, &run[value]);
            }
        }
        Ok(tasks.into_iter().filter_map(Task::result).collect())
    }
}

/// A task, or what came of it.
enum Task<F, T> {
    Open(Pin<Box<F>>),
    Done(T),
}

impl<F: Future<Output = Result<T>>, T> Task<F, T> {
    const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Goes on until it waits or is done; says whether it is done.
    fn go_on(&mut self) -> Result<bool> {
        let Self::Open(future) = self else { return Ok(true) };
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Ok(false),
            Poll::Ready(result) => {
                *self = Self::Done(result?);
                Ok(true)
            }
        }
    }

    fn result(self) -> Option<T> {
        match self {
            Self::Open(_) => None,
            Self::Done(result) => Some(result),
        }
    }
}
