//! Type inference: the result types of ops, or the reason why an op rejects its operands.
//!
//! The emitter, the parser and the verifier all call [`infer`]. Its messages state expectation and
//! finding; the caller adds the location.

/// An error with a formatted message.
macro_rules! rejected {
    ($($message:tt)+) => { Err(InferError::new(format!($($message)+))) };
}

/// Returns such an error if a condition holds.
macro_rules! reject_if {
    ($condition:expr, $($message:tt)+) => {
        if $condition {
            return rejected!($($message)+);
        }
    };
}

mod products;
mod shapes;

use crate::graph::op::{Arity, Binary, Float, ListFold, Op, Over};
use crate::numeric::label_loss::MAX_LABELS;
use crate::types::{DType, INDEX, Shape, Type};
use products::{affine, affine_rows, matmul, outer};
use shapes::{broadcast, concat, pick, reshape, slice, split, stack, transpose, with_extent};
use std::fmt;

/// The reason why an op rejects its operands.
#[derive(Clone, PartialEq, Eq)]
pub struct InferError {
    /// The expected and the found thing.
    pub message: String,
    /// How to fix it, if there is good advice.
    pub help: Option<String>,
}

impl InferError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for InferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for InferError {}

crate::debug_as_display!(InferError);

type Inferred = Result<Vec<Type>, InferError>;

/// The result types of `op` on operands and parameters of these types.
///
/// # Errors
/// If the op rejects them.
pub fn infer(op: &Op, operands: &[Type], params: &[Type]) -> Inferred {
    check_counts(op, operands, params)?;
    check_lists(op, operands)?;
    match op {
        Op::Port(ty) => port(*ty),
        Op::Input(ty) => input(*ty, operands),
        Op::Fill { ty, bits } => fill(*ty, *bits),
        Op::Param => Ok(vec![Type::new(DType::F32, params[0].shape)]),
        Op::List => list(operands),
        Op::Append => append(operands),
        Op::Unary(_) | Op::StopGradient => floats(operands[0]),
        Op::LeakyRelu { slope: attribute }
        | Op::Elu { alpha: attribute }
        | Op::ScaleGradient { by: attribute } => {
            finite(*attribute)?;
            floats(operands[0])
        }
        Op::Clamp { low, high } => clamp(*low, *high, operands[0]),
        Op::Binary(binary) => arithmetic(*binary, operands),
        Op::Compare(_) => comparison(operands),
        Op::Select => select(operands),
        Op::Cast(to) => cast(*to, operands[0]),
        Op::Broadcast(shape) => broadcast(*shape, operands[0]),
        Op::Affine { bias, transposed } => affine(*bias, *transposed, operands, params),
        Op::AffineRows { row, bias, onto } => affine_rows(*row, *bias, *onto, operands, params),
        Op::Matmul => matmul(operands[0], operands[1]),
        Op::Dot => same_vectors(operands).map(|_| vec![Type::scalar(DType::F32)]),
        Op::Outer => outer(operands[0], operands[1]),
        Op::Concat { axis } => concat(*axis, operands),
        Op::Split { axis, parts } => split(*axis, *parts, operands[0]),
        Op::Slice { axis, start, len } => slice(*axis, *start, *len, operands[0]),
        Op::Reshape(shape) => reshape(*shape, operands[0]),
        Op::Transpose(permutation) => transpose(*permutation, operands[0]),
        Op::Pick => pick(operands[0], operands[1]),
        Op::Stack => stack(operands),
        Op::Reduce { over, .. } => reduce(*over, operands[0]),
        Op::ArgMax => rows_of(operands[0]).map(|rows| vec![Type::new(DType::U32, rows)]),
        Op::TopK { k } => top_k(*k, operands[0]),
        Op::Softmax | Op::LogSoftmax => rows_of(operands[0]).map(|_| vec![operands[0]]),
        Op::LayerNorm { eps } => {
            finite(*eps)?;
            if eps.get() < 0.0 {
                let message = format!("expected an eps of at least 0, found {}", eps.get());
                return Err(InferError::new(message).help("a customary eps is 1e-5"));
            }
            rows_of(operands[0])?;
            if operands[0].shape.width() == 1 && eps.get() == 0.0 {
                let message =
                    format!("rows of one element have no deviation, found {} and eps 0", operands[0]);
                return Err(InferError::new(message).help("give an eps above 0, or longer rows"));
            }
            Ok(vec![operands[0]])
        }
        Op::LogSumExp | Op::Norm => rows_of(operands[0]).map(|rows| vec![Type::new(DType::F32, rows)]),
        Op::ListFold(ListFold::ArgMax) => {
            float(operands[0].element()).map(|ty| vec![Type::new(DType::U32, ty.shape)])
        }
        Op::ListFold(_) => float(operands[0].element()).map(|ty| vec![ty]),
        Op::ListPick => list_pick(operands[0], operands[1].element()),
        Op::WeightedSum { .. } => weighted_sum(operands[0].element(), operands[1].element()),
        Op::Attend { scale } => attend(*scale, operands),
        Op::GraphAttend { slope } => graph_attend(*slope, operands),
        Op::Lookup => lookup(operands[0], params[0]),
        Op::OneHot { width } => one_hot(*width, operands[0]),
        Op::PickNegLogSoftmax => labelled_rows(operands[0], operands[1]),
        Op::LabelLoss => label_loss(operands[0], operands[1], params[0]),
        Op::Hinge { margin } => {
            finite(*margin)?;
            labelled_rows(operands[0], operands[1])
        }
        Op::CrossEntropy | Op::KlDiv => same_vectors(operands).map(|_| vec![Type::scalar(DType::F32)]),
        Op::Mse | Op::Bce => same_floats(operands).map(|_| vec![Type::scalar(DType::F32)]),
        Op::Dropout { rate, .. } => dropout(*rate, operands),
        Op::ForkNoise { .. } => {
            noise_key(operands)?;
            Ok(vec![INDEX, INDEX])
        }
    }
}

