//! Operands: tensors that are recorded, parameters, and tensors that exist already.

use super::dims::{Dims, core, shape_of, written};
use super::{Fail, Lazy, Made, Recording, Torch, Trace};
use autobatch::ir::Shape;
use autobatch::ir::graph::{Value, ValueKey};
use autobatch::ir::types::DType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::sync::Arc;

/// The element type, as torch names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Float,
    Int,
    Bool,
}

/// A tensor whose elements the graph will compute.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) dims: Dims,
    pub(super) kind: Kind,
    /// Whether gradients flow through it.
    pub(super) grad: bool,
    /// Whether it was computed under `no_grad` from tensors with gradients, so that its readers must stop theirs.
    pub(super) stopped: bool,
    pub(super) form: Form,
}

/// How the graph holds a tensor.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// One value, whose shape are the extents without the leading ones.
    Whole(ValueKey),
    /// A value for each index of the first extent above 1. Ops on rows then batch over sequences of any lengths.
    Rows(Arc<[ValueKey]>),
    /// A parameter, by its number, or its transpose.
    Param { number: usize, transposed: bool },
}

impl Form {
    /// Whether it is the same form of the same values.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(own), Self::Whole(other)) => own == other,
            (Self::Rows(own), Self::Rows(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }
}

impl Tensor {
    pub(super) fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The extents without the leading ones.
    pub(super) fn core(&self) -> &[u32] {
        core(&self.dims)
    }

    /// The same elements in other extents of the same form.
    pub(super) fn seen_as(&self, dims: impl Into<Dims>) -> Self {
        Self { dims: dims.into(), ..self.clone() }
    }

    /// The rows, if the tensor is held by rows.
    pub(super) fn as_rows(&self) -> Option<&Arc<[ValueKey]>> {
        match &self.form {
            Form::Rows(rows) => Some(rows),
            _ => None,
        }
    }
}

/// The elements of a tensor of torch that exists already.
pub(super) enum Elements {
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Bools(Vec<bool>),
}

/// Reads the extents of a tensor of torch.
pub(super) fn extents(tensor: &Bound<'_, PyAny>) -> PyResult<Dims> {
    let shape = tensor.getattr(intern!(tensor.py(), "shape"))?;
    shape.try_iter()?.map(|extent| extent?.extract::<u32>()).collect()
}

/// Copies the elements of a tensor of torch.
pub(super) fn elements_of(torch: &Torch, tensor: &Bound<'_, PyAny>) -> Made<Elements> {
    let py = tensor.py();
    let mut tensor = tensor.clone();
    let dtype = tensor.getattr(intern!(py, "dtype"))?;
    if !tensor.getattr(intern!(py, "is_cpu"))?.is_truthy()? {
        tensor = tensor.call_method0(intern!(py, "cpu"))?;
    }
    let known = [&torch.float32, &torch.int64, &torch.bool];
    if !known.iter().any(|known| dtype.is(known.bind(py))) {
        if ["torch.int32", "torch.int16", "torch.int8", "torch.uint8"].contains(&&*dtype.to_string()) {
            tensor = tensor.call_method0(intern!(py, "long"))?;
        } else {
            return Err(Fail::refused(format!(
                "a tensor of {dtype}, and the engine computes in float32: call .float()"
            )));
        }
    }
    if !tensor.call_method0(intern!(py, "is_contiguous"))?.is_truthy()? {
        tensor = tensor.call_method0(intern!(py, "contiguous"))?;
    }
    let count: usize = tensor.call_method0(intern!(py, "numel"))?.extract()?;
    let address: usize = tensor.call_method0(intern!(py, "data_ptr"))?.extract()?;
    if count > 0 && address == 0 {
        return Err(Fail::refused("a tensor without storage".to_owned()));
    }
    // SAFETY: torch says that `count` contiguous elements of this type lie at the address, in the memory of the host. `tensor`
    // keeps them alive, and the interpreter's lock keeps other threads of Python from writing.
    Ok(unsafe {
        if dtype.is(torch.float32.bind(py)) {
            Elements::Floats(copied(address, count))
        } else if dtype.is(torch.bool.bind(py)) {
            Elements::Bools(copied::<u8>(address, count).into_iter().map(|byte| byte != 0).collect())
        } else {
            Elements::Ints(copied(address, count))
        }
    })
}

/// Copies `count` elements from an address.
///
/// # Safety
/// They must be there, and nothing may write them at the same time.
unsafe fn copied<T: Copy>(address: usize, count: usize) -> Vec<T> {
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: by the contract of this function.
    unsafe { std::slice::from_raw_parts(address as *const T, count) }.to_vec()
}

/// The value in another shape with as many elements.
pub(super) fn shaped<'g>(value: Value<'g>, dims: &[u32]) -> Value<'g> {
    if value.shape().dims() == dims {
        return value;
    }
    // The graph refuses a shape that does not exist.
    value.reshape(Shape::new(dims).unwrap_or(Shape::SCALAR))
}

