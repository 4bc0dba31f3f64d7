//! `Type`: an element type and a shape, spelled `ab.f32[8]` in Python.

use autobatch::ir::types::{DType, INDEX, Type, list};
use autobatch::ir::{Shape, types};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A type of values: `f32[8]`, `f32[2, 3]`, `f32` (one number), `index`, `list_of(f32[8])`.
#[pyclass(frozen, eq, hash, name = "Type", module = "autobatch")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PyType {
    pub(crate) ty: Type,
}

#[pymethods]
impl PyType {
    /// The type with this spelling, such as `Type("f32[8]")` or `Type("list f32[8]")`.
    #[new]
    fn new(spelling: &str) -> PyResult<Self> {
        let ty = spelling
            .parse()
            .map_err(|reason| PyValueError::new_err(format!("{spelling:?} is no type: {reason}")))?;
        Ok(Self { ty })
    }

    fn __getnewargs__(&self) -> (String,) {
        (self.ty.to_string(),)
    }

    /// The type with this shape.
    fn __getitem__(&self, dims: &Bound<'_, PyAny>) -> PyResult<Self> {
        if self.ty.is_list {
            return Err(PyTypeError::new_err(format!(
                "{} is a list; give the shape of its elements first",
                self.ty
            )));
        }
        Ok(Self { ty: self.ty.with_shape(shape(dims)?) })
    }

    /// The extents of one value.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.ty.shape.dims())
    }

    /// The name of the element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.ty.dtype.spelling()
    }

    /// Whether this is the type of lists of values.
    #[getter]
    fn is_list(&self) -> bool {
        self.ty.is_list
    }

    fn __repr__(&self) -> String {
        self.ty.to_string()
    }
}

/// The type of lists of values of a type.
#[pyfunction]
fn list_of(element: &PyType) -> PyResult<PyType> {
    if element.ty.is_list {
        return Err(PyTypeError::new_err("a list of lists has no type; list the values directly"));
    }
    Ok(PyType { ty: list(element.ty) })
}

/// Reads a shape: an int or a sequence of ints.
pub(crate) fn shape(dims: &Bound<'_, PyAny>) -> PyResult<Shape> {
    let dims: Vec<u32> = match dims.extract::<u32>() {
        Ok(one) => vec![one],
        Err(_) => dims.extract().map_err(|_| {
            PyTypeError::new_err(format!("a shape is an int or a sequence of ints from 1 up, found {dims:?}"))
        })?,
    };
    Shape::new(&dims).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Reads an element type by its name.
pub(crate) fn dtype(word: &str) -> PyResult<DType> {
    DType::from_spelling(word).ok_or_else(|| {
        let known: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.spelling()).collect();
        PyValueError::new_err(format!(
            "no element type is called {word:?}; choose one of {}",
            known.join(", ")
        ))
    })
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyType>()?;
    m.add_function(wrap_pyfunction!(list_of, m)?)?;
    m.add("f32", PyType { ty: types::f32([]) })?;
    m.add("i32", PyType { ty: Type::scalar(DType::I32) })?;
    m.add("u32", PyType { ty: Type::scalar(DType::U32) })?;
    m.add("bool_", PyType { ty: Type::scalar(DType::Bool) })?;
    m.add("index", PyType { ty: INDEX })
}
