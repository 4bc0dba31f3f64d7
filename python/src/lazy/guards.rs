//! Everything that the code of a traced module can read, compared before each of its calls.

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use std::sync::atomic::{AtomicU64, Ordering};

/// One thing that code reads, and the object it was when the code was traced.
struct Guard {
    holder: Py<PyAny>,
    /// The key, index or attribute; `None` for the length of the holder.
    name: Option<Py<PyAny>>,
    /// `None` if it did not exist.
    value: Option<Py<PyAny>>,
}

impl Guard {
    fn holds(&self, py: Python<'_>) -> bool {
        let holder = self.holder.bind(py);
        let Some(name) = &self.name else {
            let expected = self.value.as_ref().and_then(|value| value.extract::<usize>(py).ok());
            return holder.len().ok() == expected;
        };
        let found = if let Ok(dict) = holder.cast_exact::<PyDict>() {
            dict.get_item(name).ok().flatten()
        } else if let Ok(list) = holder.cast_exact::<PyList>() {
            name.extract::<usize>(py).ok().and_then(|at| list.get_item(at).ok())
        } else {
            name.bind(py).cast::<PyString>().ok().and_then(|name| holder.getattr(name).ok())
        };
        match (&self.value, found) {
            (Some(value), Some(found)) => found.is(value),
            (None, found) => found.is_none(),
            (Some(_), None) => false,
        }
    }
}

impl Guard {
    /// Whether it is code, an attribute of code, or whether a parameter has gradients. Recorders see a change of the last.
    fn changes_seldom(&self, py: Python<'_>) -> bool {
        let holder = self.holder.bind(py);
        if holder.is_exact_instance_of::<PyDict>() || holder.is_exact_instance_of::<PyList>() {
            return false;
        }
        let name = self.name.as_ref().and_then(|name| name.extract::<String>(py).ok()).unwrap_or_default();
        let is_code = self.value.as_ref().is_some_and(|value| value.bind(py).is_callable());
        is_code || name.starts_with("__") || name == "requires_grad"
    }
}

/// A guard as Python passes it: the holder, the name in it (None for its length), the value, and whether it exists.
type Parts<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Bound<'py, PyAny>, bool);

/// Everything that the code of a module can read besides its arguments.
#[pyclass(frozen, name = "Guards", module = "autobatch.torch", weakref)]
pub(crate) struct Guards {
    /// Places that a program changes by plain assignments: compared before every call.
    often: Vec<Guard>,
    /// Code, attributes of classes, and whether parameters have gradients: compared once in an epoch of a block.
    seldom: Vec<Guard>,
    /// The epoch in which the seldom ones were compared, and whether they held.
    compared: Mutex<Option<(u64, bool)>>,
    /// The run of calls in which all were compared and held.
    run: AtomicU64,
}

impl Guards {
    /// Whether the code would read what it read when it was traced. No code of a program runs between calls of one `run`, so
    /// nothing is compared twice; 0 is none.
    pub(super) fn hold(&self, py: Python<'_>, epoch: u64, run: u64) -> bool {
        if run != 0 && self.run.load(Ordering::Relaxed) == run {
            return true;
        }
        let held = self.hold_now(py, epoch);
        if held {
            self.run.store(run, Ordering::Relaxed);
        }
        held
    }

    fn hold_now(&self, py: Python<'_>, epoch: u64) -> bool {
        let known = *self.compared.lock();
        let seldom = match known {
            Some((known, held)) if known == epoch => held,
            _ => {
                let held = self.seldom.iter().all(|guard| guard.holds(py));
                *self.compared.lock() = Some((epoch, held));
                held
            }
        };
        seldom && self.often.iter().all(|guard| guard.holds(py))
    }
}

#[pymethods]
impl Guards {
    #[new]
    fn new(guards: Vec<Parts<'_>>) -> Self {
        let guards = guards.into_iter().map(|(holder, name, value, exists)| Guard {
            holder: holder.unbind(),
            name: name.map(Bound::unbind),
            value: exists.then(|| value.unbind()),
        });
        Python::attach(|py| {
            let (seldom, often) = guards.partition(|guard| guard.changes_seldom(py));
            Self { often, seldom, compared: Mutex::new(None), run: AtomicU64::new(0) }
        })
    }

    fn __len__(&self) -> usize {
        self.often.len() + self.seldom.len()
    }
}
