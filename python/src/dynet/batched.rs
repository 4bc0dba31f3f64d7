//! `Batched`: a value with a batch size, and the ops of two of them.

use autobatch::ir::Shape;
use autobatch::ir::graph::Value;
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;
use smallvec::SmallVec;

/// The extents of a value.
pub(super) type Extents = SmallVec<[u32; Shape::MAX_RANK]>;

/// A value whose outermost axis is the batch, if the batch is larger than one.
#[derive(Clone, Copy)]
pub(super) struct Batched<'g> {
    pub(super) value: Value<'g>,
    pub(super) b: usize,
}

/// An op of two values, element by element.
#[derive(Clone, Copy)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Min,
    Max,
}

impl Binary {
    pub(super) fn of<'g>(self, x: Value<'g>, y: Value<'g>) -> Value<'g> {
        match self {
            Self::Add => x + y,
            Self::Sub => x - y,
            Self::Mul => x * y,
            Self::Div => x / y,
            Self::Pow => x.pow(y),
            Self::Min => x.minimum(y),
            Self::Max => x.maximum(y),
        }
    }
}

impl<'g> Batched<'g> {
    pub(super) fn new(value: Value<'g>, b: usize) -> Self {
        Self { value, b }
    }

    /// The extents without the batch.
    pub(super) fn extents(self) -> Extents {
        let shape = self.value.shape();
        let dims = shape.dims();
        dims.get(usize::from(self.b > 1)..).unwrap_or(dims).into()
    }

    /// The extents in the order of DyNet.
    pub(super) fn dims(self) -> Extents {
        let mut dims = self.extents();
        dims.reverse();
        if dims.is_empty() {
            dims.push(1);
        }
        dims
    }

    /// The value in other extents.
    pub(super) fn reshaped(self, extents: &[u32]) -> Self {
        let full = with_batch(self.b, extents);
        if *self.value.shape().dims() == full[..] {
            self
        } else {
            Self::new(reshape(self.value, &full), self.b)
        }
    }

    /// The value, with a column `{n, 1}` as a vector.
    pub(super) fn vector(self) -> Self {
        match self.extents()[..] {
            [1, n] => self.reshaped(&[n]),
            _ => self,
        }
    }

    /// The value, repeated for each element of a batch.
    pub(super) fn repeated(self, b: usize) -> Self {
        if self.b == b {
            return self;
        }
        let full = with_batch(b, self.value.shape().dims());
        Self::new(broadcast(self.value, &full), b)
    }

    /// The value of one element of the batch.
    pub(super) fn element(self, number: usize) -> Self {
        if self.b > 1 { Self::new(self.value.pick(number as u32), 1) } else { self }
    }

    fn is_number(self) -> bool {
        self.b == 1 && self.value.shape().rank() == 0
    }

    /// Applies an op element by element. The smaller value is repeated.
    pub(super) fn elementwise(self, op: Binary, other: Self) -> PyResult<Self> {
        let b = self.b.max(other.b);
        if self.b == other.b && self.value.shape() == other.value.shape() {
            return Ok(Self::new(op.of(self.value, other.value), b));
        }
        if [self.b, other.b].iter().any(|&own| own != 1 && own != b) {
            return Err(self.differs(other, "the batch sizes differ"));
        }
        let (mut x, mut y) = (self, other);
        for value in [&mut x, &mut y] {
            *value = if value.is_number() { *value } else { value.repeated(b) };
        }
        if !x.is_number() && !y.is_number() {
            let (one, two) = (x.extents(), y.extents());
            let rank = one.len().max(two.len());
            let (one, two) = (padded(&one, rank), padded(&two, rank));
            if one.iter().zip(&two).any(|(a, b)| a != b && *a != 1 && *b != 1) {
                return Err(self.differs(other, "the dimensions do not fit together"));
            }
            // Ops repeat axes of extent 1, but they align shapes at the innermost axis.
            (x, y) = if b > 1 { (x.reshaped(&one), y.reshaped(&two)) } else { (x, y) };
        }
        Ok(Self::new(op.of(x.value, y.value), b))
    }

    /// The error of two values that do not fit together.
    pub(super) fn differs(self, other: Self, what: &str) -> pyo3::PyErr {
        PyValueError::new_err(format!("{what}: {} and {}", self.spelled(), other.spelled()))
    }

    /// The extents and the batch size as Python prints them.
    pub(super) fn spelled(self) -> String {
        match &self.dims()[..] {
            [only] => format!("(({only},), {})", self.b),
            dims => {
                format!("(({}), {})", dims.iter().map(u32::to_string).collect::<Vec<_>>().join(", "), self.b)
            }
        }
    }
}

/// Extents behind further axes of extent 1.
fn padded(extents: &[u32], rank: usize) -> Extents {
    let mut full: Extents = SmallVec::from_elem(1, rank - extents.len());
    full.extend_from_slice(extents);
    full
}

/// Extents behind the batch.
fn with_batch(b: usize, extents: &[u32]) -> Extents {
    let mut full = Extents::new();
    if b > 1 {
        full.push(b as u32);
    }
    full.extend_from_slice(extents);
    full
}

/// The same elements in another shape. The graph refuses too many axes.
pub(super) fn reshape<'g>(value: Value<'g>, extents: &[u32]) -> Value<'g> {
    value.reshape(&sizes(extents)[..])
}

fn broadcast<'g>(value: Value<'g>, extents: &[u32]) -> Value<'g> {
    value.broadcast(&sizes(extents)[..])
}

fn sizes(extents: &[u32]) -> SmallVec<[usize; Shape::MAX_RANK]> {
    extents.iter().map(|&extent| extent as usize).collect()
}