fn check_counts(op: &Op, operands: &[Type], params: &[Type]) -> Result<(), InferError> {
    let (fits, expected) = match op.arity() {
        Arity::Exactly(n) => (operands.len() == n, n.to_string()),
        Arity::AtLeast(n) => (operands.len() >= n, format!("at least {n}")),
        Arity::Free => (true, String::new()),
    };
    reject_if!(!fits, "expected {expected} operands, found {}", operands.len());
    if params.len() != op.params() {
        let (expected, found) = (op.params(), params.len());
        return rejected!("expected {expected} parameter arguments, found {found}");
    }
    Ok(())
}

/// Checks that lists are operands exactly where the op takes lists.
fn check_lists(op: &Op, operands: &[Type]) -> Result<(), InferError> {
    for (place, ty) in operands.iter().enumerate() {
        let takes_list = match op {
            Op::ListFold(_) | Op::WeightedSum { .. } => true,
            Op::Attend { .. } | Op::GraphAttend { .. } | Op::ListPick => place > 0,
            Op::Append => place == 0,
            _ => false,
        };
        if takes_list && !ty.is_list {
            return Err(InferError::new(format!("operand {place} must be a list, found {ty}"))
                .help("make one of any number of values with g.list(values)"));
        }
        if !takes_list && ty.is_list {
            return Err(InferError::new(format!("operand {place} must be a value, found {ty}"))
                .help("lists are taken by sum, mean, max, logsumexp, argmax, pick, wsum, attend, graph_attend, append and list ports of cells"));
        }
    }
    Ok(())
}

fn finite(attribute: Float) -> Result<(), InferError> {
    if attribute.get().is_finite() {
        return Ok(());
    }
    rejected!("the attribute must be a finite number, found {}", attribute.get())
}

fn float(ty: Type) -> Result<Type, InferError> {
    if ty.dtype == DType::F32 {
        return Ok(ty);
    }
    Err(InferError::new(format!("expected f32 elements, found {ty}")).help("convert with .cast(DType::F32)"))
}

fn floats(ty: Type) -> Inferred {
    float(ty).map(|ty| vec![ty])
}

/// The common float type of all operands.
fn same_floats(operands: &[Type]) -> Result<Type, InferError> {
    let first = float(operands[0])?;
    match operands.iter().position(|ty| *ty != first) {
        None => Ok(first),
        Some(place) => rejected!("operand {place} must be {first} like the first, found {}", operands[place]),
    }
}

fn vector(ty: Type) -> Result<u32, InferError> {
    match float(ty)?.shape.dims() {
        [width] => Ok(*width),
        _ => rejected!("expected a vector, found {ty}"),
    }
}

