//! The arguments and results of a call of a method, as far as its cell depends on them.

use crate::lazy::dims::{Dims, elements, shape_of};
use crate::lazy::tensor::{Elements, Form, Kind, Tensor, elements_of, extents};
use crate::lazy::{Block, Fail, Lazy, Made, Recording, Slot};
use autobatch::ir::Type;
use autobatch::ir::graph::{Arg, ValueKey};
use autobatch::ir::types::{DType, INDEX};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, intern};
use smallvec::SmallVec;
use std::sync::Arc;

/// The numbers and words among the arguments of a call.
const MAX_LITERALS: usize = 16;

/// The traits of a call that its cell depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    /// Whether gradients are recorded.
    pub(super) enabled: bool,
    pub(super) args: Vec<(Option<String>, Argument)>,
}

/// The traits of one argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Argument {
    Tensor(Traits),
    None,
    Bool(bool),
    Int(i64),
    /// By its bits.
    Float(u64),
    Word(String),
    Tuple(Vec<Argument>),
}

/// A tensor without its elements.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Traits {
    dims: Dims,
    kind: Kind,
    grad: bool,
    stopped: bool,
}

impl Traits {
    pub(super) fn of(tensor: &Tensor) -> Self {
        Self { dims: tensor.dims.clone(), kind: tensor.kind, grad: tensor.grad, stopped: tensor.stopped }
    }

    pub(super) fn tensor(&self, form: Form) -> Tensor {
        Tensor { dims: self.dims.clone(), kind: self.kind, grad: self.grad, stopped: self.stopped, form }
    }

    /// The traits of an index.
    fn index(dims: Dims) -> Self {
        Self { dims, kind: Kind::Int, grad: false, stopped: false }
    }

    /// The type of the engine's value.
    fn ty(&self) -> Made<Type> {
        match self.kind {
            Kind::Float => Ok(Type::new(DType::F32, shape_of(&self.dims)?)),
            Kind::Int => Ok(INDEX),
            Kind::Bool => Err(Fail::refused("truth values as an argument")),
        }
    }
}

/// The objects that a call returns.
pub(super) enum Results {
    /// The result of the cell at a place.
    Tensor(usize, Traits),
    Tuple(Vec<Results>),
    List(Vec<Results>),
    /// None, a number or a word.
    Object(Py<PyAny>),
}

/// The arguments of a call, as they are read.
#[derive(Default)]
pub(super) struct Given<'g> {
    /// The arguments of the cell.
    pub(super) values: SmallVec<[Arg<'g>; 8]>,
    /// The addresses of the tensors among them.
    tensors: SmallVec<[usize; 8]>,
    literals: usize,
    /// Whether an int stands for a tensor with one element.
    indices: bool,
}

impl Given<'_> {
    /// None yet. `indices` says whether ints stand for tensors with one element.
    pub(super) fn new(indices: bool) -> Self {
        Self { indices, ..Self::default() }
    }
}

