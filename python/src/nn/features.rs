//! Layers over single vectors, over characters and over lattices of words.

use super::{activation, one, tuple, unary};
use crate::graph::wrap;
use crate::module::{PyModule_, init};
use crate::value::{Many, PyValue};
use autobatch::ir::graph::Value;
use autobatch::nn::{Bilinear, CharCnn, GroupNorm, LatticeLstm, LatticeWord, PRelu};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Each output is a bilinear form of two vectors, plus a bias.
#[pyclass(frozen, name = "Bilinear", module = "autobatch.nn")]
struct PyBilinear {
    layer: Bilinear,
}

#[pymethods]
impl PyBilinear {
    /// Declares the layer for vectors of these two widths.
    #[new]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        lefts: usize,
        rights: usize,
        outputs: usize,
    ) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(Bilinear::new(m, name, [lefts, rights], outputs)))? })
    }

    /// The outputs for two vectors.
    fn __call__(&self, py: Python<'_>, left: &PyValue, right: &PyValue) -> PyResult<PyValue> {
        let graph = left.owner();
        graph.emit(py, |g| wrap(graph, self.layer.on(left.get(g)?, right.get(g)?)))
    }
}

/// `relu` with a learned slope below zero.
#[pyclass(frozen, name = "PReLU", module = "autobatch.nn")]
struct PyPRelu {
    layer: PRelu,
}

#[pymethods]
impl PyPRelu {
    /// Declares `name.slope`: one slope, or one for each of this number of elements.
    #[new]
    #[pyo3(signature = (module, name, slopes = 1))]
    fn new(py: Python<'_>, module: &PyModule_, name: &str, slopes: usize) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(PRelu::new(m, name, slopes)))? })
    }

    /// The elements, those below zero times their slope.
    fn __call__(&self, py: Python<'_>, x: &PyValue) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.on(x))
    }
}

/// Normalisation over groups of channels.
#[pyclass(frozen, name = "GroupNorm", module = "autobatch.nn")]
struct PyGroupNorm {
    layer: GroupNorm,
}

#[pymethods]
impl PyGroupNorm {
    /// Declares a gain and a bias for each channel; `groups` must divide `channels`.
    #[new]
    fn new(py: Python<'_>, module: &PyModule_, name: &str, groups: usize, channels: usize) -> PyResult<Self> {
        Ok(Self { layer: module.declare(py, |m| Ok(GroupNorm::new(m, name, groups, channels)))? })
    }

    /// The normalised channels; the outermost axis of `x` is that of the channels.
    fn __call__(&self, py: Python<'_>, x: &PyValue) -> PyResult<PyValue> {
        unary(x, py, |x| self.layer.on(x))
    }
}

/// A convolution over characters with the maximum over positions: a vector of a word of any length.
#[pyclass(frozen, name = "CharCNN", module = "autobatch.nn")]
struct PyCharCnn {
    layer: CharCnn,
}

#[pymethods]
impl PyCharCnn {
    /// Declares filters over windows of `window` characters, whose vectors have width `input`.
    #[new]
    #[pyo3(signature = (module, name, input, window, filters, activation = "relu"))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        input: usize,
        window: usize,
        filters: usize,
        activation: &str,
    ) -> PyResult<Self> {
        let activation = self::activation(activation)?;
        let declare = |m: &mut _| Ok(CharCnn::new(m, name, input, window, filters, activation));
        Ok(Self { layer: module.declare(py, declare)? })
    }

    /// The features of a word, given the vectors of its characters; zeros without characters.
    fn __call__(&self, chars: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        one(chars, |g, chars| self.layer.on(g, chars))
    }
}

/// The lattice LSTM: a character also reads the words that end at it.
#[pyclass(frozen, name = "LatticeLSTM", module = "autobatch.nn")]
struct PyLatticeLstm {
    layer: LatticeLstm,
}

#[pymethods]
impl PyLatticeLstm {
    /// Declares the layer for vectors of characters and of words of these widths.
    #[new]
    #[pyo3(signature = (module, name, chars, words, width, *, init = None))]
    fn new(
        py: Python<'_>,
        module: &PyModule_,
        name: &str,
        chars: usize,
        words: usize,
        width: usize,
        init: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let init = self::init(init)?;
        let declare = |m: &mut _| Ok(LatticeLstm::with_options(m, name, chars, words, width, &init));
        Ok(Self { layer: module.declare(py, declare)? })
    }

    /// The states `(h, c)` after each character. `words` are triples `(first, last, vector)`: the positions of the first and the
    /// last character of a word, and its vector.
    fn run<'py>(
        &self,
        chars: &Bound<'py, PyAny>,
        words: Vec<(usize, usize, Py<PyValue>)>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, chars) = (chars.py(), Many::of(chars)?);
        let states = chars.graph.emit(py, |g| {
            let word = |(first, last, x): &(usize, usize, Py<PyValue>)| {
                Ok(LatticeWord { first: *first, last: *last, x: x.get().get(g)? })
            };
            let words = words.iter().map(word).collect::<PyResult<Vec<_>>>()?;
            let states = self.layer.run(g, &chars.get(g)?, &words);
            Ok(states.into_iter().map(|state| state.map(Value::key)).collect::<Vec<_>>())
        })?;
        let states = states.iter().map(|state| tuple(py, &chars.graph, state));
        PyList::new(py, states.collect::<PyResult<Vec<Bound<'py, PyTuple>>>>()?)
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyBilinear>()?;
    m.add_class::<PyPRelu>()?;
    m.add_class::<PyGroupNorm>()?;
    m.add_class::<PyCharCnn>()?;
    m.add_class::<PyLatticeLstm>()
}
