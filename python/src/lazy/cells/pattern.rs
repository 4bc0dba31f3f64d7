//! The arguments and results of a call of a method, as far as its cell depends on them.

use crate::lazy::dims::{Dims, core, elements, shape_of};
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
    /// A tensor that is one value.
    Tensor(Traits),
    /// A tensor that is held by rows, or several indices. A cell would batch with calls of equal lengths only, so such a call repeats a template.
    Rows(Traits),
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

    /// The extents of the rows, and their number.
    fn rows(&self) -> (usize, &[u32]) {
        match core(&self.dims) {
            [count, row @ ..] => (*count as usize, core(row)),
            [] => (1, &[]),
        }
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
    /// The rows from a place on, by their number.
    Rows(usize, usize, Traits),
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
        if let Some(index) = lazy.and_then(|lazy| lazy.get().index())
            && let Ok(int) = u32::try_from(index.int)
            && !given.tensors.contains(&(any.as_ptr() as usize))
        {
            given.tensors.push(any.as_ptr() as usize);
            given.values.push(Arg::Index(int));
            return Ok(Some(Argument::Tensor(Traits::index(index.dims()))));
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
                let dims = extents(any)?;
                let indices = ints.iter().map(|&int| u32::try_from(int).map(Arg::Index));
                let Ok(indices) = indices.collect::<Result<SmallVec<[_; 8]>, _>>() else { return Ok(None) };
                given.values.extend(indices);
                return Ok(match *core(&dims) {
                    [] => Some(Argument::Tensor(Traits::index(dims))),
                    [_] => Some(Argument::Rows(Traits::index(dims))),
                    _ => None,
                });
            }
            if !dtype.is(self.torch.float32.bind(self.py)) {
                return Ok(None);
            }
        }
        let tensor = self.tensor(any)?;
        let key = match &tensor.form {
            Form::Whole(key) => *key,
            Form::Rows(rows) if tensor.kind == Kind::Float => {
                given.values.extend(rows.iter().map(|&row| Arg::from(self.value(row))));
                return Ok(Some(Argument::Rows(Traits::of(&tensor))));
            }
            Form::Rows(_) | Form::Param { .. } => return Ok(None),
        };
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

impl Pattern {
    /// The types of the ports.
    pub(super) fn types(&self) -> Made<Vec<Type>> {
        let mut types = Vec::new();
        self.args.iter().try_for_each(|(_, argument)| argument.types(&mut types))?;
        Ok(types)
    }

    /// Whether a call repeats a template.
    pub(super) fn has_rows(&self) -> bool {
        self.args.iter().any(|(_, argument)| argument.has_rows())
    }
}

impl Argument {
    fn has_rows(&self) -> bool {
        match self {
            Self::Rows(_) => true,
            Self::Tuple(items) => items.iter().any(Self::has_rows),
            _ => false,
        }
    }

    /// Adds the types of its ports.
    fn types(&self, types: &mut Vec<Type>) -> Made<()> {
        match self {
            Self::Tensor(traits) => types.push(traits.ty()?),
            Self::Rows(traits) => {
                let (count, row) = traits.rows();
                let ty = if traits.kind == Kind::Int { INDEX } else { Type::new(DType::F32, shape_of(row)?) };
                types.extend(std::iter::repeat_n(ty, count));
            }
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
        given: &mut Vec<(Arc<Slot>, Form)>,
    ) -> Made<Bound<'py, PyAny>> {
        let mut tensor = |traits: &Traits, form: Form| {
            let lazy = block.lock()?.lazy(block, traits.tensor(form.clone()), None);
            given.push((Arc::clone(&lazy.slot), form));
            Made::Ok(Bound::new(py, lazy)?.into_any())
        };
        Ok(match self {
            Self::Tensor(traits) => tensor(traits, Form::Whole(ports.next().ok_or(Fail::Poison)?))?,
            Self::Rows(traits) => {
                let rows: Arc<[ValueKey]> = ports.by_ref().take(traits.rows().0).collect();
                tensor(traits, Form::Rows(rows))?
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
