//! The steps of a trainer over items, weighted, in parts or as tasks, and what it trains.

use crate::error::raised;
use crate::graph::{Current, Shared};
use crate::session::{Emitted, new_graph, released, values_of};
use crate::step::PyStep;
use crate::tasks::{Task, rounds};
use crate::train::PyTrainer;
use crate::weights::{extents, weights_dict};
use autobatch::ir::graph::{Value, ValueKey};
use autobatch::sampling::{Sampling, balanced};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// Reads the weight of each item: from a function of an item, or from a sequence of numbers.
fn weights_of(items: &[Bound<'_, PyAny>], weights: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    if weights.is_callable() {
        return items.iter().map(|item| weights.call1((item,))?.extract()).collect();
    }
    let weights: Vec<f64> = weights.extract().map_err(|_| {
        PyTypeError::new_err(
            "weights are a number for each item, or a function that returns the weight of an item",
        )
    })?;
    match weights.len() == items.len() {
        true => Ok(weights),
        false => Err(PyValueError::new_err(format!(
            "expected a weight for each of the {} items, found {}",
            items.len(),
            weights.len()
        ))),
    }
}

impl PyTrainer {
    /// Makes one step on the losses of an emitted graph.
    fn step_on(&self, py: Python<'_>, graph: &Arc<Shared>, losses: &[ValueKey]) -> PyResult<PyStep> {
        let mut trainer = self.lock()?;
        let step = graph.read(|graph| {
            let losses: Vec<_> = losses.iter().filter_map(|&key| graph.value(key)).collect();
            released(py, || trainer.step_graph(graph, losses)).map_err(raised)
        })?;
        Ok(PyStep { step })
    }

    /// Makes one step whose shards the processes of a group divide. An error of this process is one of all.
    fn step_in_shards(
        &self,
        py: Python<'_>,
        items: &[Bound<'_, PyAny>],
        weights: &[f64],
        together: usize,
        loss: &Bound<'_, PyAny>,
    ) -> PyResult<PyStep> {
        let weights: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
        let mut trainer = self.lock()?;
        let mut step = trainer.begin_shards(&weights, together).map_err(raised)?;
        while let Some(own) = step.items() {
            let first = own.start as u64;
            let part = PyList::new(py, &items[own])?;
            let emitted = Emitted::of_part(new_graph(&self.module, None), &part, first, loss)?;
            emitted.graph.read(|graph| {
                let losses: Vec<_> = emitted.keys.iter().filter_map(|&key| graph.value(key)).collect();
                released(py, || step.part(graph, losses)).map_err(raised)
            })?;
        }
        Ok(PyStep { step: released(py, || step.finish()).map_err(raised)? })
    }
}

#[pymethods]
impl PyTrainer {
    /// Makes one step: calls `loss` for every item, and trains on the mean of the returned losses. With `weights`, a number for each
    /// item or a function of an item, the loss of the minibatch is the sum of the losses divided by the sum of the weights: with the sum
    /// over the tokens of a sentence as its loss and their number as its weight, it is the mean over all tokens. At most
    /// `together` items execute at once, for minibatches that do not fit in memory; there is one update in any case.
    #[pyo3(signature = (items, loss, *, weights = None, together = None))]
    fn step(
        &self,
        items: &Bound<'_, PyAny>,
        loss: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
        together: Option<usize>,
    ) -> PyResult<PyStep> {
        let py = items.py();
        if weights.is_none() && together.is_none() && !self.in_shards {
            let emitted = Emitted::of(new_graph(&self.module, None), items, loss)?;
            return self.step_on(py, &emitted.graph, &emitted.keys);
        }
        let items = items.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let weights = weights.map(|weights| weights_of(&items, weights)).transpose()?;
        let weights = weights.unwrap_or_else(|| vec![1.0; items.len()]);
        let together = together.unwrap_or(items.len()).max(1);
        if self.in_shards {
            return self.step_in_shards(py, &items, &weights, together, loss);
        }
        let mut trainer = self.lock()?;
        let mut step = trainer.begin_step(weights.iter().sum()).map_err(raised)?;
        let firsts = (0..).step_by(together);
        for ((items, weights), first) in items.chunks(together).zip(weights.chunks(together)).zip(firsts) {
            let items = PyList::new(py, items)?;
            let emitted = Emitted::of_part(new_graph(&self.module, None), &items, first, loss)?;
            emitted.graph.read(|graph| {
                let losses: Vec<_> = emitted.keys.iter().filter_map(|&key| graph.value(key)).collect();
                released(py, || step.part(graph, losses, weights.iter().sum())).map_err(raised)
            })?;
        }
        Ok(PyStep { step: released(py, || step.finish()).map_err(raised)? })
    }

    /// Makes one step on a loss that `loss()` emits as a whole.
    fn step_graph(&self, loss: &Bound<'_, PyAny>) -> PyResult<PyStep> {
        let graph = new_graph(&self.module, None);
        let mut losses = Vec::new();
        {
            let _current = Current::new(&graph);
            values_of(&loss.call0()?, &graph, &mut losses)?;
        }
        self.step_on(loss.py(), &graph, &losses)
    }

