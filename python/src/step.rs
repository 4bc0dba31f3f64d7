//! `Step`: the report of a step.

use autobatch::train::Step;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::fmt::Write as _;
use std::time::Duration;

/// The report of a step.
#[pyclass(frozen, name = "Step", module = "autobatch")]
pub(crate) struct PyStep {
    pub(crate) step: Step,
}

/// The numbers of a step as `pickle` stores them: the report, the plan, and the seconds of each part.
type Stored = (
    (u64, f32, Vec<f32>, f64, Option<f64>, bool, Vec<(String, Vec<f32>)>),
    (u32, u32),
    (f64, f64, f64, f64, f64),
);

#[pymethods]
impl PyStep {
    /// The number of the step, from 0.
    #[getter]
    fn number(&self) -> u64 {
        self.step.number
    }

    /// The mean loss of the items.
    #[getter]
    fn loss(&self) -> f32 {
        self.step.loss
    }

    /// The loss of each item.
    #[getter]
    fn losses(&self) -> Vec<f32> {
        self.step.losses.clone()
    }

    /// The number of items.
    #[getter]
    fn instances(&self) -> usize {
        self.step.instances()
    }

    /// The sum of the weights of the items, by which the sum of their losses is divided.
    #[getter]
    fn weight(&self) -> f64 {
        self.step.weight
    }

    /// The batches of the forward part of the plan, and their lower bound.
    #[getter]
    fn batches(&self) -> (u32, u32) {
        (self.step.batches, self.step.bound)
    }

    /// The norm of all gradients before clipping; None in a skipped step.
    #[getter]
    fn gradient_norm(&self) -> Option<f64> {
        self.step.gradient_norm
    }

    /// Whether the update was skipped, because a loss or a gradient had a NaN or an infinity.
    #[getter]
    fn skipped(&self) -> bool {
        self.step.skipped
    }

    /// The seconds of planning, executing and updating, and in a group of waiting. Emitting is the caller's.
    #[getter]
    fn seconds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let seconds = PyDict::new(py);
        for (name, time) in self.parts() {
            seconds.set_item(name, time.as_secs_f64())?;
        }
        Ok(seconds)
    }

    /// The elements of a named output.
    fn output(&self, name: &str) -> Option<Vec<f32>> {
        self.step.output(name).map(<[f32]>::to_vec)
    }

    /// The report as a dict of numbers, as logs of training take it: without the losses of single items and the outputs.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Step { number, loss, weight, gradient_norm, skipped, batches, bound, .. } = &self.step;
        let metrics = PyDict::new(py);
        metrics.set_item("step", number)?;
        metrics.set_item("loss", loss)?;
        metrics.set_item("instances", self.step.instances())?;
        metrics.set_item("weight", weight)?;
        if let Some(norm) = gradient_norm {
            metrics.set_item("gradient_norm", norm)?;
        }
        metrics.set_item("skipped", skipped)?;
        metrics.set_item("batches", batches)?;
        metrics.set_item("least_batches", bound)?;
        for (name, time) in self.parts() {
            metrics.set_item(format!("{name}_seconds"), time.as_secs_f64())?;
        }
        Ok(metrics)
    }

    fn __repr__(&self) -> String {
        self.step.to_string()
    }

    fn _repr_html_(&self) -> String {
        let Step { number, loss, batches, bound, gradient_norm, skipped, .. } = &self.step;
        let mut html = format!(
            "<div style=\"font:13px sans-serif\">step {number}: <b>loss {loss:.4}</b> over {} items, {batches} forward batches \
             (at least {bound})",
            self.step.instances()
        );
        match gradient_norm {
            Some(norm) => drop(write!(html, ", gradient norm {norm:.3}")),
            None if *skipped => html.push_str(", <b>skipped</b>: a loss or a gradient was not finite"),
            None => {}
        }
        let parts = self.parts();
        let whole = parts.iter().map(|(_, time)| time.as_secs_f64()).sum::<f64>().max(f64::MIN_POSITIVE);
        html.push_str("<div style=\"display:flex;width:480px;margin-top:4px\">");
        for (name, time) in &parts {
            let colour = match *name {
                "plan" => "#b8a1d9",
                "execute" => "#7fb2e5",
                "wait" => "#d0d0d0",
                _ => "#8fc99b",
            };
            let share = 100.0 * time.as_secs_f64() / whole;
            let milliseconds = 1e3 * time.as_secs_f64();
            let _ = write!(
                html,
                "<div style=\"width:{share:.1}%;background:{colour};color:#000;overflow:hidden;white-space:nowrap;\
                 text-overflow:ellipsis;padding:2px 0\" title=\"{name}: {milliseconds:.2} ms\">&nbsp;{name} {milliseconds:.2} ms</div>"
            );
        }
        html.push_str("</div></div>");
        html
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let Step { number, loss, losses, weight, gradient_norm, skipped, outputs, batches, bound, .. } =
            self.step.clone();
        let [emit, plan, execute, update, wait] = self.step.times().map(|(_, time)| time.as_secs_f64());
        let stored: Stored = (
            (number, loss, losses, weight, gradient_norm, skipped, outputs),
            (batches, bound),
            (emit, plan, execute, update, wait),
        );
        let restored = py.get_type::<Self>().getattr("_restored")?;
        Ok((restored, (stored,).into_pyobject(py)?))
    }

    /// The step of these numbers.
    #[staticmethod]
    fn _restored(stored: Stored) -> Self {
        let (report, batches, times) = stored;
        let seconds = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let mut step = Step::default();
        let Step { number, loss, losses, weight, gradient_norm, skipped, outputs, .. } = &mut step;
        (*number, *loss, *losses, *weight, *gradient_norm, *skipped, *outputs) = report;
        (step.batches, step.bound) = batches;
        (step.emit, step.plan, step.execute) = (seconds(times.0), seconds(times.1), seconds(times.2));
        (step.update, step.wait) = (seconds(times.3), seconds(times.4));
        Self { step }
    }
}

impl PyStep {
    /// The parts of the step with their times. A step of one process does not wait.
    fn parts(&self) -> Vec<(&'static str, Duration)> {
        let Step { plan, execute, wait, update, .. } = self.step;
        let mut parts = vec![("plan", plan), ("execute", execute), ("wait", wait), ("update", update)];
        parts.retain(|(name, time)| *name != "wait" || !time.is_zero());
        parts
    }
}