impl<'g> Recording<'_, 'g> {
    /// Reads an argument of a call; `None` if no cell can take it.
    pub(super) fn argument(
        &mut self,
        any: &Bound<'_, PyAny>,
        given: &mut Given<'g>,
    ) -> Made<Option<Argument>> {
        if let Ok(tuple) = any.cast_exact::<PyTuple>() {
            let items = tuple.iter().map(|item| self.argument(&item, given));
            let items = items.collect::<Made<Option<Vec<_>>>>()?;
            return Ok(items.map(Argument::Tuple));
        }
        if given.indices && any.is_exact_instance_of::<PyInt>() {
            let Ok(index) = any.extract::<u32>() else { return Ok(None) };
            given.values.push(Arg::Index(index));
            return Ok(Some(Argument::Tensor(Traits::index(Dims::from_slice(&[1])))));
        }
        let lazy = any.cast_exact::<Lazy>().ok();
        let known = lazy.and_then(|lazy| lazy.get().index()).and_then(|index| u32::try_from(index).ok());
        if let Some(index) = known
            && !given.tensors.contains(&(any.as_ptr() as usize))
        {
            given.tensors.push(any.as_ptr() as usize);
            given.values.push(Arg::Index(index));
            return Ok(Some(Argument::Tensor(Traits::index(Dims::from_slice(&[1])))));
        }
        if lazy.is_none() && !any.is_instance(self.torch.tensor.bind(self.py))? {
            given.literals += 1;
            return Ok(if given.literals > MAX_LITERALS { None } else { literal(any)? });
        }
        // Code can ask whether two arguments are one object.
        let address = any.as_ptr() as usize;
        if given.tensors.contains(&address) {
            return Ok(None);
        }
        given.tensors.push(address);
        let computed = match lazy {
            Some(lazy) if lazy.get().pending_in(self.block)?.is_none() => Some(lazy.get().computed(self.py)?),
            _ => None,
        };
        let any = computed.as_ref().map_or(any, |computed| computed.bind(self.py));
        if !any.is_exact_instance_of::<Lazy>() {
            let _unwatched = self.torch.unwatched(self.py)?;
            let dtype = any.getattr(intern!(self.py, "dtype"))?;
            if dtype.is(self.torch.int64.bind(self.py)) {
                let Elements::Ints(ints) = elements_of(self.torch, any)? else { return Ok(None) };
                let &[index] = &ints[..] else { return Ok(None) };
                let Ok(index) = u32::try_from(index) else { return Ok(None) };
                given.values.push(Arg::Index(index));
                return Ok(Some(Argument::Tensor(Traits::index(extents(any)?))));
            }
            if !dtype.is(self.torch.float32.bind(self.py)) {
                return Ok(None);
            }
        }
        let tensor = self.tensor(any)?;
        let Form::Whole(key) = tensor.form else { return Ok(None) };
        if tensor.kind == Kind::Bool || tensor.kind == Kind::Int && elements(&tensor.dims) != 1 {
            return Ok(None);
        }
        given.values.push(self.value(key).into());
        Ok(Some(Argument::Tensor(Traits::of(&tensor))))
    }
}

/// A number, word or None.
pub(super) fn literal(any: &Bound<'_, PyAny>) -> PyResult<Option<Argument>> {
    Ok(if any.is_none() {
        Some(Argument::None)
    } else if any.is_exact_instance_of::<PyBool>() {
        Some(Argument::Bool(any.is_truthy()?))
    } else if any.is_exact_instance_of::<PyInt>() {
        any.extract().ok().map(Argument::Int)
    } else if any.is_exact_instance_of::<PyFloat>() {
        Some(Argument::Float(any.extract::<f64>()?.to_bits()))
    } else if any.is_exact_instance_of::<PyString>() {
        Some(Argument::Word(any.extract()?))
    } else {
        None
    })
}

impl Argument {
    /// The types of the ports.
    pub(super) fn types(&self, types: &mut Vec<Type>) -> Made<()> {
        match self {
            Self::Tensor(traits) => types.push(traits.ty()?),
            Self::Tuple(items) => items.iter().try_for_each(|item| item.types(types))?,
            _ => {}
        }
        Ok(())
    }

    /// The argument as Python passes it, with recorded tensors for the ports.
    pub(super) fn object<'py>(
        &self,
        py: Python<'py>,
        block: &Arc<Block>,
        ports: &mut impl Iterator<Item = ValueKey>,
        given: &mut Vec<(Arc<Slot>, ValueKey)>,
    ) -> Made<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Tensor(traits) => {
                let key = ports.next().ok_or(Fail::Poison)?;
                let lazy = block.lock()?.lazy(block, traits.tensor(Form::Whole(key)), None);
                given.push((Arc::clone(&lazy.slot), key));
                Bound::new(py, lazy)?.into_any()
            }
            Self::None => py.None().into_bound(py),
            Self::Bool(bool) => bool.into_bound_py_any(py)?,
            Self::Int(int) => int.into_bound_py_any(py)?,
            Self::Float(bits) => f64::from_bits(*bits).into_bound_py_any(py)?,
            Self::Word(word) => word.into_bound_py_any(py)?,
            Self::Tuple(items) => {
                let items = items
                    .iter()
                    .map(|item| item.object(py, block, ports, given))
                    .collect::<Made<Vec<_>>>()?;
                PyTuple::new(py, items)?.into_any()
            }
        })
    }
}