fn same_vectors(operands: &[Type]) -> Result<u32, InferError> {
    same_floats(operands).and_then(vector)
}

/// The shape of a float value without its innermost axis.
fn rows_of(ty: Type) -> Result<Shape, InferError> {
    reject_if!(float(ty)?.shape.rank() == 0, "expected rows, found a scalar");
    Ok(ty.shape.without_last())
}

fn port(ty: Type) -> Inferred {
    if matches!(ty.dtype, DType::F16 | DType::BF16) {
        let message = format!("{} is a storage format of parameters, no port takes {ty}", ty.dtype);
        return Err(InferError::new(message).help("parameters widen to f32 when they are used"));
    }
    Ok(vec![ty])
}

fn input(ty: Type, operands: &[Type]) -> Inferred {
    if ty.is_list || matches!(ty.dtype, DType::F16 | DType::BF16) {
        return rejected!("an input is f32, i32, u32 or bool, found {ty}");
    }
    reject_if!(operands[0] != ty, "the bindings must be {ty}, found {}", operands[0]);
    Ok(vec![ty])
}

fn fill(ty: Type, bits: u32) -> Inferred {
    if ty.is_list || matches!(ty.dtype, DType::F16 | DType::BF16) {
        return rejected!("a constant is f32, i32, u32 or bool, found {ty}");
    }
    reject_if!(ty.dtype == DType::Bool && bits > 1, "a bool constant is 0 or 1, found {bits}");
    Ok(vec![ty])
}

/// The type of a list. Its signature contains the element type once, for any number of values.
fn list(operands: &[Type]) -> Inferred {
    match operands {
        [element] => Ok(vec![Type { is_list: true, ..*element }]),
        _ => rejected!("a list has one element type, found {}", operands.len()),
    }
}

fn append(operands: &[Type]) -> Inferred {
    let (list, element) = (operands[0], operands[0].element());
    reject_if!(operands[1] != element, "the item must be {element} like the others, found {}", operands[1]);
    Ok(vec![list])
}

fn clamp(low: Float, high: Float, ty: Type) -> Inferred {
    if low.get().is_nan() || high.get().is_nan() || low.get() > high.get() {
        let (low, high) = (low.get(), high.get());
        return rejected!("the lower bound {low} must not exceed the upper bound {high}");
    }
    floats(ty)
}

/// The common type of elementwise operands: equal types, or a scalar and a value.
fn elementwise(a: Type, b: Type) -> Result<Type, InferError> {
    if a.dtype != b.dtype {
        return Err(InferError::new(format!("operands must have one element type, found {a} and {b}"))
            .help("convert one with .cast(..)"));
    }
    if a.shape == b.shape || b.shape.rank() == 0 {
        return Ok(a);
    }
    if a.shape.rank() == 0 {
        return Ok(b);
    }
    Err(InferError::new(format!("operands must have one shape, found {a} and {b}"))
        .help("repeat the smaller with .broadcast(shape); scalars need no help"))
}

fn arithmetic(binary: Binary, operands: &[Type]) -> Inferred {
    let ty = elementwise(operands[0], operands[1])?;
    let floats_only = matches!(binary, Binary::Div | Binary::Pow);
    if !ty.dtype.is_number() || (floats_only && ty.dtype != DType::F32) {
        let expected = if floats_only { "f32" } else { "f32, i32 or u32" };
        return rejected!("expected {expected} elements, found {ty}");
    }
    Ok(vec![ty])
}

fn comparison(operands: &[Type]) -> Inferred {
    let ty = elementwise(operands[0], operands[1])?;
    reject_if!(!ty.dtype.is_number(), "expected f32, i32 or u32 elements, found {ty}");
    Ok(vec![Type::new(DType::Bool, ty.shape)])
}

fn select(operands: &[Type]) -> Inferred {
    let condition = operands[0];
    let ty = elementwise(operands[1], operands[2])?;
    reject_if!(condition.dtype != DType::Bool, "the condition must be bool, found {condition}");
    reject_if!(ty.dtype == DType::Bool, "expected f32, i32 or u32 elements, found {ty}");
    if condition.shape != ty.shape && condition.shape.rank() > 0 {
        return rejected!("the condition must be shaped like {ty}, found {condition}");
    }
    Ok(vec![ty])
}