    /// Makes one step over items whose course depends on computed values: `loss` is an `async` function that may await values, and
    /// returns the loss of its item. The values have the noise of this step.
    fn step_tasks(&self, items: &Bound<'_, PyAny>, loss: &Bound<'_, PyAny>) -> PyResult<PyStep> {
        let py = items.py();
        let graph = new_graph(&self.module, None);
        let _current = Current::new(&graph);
        let mut tasks = Task::all(items, loss)?;
        {
            let mut trainer = self.lock()?;
            graph.read(|graph| rounds(py, graph, &mut trainer.growing(graph), &mut tasks))?;
        }
        let mut losses = Vec::new();
        for result in tasks.into_iter().filter_map(|task| task.result) {
            values_of(result.bind(py), &graph, &mut losses)?;
        }
        self.step_on(py, &graph, &losses)
    }

    /// The gradients of the mean of the losses that `loss` returns, for each parameter, as a dict of arrays. It draws no noise, and
    /// updates nothing.
    fn gradients<'py>(
        &self,
        items: &Bound<'py, PyAny>,
        loss: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = items.py();
        let emitted = Emitted::of(new_graph(&self.module, None), items, loss)?;
        let mut trainer = self.lock()?;
        let gradients = emitted.graph.read(|graph| {
            let losses: Vec<Value<'_>> = emitted.keys.iter().filter_map(|&key| graph.value(key)).collect();
            if losses.is_empty() {
                return Err(PyValueError::new_err("gradients of no items; pass at least one"));
            }
            graph.common();
            let mean = graph.list(losses).mean();
            released(py, || trainer.session().gradients(graph, mean, [mean; 0])).map_err(raised)
        })?;
        let arrays = PyDict::new(py);
        for (param, (name, elements)) in self.module.params.iter().zip(gradients.iter()) {
            arrays.set_item(name, PyArray1::from_slice(py, elements).reshape(extents(param.ty.shape))?)?;
        }
        Ok(arrays)
    }

    /// Freezes a parameter, or all parameters of a layer, by name: they keep their values and cost no gradient. The optimiser starts
    /// anew.
    fn freeze(&self, name: &str) -> PyResult<()> {
        self.lock()?.freeze(name).map_err(raised)
    }

    /// Trains a frozen parameter or layer again. The optimiser starts anew.
    fn unfreeze(&self, name: &str) -> PyResult<()> {
        self.lock()?.unfreeze(name).map_err(raised)
    }

    /// Trains the parameters whose names `chosen` accepts, and freezes all others. The optimiser starts anew.
    fn train_only(&self, chosen: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut trained = Vec::with_capacity(self.module.params.len());
        for param in &self.module.params {
            trained.push((param.name.clone(), chosen.call1((&param.name,))?.is_truthy()?));
        }
        let is_trained = |name: &str| trained.iter().any(|(known, trained)| known == name && *trained);
        self.lock()?.train_only(|param| is_trained(&param.name)).map_err(raised)
    }

    /// The moving averages of the parameters as a dict of arrays, if the optimiser keeps them. They are often better to evaluate.
    fn averages<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let averages = self.lock()?.averages().map_err(raised)?;
        averages.map(|averages| weights_dict(py, &averages)).transpose()
    }

    /// Looks for the first NaN or infinity of each step: a step that makes one is an error that names the op. It reads every result
    /// once more.
    fn set_watch(&self, watch: bool) -> PyResult<()> {
        self.lock()?.session().set_watch(watch);
        Ok(())
    }

    /// Writes a text into the next checkpoints, such as the vocabulary of a model.
    fn set_note(&self, name: &str, text: &str) -> PyResult<()> {
        self.lock()?.set_note(name, text);
        Ok(())
    }

    /// A text of the checkpoint that `load` read, or of `set_note`.
    fn note(&self, name: &str) -> PyResult<Option<String>> {
        Ok(self.lock()?.note(name).map(str::to_owned))
    }
}

/// Minibatches of positions: the items `0..len(sizes)`, sorted by their sizes so that those of a minibatch are similar, in random order
/// where a seed is given.
#[pyfunction]
#[pyo3(signature = (sizes, batch_size, seed = None))]
fn batches_of(sizes: Vec<u64>, batch_size: usize, seed: Option<u64>) -> Vec<Vec<usize>> {
    let positions: Vec<usize> = (0..sizes.len()).collect();
    let order = seed.map_or_else(|| positions.in_order(), |seed| Sampling::shuffled(&positions[..], seed));
    let batches = order.bucket_by(|&position| sizes[position]).batches(batch_size);
    let batches = match seed {
        Some(seed) => batches.shuffled_batches(seed),
        None => batches,
    };
    batches.map(|batch| batch.into_iter().copied().collect()).collect()
}

/// The positions of costs in an order such that consecutive shards of them have nearly equal sums.
#[pyfunction]
fn balanced_order(costs: Vec<u64>, shards: usize) -> Vec<usize> {
    balanced((0..costs.len()).collect(), shards, |&position: &usize| costs[position])
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(batches_of, m)?)?;
    m.add_function(wrap_pyfunction!(balanced_order, m)?)
}
