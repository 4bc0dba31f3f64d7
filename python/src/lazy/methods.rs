//! The methods and attributes of a recorded tensor.

use super::ops::{self, Named};
use super::tensor::Kind;
use super::{Lazy, SlotState};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use smallvec::SmallVec;

impl Lazy {
    /// Records a method, or calls it on the computed tensor if the block has ended.
    fn method<'py>(
        slf: &Bound<'py, Self>,
        op: Named,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let block = &slf.get().slot.block;
        if block.is_open() {
            return block.call(op, None, args, kwargs);
        }
        let own = slf.get().computed(slf.py())?;
        let rest = args.get_slice(1, args.len());
        own.bind(slf.py()).getattr(op.name())?.call(rest, kwargs)
    }

    /// Calls a method with the arguments behind the tensor itself.
    fn with_arguments<'py>(
        slf: &Bound<'py, Self>,
        op: Named,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut all = SmallVec::<[Bound<'py, PyAny>; 6]>::with_capacity(args.len() + 1);
        all.push(slf.clone().into_any());
        all.extend(args.iter());
        Self::method(slf, op, &PyTuple::new(slf.py(), all)?, kwargs)
    }

    pub(super) fn unary<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        Self::method(slf, ops::named(name)?, &PyTuple::new(slf.py(), [slf])?, None)
    }

    pub(super) fn binary<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::method(slf, ops::named(name)?, &PyTuple::new(slf.py(), [slf.as_any(), other])?, None)
    }

    pub(super) fn reversed<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args = PyTuple::new(slf.py(), [other, slf.as_any()])?;
        let block = &slf.get().slot.block;
        if block.is_open() {
            return block.call(ops::named(name)?, None, &args, None);
        }
        let own = slf.get().computed(slf.py())?;
        slf.py().import("operator")?.getattr(name)?.call1((other, own))
    }

    /// The extents, without computing.
    fn dims(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        match &*self.slot.state.lock() {
            SlotState::Pending(tensor) => Ok(tensor.dims.to_vec()),
            SlotState::Computed(tensor) => Ok(super::tensor::extents(tensor.bind(py))?.to_vec()),
            SlotState::Index(index) => Ok(index.dims().to_vec()),
            SlotState::Lost => Err(super::slot::lost()),
        }
    }
}

/// A method of a recorded tensor that waits for its arguments.
#[pyclass(frozen, module = "autobatch.torch")]
struct Method {
    own: Py<Lazy>,
    op: Named,
}

#[pymethods]
impl Method {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Lazy::with_arguments(self.own.bind(args.py()), self.op, args, kwargs)
    }
}

/// Declares methods of ops that models call often, so that Python finds them without `__getattr__`.
macro_rules! methods {
    ($($name:ident),*) => {
        #[pymethods]
        impl Lazy {
            $(#[pyo3(signature = (*args, **kwargs))]
            fn $name<'py>(
                slf: &Bound<'py, Self>,
                args: &Bound<'py, PyTuple>,
                kwargs: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                Self::with_arguments(slf, ops::named(stringify!($name))?, args, kwargs)
            })*
        }
    };
}

methods!(
    tanh, sigmoid, relu, exp, log, chunk, split, view, reshape, squeeze, unsqueeze, transpose, t, sum, mean,
    softmax, matmul, mul, add
);

#[pymethods]
impl Lazy {
    /// `isinstance(x, torch.Tensor)` holds in the block, where torch passes every call to the recorder. Elsewhere torch's
    /// native code would read the memory of what it takes for a tensor.
    #[getter(__class__)]
    fn class<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyAny> {
        let (py, own) = (slf.py(), slf.get());
        let block = &own.slot.block;
        let is_here = block.is_open() && block.thread == std::thread::current().id();
        match is_here && block.torch.stands_in && own.stand_in.is_first_in(slf) {
            true => block.torch.tensor.bind(py).clone(),
            false => py.get_type::<Self>().into_any(),
        }
    }

