//! Optimisers and schedules of the learning rate.

use autobatch::nn::optim::{
    Adadelta, Adagrad, Adam, AdamW, AmsGrad, Momentum, Nesterov, Optimize, Optimizer, RmsProp, Schedule, Sgd,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

/// The call that made an object of `autobatch.optim`. It shows the object, and makes its copies.
struct Call {
    function: &'static str,
    arguments: Py<PyDict>,
}

impl Call {
    fn new(py: Python<'_>, function: &'static str, arguments: &[(&str, Bound<'_, PyAny>)]) -> PyResult<Self> {
        let all = PyDict::new(py);
        arguments.iter().try_for_each(|(name, value)| all.set_item(name, value))?;
        Ok(Self { function, arguments: all.unbind() })
    }

    fn shown(&self, py: Python<'_>) -> PyResult<String> {
        let mut arguments = Vec::new();
        for (name, value) in self.arguments.bind(py) {
            arguments.push(format!("{name}={}", value.repr()?));
        }
        Ok(format!("{}({})", self.function, arguments.join(", ")))
    }

    /// The function [`remade`] and its arguments, which `pickle` and `copy` store.
    fn reduced<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let remade = py.import("autobatch._autobatch")?.getattr("_remade")?;
        let function = PyString::new(py, self.function).into_any();
        Ok((remade, PyTuple::new(py, [&function, self.arguments.bind(py).as_any()])?))
    }
}

/// Calls a function of `autobatch.optim` again.
#[pyfunction(name = "_remade")]
fn remade<'py>(
    py: Python<'py>,
    function: &str,
    arguments: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("autobatch.optim")?.into_any();
    let function = function.split('.').try_fold(module, |of, name| of.getattr(name))?;
    function.call((), Some(arguments))
}

/// An optimiser: a rule such as `ab.optim.Adam(1e-3)` with the options of all rules.
#[pyclass(frozen, name = "Optimizer", module = "autobatch.optim")]
pub(crate) struct PyOptimizer {
    pub(crate) optimizer: Optimizer,
    made_by: Call,
}

/// A schedule of the learning rate: a factor for each update.
#[pyclass(frozen, name = "Schedule", module = "autobatch.optim")]
pub(crate) struct PySchedule {
    schedule: Schedule,
    made_by: Call,
}

impl PySchedule {
    fn made(
        py: Python<'_>,
        schedule: Schedule,
        function: &'static str,
        arguments: &[(&str, Bound<'_, PyAny>)],
    ) -> PyResult<Self> {
        Ok(Self { schedule, made_by: Call::new(py, function, arguments)? })
    }
}

/// The arguments of a call, with their names.
macro_rules! arguments {
    ($py:expr, $($name:ident),*) => { &[$((stringify!($name), $name.into_pyobject($py)?.to_owned().into_any())),*] };
}

#[pymethods]
impl PySchedule {
    /// `gamma^floor(t / every)`
    #[staticmethod]
    fn step(py: Python<'_>, every: u64, gamma: f64) -> PyResult<Self> {
        Self::made(py, Schedule::step(every, gamma), "Schedule.step", arguments!(py, every, gamma))
    }

    /// Half a cosine from 1 to `low`, then constant.
    #[staticmethod]
    #[pyo3(signature = (updates, low = 0.0))]
    fn cosine(py: Python<'_>, updates: u64, low: f64) -> PyResult<Self> {
        Self::made(py, Schedule::cosine(updates, low), "Schedule.cosine", arguments!(py, updates, low))
    }

    /// A straight line from 1 to `low`, then constant.
    #[staticmethod]
    #[pyo3(signature = (updates, low = 0.0))]
    fn linear(py: Python<'_>, updates: u64, low: f64) -> PyResult<Self> {
        Self::made(py, Schedule::linear(updates, low), "Schedule.linear", arguments!(py, updates, low))
    }

    /// Straight lines from `low` up to 1 and back, repeated.
    #[staticmethod]
    fn cyclical(py: Python<'_>, half: u64, low: f64) -> PyResult<Self> {
        Self::made(py, Schedule::cyclical(half, low), "Schedule.cyclical", arguments!(py, half, low))
    }

    /// A warm-up of this many updates, then another schedule.
    #[staticmethod]
    fn warm_up(py: Python<'_>, updates: u64, then: &Bound<'_, Self>) -> PyResult<Self> {
        let schedule = Schedule::warm_up(updates, then.get().schedule.clone());
        Self::made(py, schedule, "Schedule.warm_up", arguments!(py, updates, then))
    }

    /// The factor of an update, from 0.
    fn __call__(&self, update: u64) -> f64 {
        self.schedule.factor(update)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.made_by.shown(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        self.made_by.reduced(py)
    }
}

#[pymethods]
impl PyOptimizer {
    /// The learning rate of an update, from 1.
    #[pyo3(signature = (update = 1))]
    fn learning_rate(&self, update: u64) -> f64 {
        self.optimizer.learning_rate(update)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.made_by.shown(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        self.made_by.reduced(py)
    }
}

/// Reads the options of all rules.
fn with_options(
    py: Python<'_>,
    mut optimizer: Optimizer,
    made_by: Call,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyOptimizer> {
    let arguments = made_by.arguments.bind(py);
    for (name, value) in options.into_iter().flatten() {
        let name: String = name.extract()?;
        if value.is_none() {
            continue;
        }
        optimizer = match &*name {
            "clip_norm" => optimizer.clip_norm(value.extract()?),
            "clip_value" => optimizer.clip_value(value.extract()?),
            "weight_decay" => optimizer.weight_decay(value.extract()?),
            "decoupled_weight_decay" => optimizer.decoupled_weight_decay(value.extract()?),
            "average" => optimizer.average(value.extract()?),
            "sparse_rows" if value.extract()? => optimizer.sparse_rows(),
            "sparse_rows" => optimizer,
            "schedule" => optimizer.schedule(schedule(&value)?),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "no option is called {name:?}; optimisers take clip_norm, clip_value, weight_decay, \
                     decoupled_weight_decay, average, sparse_rows and schedule"
                )));
            }
        };
        arguments.set_item(name, value)?;
    }
    Ok(PyOptimizer { optimizer, made_by })
}

/// Reads a schedule, or a function from the number of an update to a factor.
pub(crate) fn schedule(any: &Bound<'_, PyAny>) -> PyResult<Schedule> {
    if let Ok(schedule) = any.cast::<PySchedule>() {
        return Ok(schedule.get().schedule.clone());
    }
    if !any.is_callable() {
        return Err(PyTypeError::new_err(format!(
            "a schedule is made by ab.optim.Schedule or is a function, found {any:?}"
        )));
    }
    let function = any.clone().unbind();
    // A factor that is NaN is refused by the trainer, which names the update.
    Ok(Schedule::custom(move |update| {
        Python::attach(|py| {
            function.call1(py, (update,)).and_then(|factor| factor.extract(py)).unwrap_or(f64::NAN)
        })
    }))
}

/// A rule with an option, if it is set.
fn if_set<R>(rule: R, set: bool, option: fn(R) -> R) -> R {
    if set { option(rule) } else { rule }
}

/// The functions that make optimisers. A text in brackets shows the arguments where PyO3 cannot show a default.
macro_rules! rules {
    ($($(#[$doc:meta])* $function:ident = $name:literal $([$shown:literal])? ($($arg:ident: $ty:ty $(= $default:tt)?),*) $make:expr;)*) => {
        $($(#[$doc])*
        #[pyfunction]
        #[pyo3(name = $name, signature = ($($arg $(= $default)?,)* **options) $(, text_signature = $shown)?)]
        fn $function(
            py: Python<'_>,
            $($arg: $ty,)*
            options: Option<&Bound<'_, PyDict>>,
        ) -> PyResult<PyOptimizer> {
            let made_by = Call::new(py, $name, arguments!(py, $($arg),*))?;
            with_options(py, $make.into(), made_by, options)
        })*

        pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
            m.add_class::<PyOptimizer>()?;
            m.add_class::<PySchedule>()?;
            m.add_function(wrap_pyfunction!(remade, m)?)?;
            $(m.add_function(wrap_pyfunction!($function, m)?)?;)*
            Ok(())
        }
    };
}

rules! {
    /// Stochastic gradient descent.
    sgd = "Sgd" (lr: f64) Sgd::new(lr);
    /// Gradient descent with momentum.
    momentum = "Momentum" (lr: f64, momentum: f64 = 0.9) Momentum::new(lr, momentum);
    /// Nesterov's momentum.
    nesterov = "Nesterov" (lr: f64, momentum: f64 = 0.9) Nesterov::new(lr, momentum);
    /// Adam.
    adam = "Adam" ["(lr, betas=(0.9, 0.999), eps=1e-8, eps_uncorrected=False, **options)"] (lr: f64, betas: (f64, f64) = (0.9, 0.999), eps: f64 = 1e-8, eps_uncorrected: bool = false)
        if_set(Adam::new(lr).betas(betas.0, betas.1).eps(eps), eps_uncorrected, Adam::eps_uncorrected);
    /// Adam with decoupled weight decay.
    adamw = "AdamW" ["(lr, betas=(0.9, 0.999), eps=1e-8, **options)"] (lr: f64, betas: (f64, f64) = (0.9, 0.999), eps: f64 = 1e-8)
        AdamW::new(lr).betas(betas.0, betas.1).eps(eps);
    /// AMSGrad.
    amsgrad = "AmsGrad" ["(lr, betas=(0.9, 0.999), eps=1e-8, eps_uncorrected=False, **options)"] (lr: f64, betas: (f64, f64) = (0.9, 0.999), eps: f64 = 1e-8, eps_uncorrected: bool = false)
        if_set(AmsGrad::new(lr).betas(betas.0, betas.1).eps(eps), eps_uncorrected, AmsGrad::eps_uncorrected);
    /// Adagrad.
    adagrad = "Adagrad" (lr: f64, eps: f64 = 1e-10, eps_under_root: bool = false)
        if_set(Adagrad::new(lr).eps(eps), eps_under_root, Adagrad::eps_under_root);
    /// Adadelta.
    adadelta = "Adadelta" (lr: f64 = 1.0, rho: f64 = 0.9, eps: f64 = 1e-6) Adadelta::new(lr).rho(rho).eps(eps);
    /// RMSprop.
    rmsprop = "RmsProp" (lr: f64, alpha: f64 = 0.99, eps: f64 = 1e-8, eps_under_root: bool = false)
        if_set(RmsProp::new(lr).alpha(alpha).eps(eps), eps_under_root, RmsProp::eps_under_root);
}