/// An operand of an elementwise op.
#[derive(Clone)]
pub(super) enum Operand {
    Tensor(Tensor),
    Number(f32),
}

impl<'g> Recording<'_, 'g> {
    /// Reads a tensor: a recorded one, a parameter, or one that exists already.
    pub(super) fn tensor(&mut self, any: &Bound<'_, PyAny>) -> Made<Tensor> {
        if let Ok(lazy) = any.cast_exact::<Lazy>() {
            let lazy = lazy.get();
            if let Some(pending) = lazy.pending_in(self.block)? {
                self.grad |= pending.grad;
                self.read.note(pending.kind, true);
                return self.stopping(pending);
            }
            let computed = lazy.computed(any.py())?;
            return self.tensor(computed.bind(any.py()));
        }
        let _unwatched = self.torch.unwatched(self.py)?;
        if let Some(number) = self.param(any)? {
            let decl = &self.engine.params[number];
            let grad = any.getattr(intern!(any.py(), "requires_grad"))?.is_truthy()?;
            self.grad |= grad;
            self.read.note(Kind::Float, false);
            let form = Form::Param { number, transposed: false };
            return Ok(Tensor { dims: decl.dims.clone(), kind: Kind::Float, grad, stopped: false, form });
        }
        if any.is_instance(self.torch.tensor.bind(any.py()))? {
            return self.existing(any);
        }
        Err(Fail::refused(format!("{} in place of a tensor", any.get_type().name()?)))
    }

    /// A tensor whose gradient was cut under `no_grad` must not pass one on.
    fn stopping(&mut self, tensor: Tensor) -> Made<Tensor> {
        if !tensor.stopped || !self.enabled {
            return Ok(tensor);
        }
        let cut = |this: &Self, key: ValueKey| this.key(this.value(key).stop_gradient());
        let form = match &tensor.form {
            Form::Whole(key) => Form::Whole(cut(self, *key)?),
            Form::Rows(rows) => Form::Rows(rows.iter().map(|&key| cut(self, key)).collect::<Made<_>>()?),
            Form::Param { .. } => Form::Whole(cut(self, self.whole(&tensor)?.key().ok_or(Fail::Poison)?)?),
        };
        Ok(Tensor { form, stopped: false, ..tensor })
    }

    /// Binds a tensor that exists already.
    fn existing(&mut self, tensor: &Bound<'_, PyAny>) -> Made<Tensor> {
        let dims = extents(tensor)?;
        let shape = shape_of(&dims)?;
        let grad = tensor.getattr(intern!(tensor.py(), "requires_grad"))?.is_truthy()? && self.enabled;
        let (kind, numbers) = match elements_of(self.torch, tensor)? {
            Elements::Floats(floats) => (Kind::Float, floats),
            Elements::Ints(ints) => (Kind::Int, ints.into_iter().map(|int| int as f32).collect()),
            Elements::Bools(bools) => {
                (Kind::Bool, bools.into_iter().map(|bool| f32::from(u8::from(bool))).collect())
            }
        };
        self.read.note(kind, false);
        self.grad |= grad;
        if self.trace == Trace::Cell {
            return self.constant(dims, shape, &numbers, grad);
        }
        if grad && self.trace == Trace::Template {
            return Err(Fail::refused("its code makes a tensor with gradients"));
        }
        let address = tensor.as_ptr() as usize;
        let made = |form| Tensor { dims: dims.clone(), kind: Kind::Float, grad, stopped: false, form };
        if let Some((held, known)) = self.existing.known.get(&address)
            && *held == numbers
        {
            return Ok(made(known.clone()));
        }
        let form = match shape.dims() {
            // Rows batch over any number of rows. A gradient reaches a tensor as a whole.
            &[_, width] if !grad => {
                let rows = numbers.chunks(width as usize);
                let bound = rows.map(|row| self.key(self.graph.input_shaped([width as usize], row)));
                Form::Rows(bound.collect::<Made<_>>()?)
            }
            _ => Form::Whole(self.key(self.graph.input_shaped(shape, &numbers))?),
        };
        if let (true, Form::Whole(key)) = (grad, &form) {
            self.existing.inputs.push((*key, tensor.clone().unbind()));
        }
        self.existing.known.insert(address, (numbers, form.clone()));
        self.existing.kept.push(tensor.clone().unbind());
        Ok(made(form))
    }

    /// A tensor that the code of a traced module made. A cell holds constants of one number.
    fn constant(&self, dims: Dims, shape: Shape, numbers: &[f32], grad: bool) -> Made<Tensor> {
        match numbers {
            [first, rest @ ..] if !grad && rest.iter().all(|number| number.to_bits() == first.to_bits()) => {
                let form = Form::Whole(self.key(self.graph.fill(shape, *first))?);
                Ok(Tensor { dims, kind: Kind::Float, grad: false, stopped: false, form })
            }
            _ => Err(Fail::refused("its code reads a tensor that is no argument")),
        }
    }

    /// Reads a tensor or a number.
    pub(super) fn operand(&mut self, any: &Bound<'_, PyAny>) -> Made<Operand> {
        if !any.is_exact_instance_of::<Lazy>()
            && !any.is_instance(self.torch.tensor.bind(any.py()))?
            && let Ok(number) = any.extract::<f64>()
        {
            return Ok(Operand::Number(number as f32));
        }
        self.tensor(any).map(Operand::Tensor)
    }

    /// Reads indices that exist already; `None` for recorded ones.
    pub(super) fn known_indices(&mut self, any: &Bound<'_, PyAny>) -> Made<Option<(Vec<i64>, Dims)>> {
        let py = any.py();
        if let Ok(lazy) = any.cast_exact::<Lazy>() {
            if let Some(index) = lazy.get().index() {
                return Ok(Some((vec![index.int], index.dims())));
            }
            if lazy.get().pending_in(self.block)?.is_some() {
                return Ok(None);
            }
            let computed = lazy.get().computed(py)?;
            return self.known_indices(computed.bind(py));
        }
        // A tensor of one element converts to an int too, but it has extents.
        if any.is_instance_of::<PyInt>() {
            return Ok(Some((vec![any.extract()?], Dims::new())));
        }
        let _unwatched = self.torch.unwatched(self.py)?;
        match elements_of(self.torch, any)? {
            Elements::Ints(ints) => Ok(Some((ints, extents(any)?))),
            _ => Err(Fail::refused("indices that are no ints".to_owned())),
        }
    }

    /// The value with a key of this graph.
    pub(super) fn value(&self, key: ValueKey) -> Value<'g> {
        match self.graph.value(key) {
            Some(value) => value,
            None => {
                self.graph.refuse("batch", "a value of another graph", "", std::panic::Location::caller())
            }
        }
    }

    /// The key of an emitted value.
    pub(super) fn key(&self, value: Value<'_>) -> Made<ValueKey> {
        value.key().ok_or(Fail::Poison)
    }

    /// A tensor with the elements of one value.
    pub(super) fn made(&self, value: Value<'_>, dims: impl Into<Dims>) -> Made<Tensor> {
        self.in_form(Form::Whole(self.key(value)?), dims)
    }

    /// A tensor with the elements of values, one for each index of its first extent above 1. A single value needs no rows.
    pub(super) fn made_of_rows(&self, rows: Vec<Value<'_>>, dims: impl Into<Dims>) -> Made<Tensor> {
        let keys = rows.into_iter().map(|row| self.key(row)).collect::<Made<Arc<[ValueKey]>>>()?;
        match *keys {
            [only] => self.in_form(Form::Whole(only), dims),
            _ => self.in_form(Form::Rows(keys), dims),
        }
    }

    fn in_form(&self, form: Form, dims: impl Into<Dims>) -> Made<Tensor> {
        let grad = self.grad && self.enabled;
        Ok(Tensor { dims: dims.into(), kind: Kind::Float, grad, stopped: self.grad && !self.enabled, form })
    }

    /// The value of a parameter, or its transpose, in the shape of the extents without leading ones.
    fn param_value(&self, number: usize, transposed: bool) -> Made<Value<'g>> {
        if let Some(&known) = self.existing.params.borrow().get(&(number, transposed)) {
            return Ok(self.value(known));
        }
        let decl = &self.engine.params[number];
        let value = self.graph.param(decl.param());
        let shape = shape_of(&decl.dims)?;
        let value = shaped(value, shape.dims());
        let value = if transposed && shape.rank() == 2 { value.t() } else { value };
        self.existing.params.borrow_mut().insert((number, transposed), self.key(value)?);
        Ok(value)
    }

    /// The tensor as one value.
    pub(super) fn whole(&self, tensor: &Tensor) -> Made<Value<'g>> {
        match &tensor.form {
            Form::Whole(key) => Ok(self.value(*key)),
            Form::Rows(rows) => {
                let address = Arc::as_ptr(rows).cast::<()>() as usize;
                let known = self.existing.stacks.borrow().get(&address).map(|(_, known)| *known);
                let value = match known {
                    Some(known) => self.value(known),
                    None => {
                        let value = self.graph.stack(rows.iter().map(|&key| self.value(key)));
                        let known = (Arc::clone(rows), self.key(value)?);
                        self.existing.stacks.borrow_mut().insert(address, known);
                        value
                    }
                };
                // A row leaves out its own leading extents of 1.
                let shape = shape_of(&tensor.dims)?;
                Ok(shaped(value, shape.dims()))
            }
            Form::Param { number, transposed } => {
                let value = self.param_value(*number, *transposed)?;
                let shape = shape_of(&tensor.dims)?;
                Ok(shaped(value, shape.dims()))
            }
        }
    }

    /// The tensor as one value of a given shape with as many elements.
    pub(super) fn whole_as(&self, tensor: &Tensor, dims: &[u32]) -> Made<Value<'g>> {
        let value = self.whole(tensor)?;
        Ok(shaped(value, dims))
    }

    /// The tensor as values, one for each index of its first extent above 1; of a tensor of one element, itself.
    pub(super) fn rows(&self, tensor: &Tensor) -> Made<Vec<Value<'g>>> {
        if let Form::Rows(rows) = &tensor.form {
            return Ok(rows.iter().map(|&key| self.value(key)).collect());
        }
        match tensor.core().first() {
            Some(&count) => (0..count).map(|at| self.row_at(tensor, at)).collect(),
            None => Ok(vec![self.whole(tensor)?]),
        }
    }

    /// One of these values.
    pub(super) fn row_at(&self, tensor: &Tensor, at: u32) -> Made<Value<'g>> {
        if let Form::Rows(rows) = &tensor.form {
            return rows.get(at as usize).map(|&key| self.value(key)).ok_or(Fail::Poison);
        }
        let value = self.whole(tensor)?;
        let Some((_, row)) = tensor.core().split_first() else { return Ok(value) };
        let own = (self.key(value)?, at);
        if let Some(&known) = self.existing.picked.borrow().get(&own) {
            return Ok(self.value(known));
        }
        // A cell has no numbers to pick by.
        let picked = match self.trace {
            Trace::Cell => value.slice_axis(0, at as usize..at as usize + 1).reshape(shape_of(row)?),
            Trace::None | Trace::Template => value.pick(at),
        };
        let picked = if core(row).len() == row.len() { picked } else { shaped(picked, core(row)) };
        self.existing.picked.borrow_mut().insert(own, self.key(picked)?);
        Ok(picked)
    }

    /// The tensor with float elements: truth values become 0 and 1.
    pub(super) fn floats(&self, tensor: Tensor) -> Made<Tensor> {
        match tensor.kind {
            Kind::Float => Ok(tensor),
            Kind::Bool => self.cast(&tensor, Kind::Float),
            Kind::Int => Err(Fail::refused(format!(
                "arithmetic of a recorded tensor of indices {}; call .float() on it, or .item()",
                written(&tensor.dims)
            ))),
        }
    }

    /// The tensor with elements of another type.
    pub(super) fn cast(&self, tensor: &Tensor, kind: Kind) -> Made<Tensor> {
        if tensor.kind == kind {
            return Ok(tensor.clone());
        }
        let value = self.whole(tensor)?;
        let value = match kind {
            Kind::Float => value.cast(DType::F32),
            Kind::Int => value.cast(DType::U32),
            Kind::Bool => value.not_equal(0.0),
        };
        Ok(Tensor { kind, form: Form::Whole(self.key(value)?), ..tensor.clone() })
    }

    /// Reads a tensor of floats.
    pub(super) fn float_tensor(&mut self, any: &Bound<'_, PyAny>) -> Made<Tensor> {
        let tensor = self.tensor(any)?;
        self.floats(tensor)
    }
}