    /// A function of torch outside of the block, or one that reads elements.
    #[classmethod]
    #[pyo3(signature = (function, _types, args, kwargs = None))]
    fn __torch_function__<'py>(
        _class: &Bound<'py, PyType>,
        function: &Bound<'py, PyAny>,
        _types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        super::eager::call(function, args, kwargs)
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dims = PyTuple::new(py, self.dims(py)?)?;
        self.slot.block.torch.size.bind(py).call1((dims,))
    }

    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.dims(py)?.len())
    }

    fn dim(&self, py: Python<'_>) -> PyResult<usize> {
        self.ndim(py)
    }

    fn nelement(&self, py: Python<'_>) -> PyResult<usize> {
        self.numel(py)
    }

    fn numel(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(super::dims::elements(&self.dims(py)?))
    }

    #[pyo3(signature = (dim = None))]
    fn size<'py>(&self, py: Python<'py>, dim: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.shape(py)?;
        match dim {
            None => Ok(shape),
            Some(dim) => shape.get_item(dim),
        }
    }

    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let torch = &self.slot.block.torch;
        match self.pending().map(|tensor| tensor.kind) {
            Some(Kind::Float) => Ok(torch.float32.bind(py).clone()),
            Some(Kind::Int) => Ok(torch.int64.bind(py).clone()),
            Some(Kind::Bool) => Ok(torch.bool.bind(py).clone()),
            None => self.computed(py)?.bind(py).getattr("dtype"),
        }
    }

    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import(intern!(py, "torch"))?.getattr("device")?.call1(("cpu",))
    }

    #[getter]
    fn requires_grad(&self, py: Python<'_>) -> PyResult<bool> {
        match self.pending() {
            Some(tensor) => Ok(tensor.grad),
            None => self.computed(py)?.bind(py).getattr("requires_grad")?.is_truthy(),
        }
    }

    #[getter]
    fn is_nested(&self) -> bool {
        false
    }

    #[getter]
    fn is_sparse(&self) -> bool {
        false
    }

    fn is_floating_point(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.dtype(py)?.is(self.slot.block.torch.float32.bind(py)))
    }

    fn is_contiguous(&self) -> bool {
        true
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let first = self.dims(py)?.first().copied();
        first.map(|first| first as usize).ok_or_else(|| PyTypeError::new_err("len() of a 0-d tensor"))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().dims(slf.py())?.is_empty() {
            return Err(PyTypeError::new_err("iteration over a 0-d tensor"));
        }
        Self::unary(slf, "unbind")?.try_iter().map(Bound::into_any)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::binary(slf, "__getitem__", index)
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let own = slf.get();
        if own.slot.block.is_open() && own.pending().is_some() {
            let why = "a part of a recorded tensor changes in place; build it with torch.where, torch.cat or torch.stack";
            return Err(own.slot.block.error(slf.py(), "__setitem__", why));
        }
        own.computed(slf.py())?.bind(slf.py()).set_item(index, value)
    }

    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize >> 4
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.computed(py)?.bind(py).is_truthy()
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        self.computed(py)?.bind(py).call_method0("item")?.extract()
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.computed(py)?.bind(py).call_method0("__int__")
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.computed(py)?.bind(py).call_method0("__index__")
    }

    /// numpy reads the computed elements.
    #[pyo3(signature = (*args, **kwargs))]
    fn __array__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.computed(args.py())?.bind(args.py()).call_method("__array__", args, kwargs)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.computed(py)?.bind(py).repr()?.extract()
    }

    fn __format__<'py>(&self, py: Python<'py>, form: &str) -> PyResult<Bound<'py, PyAny>> {
        self.computed(py)?.bind(py).call_method1("__format__", (form,))
    }

    #[pyo3(signature = (_memo))]
    fn __deepcopy__<'py>(&self, py: Python<'py>, _memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.computed(py)?.bind(py).call_method0("clone")
    }

    fn __reduce_ex__<'py>(&self, py: Python<'py>, protocol: i32) -> PyResult<Bound<'py, PyAny>> {
        self.computed(py)?.bind(py).call_method1("__reduce_ex__", (protocol,))
    }

    /// The ops by name; everything else is an attribute of the computed tensor.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        let waits = own.slot.block.is_open() && own.pending().is_some();
        if let Some(op) = ops::find(name).filter(|_| own.slot.block.is_open()) {
            if op.op.is_attribute {
                return Self::method(slf, op, &PyTuple::new(py, [slf])?, None);
            }
            return Bound::new(py, Method { own: slf.clone().unbind(), op }).map(Bound::into_any);
        }
        let tensor = own.slot.block.torch.tensor.bind(py);
        // Protocols ask for many names. A recorded tensor has those of torch's tensors.
        if !tensor.hasattr(name)? || name.starts_with("__") && name.ends_with("__") {
            return Err(PyAttributeError::new_err(format!("'Tensor' object has no attribute '{name}'")));
        }
        if waits && !own.slot.block.eager && !ops::READS.contains(&name) {
            return Err(own.slot.block.error(py, name, "the engine has no counterpart of this op"));
        }
        own.computed(py)?.bind(py).getattr(name)
    }
}