fn cast(to: DType, ty: Type) -> Inferred {
    if matches!(to, DType::F16 | DType::BF16) {
        return rejected!("{to} is a storage format of parameters; values are f32");
    }
    Ok(vec![Type::new(to, ty.shape)])
}

fn sized(dims: &[u32]) -> Result<Shape, InferError> {
    Shape::new(dims).map_err(|error| InferError::new(error.to_string()))
}

fn reduce(over: Over, ty: Type) -> Inferred {
    let rows = rows_of(ty)?;
    Ok(vec![Type::new(DType::F32, if over == Over::All { Shape::SCALAR } else { rows })])
}

fn top_k(k: u32, ty: Type) -> Inferred {
    rows_of(ty)?;
    let axis = ty.shape.rank() as u8 - 1;
    reject_if!(k == 0 || k as usize > ty.shape.width(), "k must be 1 to {}, found {k}", ty.shape.width());
    let values = with_extent(ty, axis, k)?;
    Ok(vec![values, Type::new(DType::U32, values.shape)])
}

fn list_pick(index: Type, element: Type) -> Inferred {
    reject_if!(index != INDEX, "the index must be u32, found {index}");
    Ok(vec![element])
}

fn weighted_sum(scores: Type, values: Type) -> Inferred {
    float(values)?;
    if float(scores)?.shape != values.shape && scores.shape.elements() != 1 {
        return rejected!("scores must be single numbers or like {values}, found {scores}");
    }
    Ok(vec![values])
}

fn attend(scale: Float, operands: &[Type]) -> Inferred {
    finite(scale)?;
    let (query, key) = (operands[0], operands[1].element());
    vector(query)?;
    reject_if!(key != query, "keys must be {query} like the query, found {key}");
    floats(operands[2].element())
}

fn graph_attend(slope: Float, operands: &[Type]) -> Inferred {
    finite(slope)?;
    let (query, key, value) = (operands[0], operands[1].element(), operands[2].element());
    let heads = vector(query)?;
    reject_if!(key != query, "keys must be {query} like the query, found {key}");
    let elements = float(value)?.shape.elements();
    if !elements.is_multiple_of(heads as usize) {
        return rejected!("values must have equal parts for {heads} heads, found {value}");
    }
    Ok(vec![value])
}

fn lookup(index: Type, table: Type) -> Inferred {
    reject_if!(index != INDEX, "the index must be u32, found {index}");
    match table.shape.dims() {
        [_, width] => sized(&[*width]).map(|shape| vec![Type::new(DType::F32, shape)]),
        _ => rejected!("a table must be a matrix, found {table}"),
    }
}

fn label_loss(x: Type, label: Type, rows: Type) -> Inferred {
    reject_if!(label != INDEX, "the label must be u32, found {label}");
    let width = match rows.shape.dims() {
        [labels, width] if *labels <= MAX_LABELS => *width,
        _ => {
            return rejected!(
                "the rows of labels must be a matrix of at most {MAX_LABELS} rows, found {rows}"
            );
        }
    };
    let expected = sized(&[width]).map(|shape| Type::new(DType::F32, shape))?;
    reject_if!(x != expected, "x must be {expected}, as wide as the rows of {rows}, found {x}");
    Ok(vec![Type::scalar(DType::F32)])
}

fn one_hot(width: u32, index: Type) -> Inferred {
    reject_if!(index != INDEX, "the index must be u32, found {index}");
    sized(&[width]).map(|shape| vec![Type::new(DType::F32, shape)])
}

fn labelled_rows(scores: Type, labels: Type) -> Inferred {
    let rows = rows_of(scores)?;
    let expected = Type::new(DType::U32, rows);
    if labels != expected {
        return rejected!("labels must be {expected}, one per row of {scores}, found {labels}");
    }
    Ok(vec![Type::new(DType::F32, rows)])
}

fn noise_key(operands: &[Type]) -> Result<(), InferError> {
    if operands.iter().all(|ty| *ty == INDEX) {
        return Ok(());
    }
    Err(InferError::new("a noise key is two u32 numbers"))
}

fn dropout(rate: Float, operands: &[Type]) -> Inferred {
    if !(0.0..1.0).contains(&rate.get()) {
        return rejected!("the rate must be at least 0 and below 1, found {}", rate.get());
    }
    noise_key(&operands[1..])?;
    floats(operands[0])
}
