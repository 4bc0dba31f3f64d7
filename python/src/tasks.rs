//! Tasks: coroutines that emit and await values.

use crate::error::{BusyError, raised};
use crate::session::{array, released};
use crate::value::Awaited;
use autobatch::Growing;
use autobatch::ir::Graph;
use autobatch::ir::graph::ValueKey;
use pyo3::exceptions::{PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A coroutine that emits and awaits values.
pub(crate) struct Task {
    coroutine: Py<PyAny>,
    /// The value that the coroutine receives next.
    answer: Option<Py<PyAny>>,
    /// The values that it awaits, in order.
    awaited: Vec<ValueKey>,
    alone: bool,
    pub(crate) result: Option<Py<PyAny>>,
}

impl Task {
    /// Calls an `async` function with each item.
    pub(crate) fn all(items: &Bound<'_, PyAny>, task: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        items.try_iter()?.map(|item| Self::new(&task.call1((item?,))?)).collect()
    }

    pub(crate) fn new(coroutine: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !coroutine.hasattr("send")? {
            return Err(PyTypeError::new_err(format!(
                "a task is an async function: `async def task(item): ...`, found one that returns {coroutine:?}"
            )));
        }
        let coroutine = coroutine.clone().unbind();
        Ok(Self { coroutine, answer: None, awaited: Vec::new(), alone: false, result: None })
    }

    /// Runs the coroutine until it awaits values or ends.
    fn go_on(&mut self, py: Python<'_>) -> PyResult<()> {
        let answer = self.answer.take().unwrap_or_else(|| py.None());
        match self.coroutine.bind(py).call_method1("send", (answer,)) {
            Ok(awaited) => {
                let awaited = awaited.cast_into::<Awaited>().map_err(|error| {
                    PyTypeError::new_err(format!(
                        "a task awaits {:?}, which is no value of its graph; tasks await values and ab.gather alone",
                        error.into_inner()
                    ))
                })?;
                let awaited = awaited.borrow();
                self.awaited = awaited.values.iter().map(|value| value.get().key()).collect();
                self.alone = awaited.alone;
                Ok(())
            }
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
                self.result = Some(error.value(py).getattr("value")?.unbind());
                self.awaited.clear();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn take_answer<'py>(
        &mut self,
        py: Python<'py>,
        read: impl Fn(ValueKey) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        if self.result.is_some() {
            return Ok(());
        }
        let mut arrays = self.awaited.iter().map(|&key| read(key)).collect::<PyResult<Vec<_>>>()?;
        self.answer = Some(match arrays.pop() {
            Some(only) if self.alone => only.unbind(),
            last => PyTuple::new(py, arrays.into_iter().chain(last).collect::<Vec<_>>())?.into_any().unbind(),
        });
        Ok(())
    }
}

/// Runs tasks to their ends. Each round executes what all of them await.
pub(crate) fn rounds<'g>(
    py: Python<'_>,
    graph: &'g Graph,
    growing: &mut Growing<'_, 'g>,
    tasks: &mut [Task],
) -> PyResult<()> {
    while go_on(py, graph, tasks)? {
        let keys: Vec<ValueKey> = tasks.iter().flat_map(|task| task.awaited.iter().copied()).collect();
        let values = keys.iter().filter_map(|&key| graph.value(key)).collect::<Vec<_>>();
        let run = released(py, || growing.run(&values)).map_err(raised)?;
        for task in tasks.iter_mut() {
            task.take_answer(py, |key| {
                let value = graph.value(key).ok_or_else(|| BusyError::new_err("the graph was cleared"))?;
                array(py, &run[value], value.ty().dtype, value.shape())
            })?;
        }
    }
    Ok(())
}

/// Runs every open task until it awaits values or ends. Returns whether one awaits values.
pub(crate) fn go_on(py: Python<'_>, graph: &Graph, tasks: &mut [Task]) -> PyResult<bool> {
    let mut open = false;
    for (number, task) in tasks.iter_mut().enumerate().filter(|(_, task)| task.result.is_none()) {
        graph.resume_instance(number as u64);
        task.go_on(py)?;
        open |= task.result.is_none();
    }
    Ok(open)
}
