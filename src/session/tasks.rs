//! Tasks: instances whose course depends on computed values.
//!
//! A task is a future that emits into a graph and awaits values of it. The session polls all tasks in
//! order until each one awaits a value or ends. Then one plan computes everything that the tasks await,
//! and the session polls them again. So the emitted graph is a function of the tasks, not of time. Each
//! round takes as few batches as its values allow, whatever the number of tasks.

use super::Session;
use super::growing::Growing;
use crate::error::{Error, Result};
use autobatch_ir::Graph;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

impl Session {
    /// Runs tasks over one graph and returns their results in order. Each task is an instance whose key is
    /// its position.
    ///
    /// A task may await the elements of a value with [`Value::get`](autobatch_ir::Value::get) or an integer
    /// with [`Value::index`](autobatch_ir::Value::index), and nothing else: no other executor drives it.
    /// What the caller emits while making the futures is common to all instances, noise included. An
    /// `async` function emits nothing before it is polled.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
    /// /// Counts the halvings until a number is below 1.
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
    /// assert_eq!(found, [10, 0, 4]);              // ten rounds of batched multiplications, not fourteen
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of the first task that fails, the first fault of emitting, or an error of
    /// [`Session::run`]. [`Error::Stalled`] if a task awaits anything else, [`Error::Nested`] if another
    /// call runs tasks of this graph.
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
    /// Runs tasks over the graph as [`Session::tasks`] does. Computed values stay.
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

/// A running task or its result.
enum Task<F, T> {
    Open(Pin<Box<F>>),
    Done(T),
}

impl<F: Future<Output = Result<T>>, T> Task<F, T> {
    const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// Polls the task once. Returns whether it has ended.
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
