//! The values of a text under construction, and its lines so far.

use super::Numbers;
use crate::random::Rng;
use autobatch_ir::graph::infer::infer;
use autobatch_ir::{DType, INDEX, Op, Shape, Type};

/// The largest number of elements of a value.
const ELEMENTS: usize = 64;
/// The bound of integers whose range is unknown.
pub(super) const UNKNOWN: u32 = u32::MAX;
/// The largest index that an index port takes.
pub(super) const LARGEST_INDEX: u32 = 2;

/// A parameter under its local name: the name in the module, or a port of a cell.
#[derive(Clone, Debug)]
pub(super) struct Param {
    pub(super) name: String,
    pub(super) ty: Type,
    /// Whether lookups may read its rows.
    pub(super) is_table: bool,
}

/// A value; its name is its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) ty: Type,
    /// An upper bound of its integers.
    pub(super) most: u32,
}

/// An op with its operands.
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) operands: Vec<usize>,
    pub(super) params: Vec<usize>,
}

impl Node {
    pub(super) fn new(op: Op, operands: Vec<usize>) -> Self {
        Self { op, operands, params: Vec::new() }
    }
}

/// A body or the graph itself, as far as it is written.
pub(super) struct Scope<'r> {
    pub(super) rng: &'r mut Rng,
    pub(super) numbers: Numbers,
    pub(super) in_body: bool,
    pub(super) params: Vec<Param>,
    pub(super) values: Vec<Known>,
    pub(super) lines: Vec<String>,
}

impl Scope<'_> {
    /// Returns a value that fits; half of the time one of the five newest.
    pub(super) fn any(&mut self, fits: impl Fn(Known) -> bool) -> Option<usize> {
        let fitting: Vec<usize> = (0..self.values.len()).filter(|&at| fits(self.values[at])).collect();
        let newest = if self.rng.chance(50) { fitting.len().saturating_sub(5) } else { 0 };
        let fitting = &fitting[newest..];
        if fitting.is_empty() { None } else { Some(self.rng.pick(fitting)) }
    }

    /// Returns a value of a fitting type that is not a list.
    pub(super) fn plain(&mut self, fits: impl Fn(Type) -> bool) -> Option<usize> {
        self.any(|value| !value.ty.is_list && fits(value.ty))
    }

    pub(super) fn float(&mut self) -> Option<usize> {
        self.plain(|ty| ty.dtype == DType::F32)
    }

    /// Returns a float value of rank 1 or more.
    pub(super) fn rows(&mut self) -> Option<usize> {
        self.plain(|ty| ty.dtype == DType::F32 && ty.shape.rank() > 0)
    }

    /// Returns an index that is always below `end`.
    pub(super) fn index(&mut self, end: u32) -> Option<usize> {
        self.any(|value| value.ty == INDEX && value.most < end)
    }

    pub(super) fn ty(&self, value: usize) -> Type {
        self.values[value].ty
    }

    /// Draws a number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.rng.below(end as u32) as usize
    }

    pub(super) fn shape(&mut self) -> Shape {
        let rank = self.rng.pick(&[0, 1, 1, 1, 1, 2, 2, 2, 3, 4]);
        let dims: Vec<u32> = (0..rank).map(|_| self.rng.pick(&[1, 1, 2, 2, 2, 3, 3, 4])).collect();
        Shape::new(&dims).expect("small extents form a shape")
    }

    /// Returns an attribute, which is always a finite number.
    pub(super) fn attribute(&mut self) -> f32 {
        self.rng.pick(&[0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -0.3, 0.1])
    }

    /// Returns an element in textual form.
    fn element(&mut self, dtype: DType) -> String {
        const WILD: [&str; 15] = [
            "0.0",
            "-0.0",
            "inf",
            "-inf",
            "0x7fc00000",
            "1e-40",
            "-1e-40",
            "1e38",
            "-1e38",
            "1.0",
            "-1.0",
            "88.0",
            "-100.0",
            "2.0",
            "0.5",
        ];
        let wild = self.numbers == Numbers::Wild && self.rng.chance(30);
        match dtype {
            DType::F32 if wild => self.rng.pick(&WILD).to_owned(),
            DType::F32 if self.rng.chance(25) => {
                self.rng.pick(&["0.0", "1.0", "-1.0", "0.5", "2.0"]).to_owned()
            }
            DType::F32 => format!("{:?}", 2.0 * self.rng.small()),
            DType::I32 if wild => self.rng.pick(&["-2147483648", "2147483647"]).to_owned(),
            DType::I32 => (self.rng.below(7) as i32 - 3).to_string(),
            DType::U32 if wild => "4294967295".to_owned(),
            DType::U32 => self.rng.below(LARGEST_INDEX + 1).to_string(),
            _ => self.rng.below(2).to_string(),
        }
    }

    /// Writes a constant, or bindings where the scope allows them.
    pub(super) fn leaf(&mut self) {
        let dtype = self.rng.pick(&[
            DType::F32,
            DType::F32,
            DType::F32,
            DType::F32,
            DType::U32,
            DType::U32,
            DType::I32,
            DType::Bool,
        ]);
        let is_index = dtype == DType::U32 && self.rng.chance(60);
        let shape = if is_index { Shape::SCALAR } else { self.shape() };
        let ty = Type::new(dtype, shape);
        let constant = self.in_body || self.rng.chance(25);
        let count = if constant { 1 } else { shape.elements() };
        let elements: Vec<String> = (0..count).map(|_| self.element(dtype)).collect();
        let most = elements.iter().filter_map(|element| element.parse().ok()).max().unwrap_or(UNKNOWN);
        let right = match shape.rank() {
            _ if constant => format!("fill {ty} {{value={}}}", elements[0]),
            0 => format!("input {ty} (#{})", elements[0]),
            _ => format!("input {ty} (#[{}])", elements.join(", ")),
        };
        self.lines.push(format!("  %{} = {right}", self.values.len()));
        self.values.push(Known { ty, most });
    }

    /// Writes a line with results of these types.
    pub(super) fn line(&mut self, results: &[Type], most: u32, right: &str) {
        let first = self.values.len();
        let named = |(place, ty): (usize, &Type)| format!("%{}: {ty}", first + place);
        let left: Vec<String> = results.iter().enumerate().map(named).collect();
        self.lines.push(format!("  {} = {right}", left.join(", ")));
        self.values.extend(results.iter().map(|&ty| Known { ty, most }));
    }

    /// Writes a list of `len` values of this type.
    pub(super) fn list(&mut self, element: Type, len: usize) -> Option<usize> {
        let fitting: Vec<usize> = (0..self.values.len()).filter(|&at| self.ty(at) == element).collect();
        if fitting.is_empty() && len > 0 {
            return None;
        }
        let items: Vec<String> = (0..len).map(|_| format!("%{}", self.rng.pick(&fitting))).collect();
        let list = Type { is_list: true, ..element };
        let number = self.values.len();
        self.lines.push(match len {
            0 => format!("  %{number} = list {element} ()"),
            _ => format!("  %{number}: {list} = list({})", items.join(", ")),
        });
        self.values.push(Known { ty: list, most: UNKNOWN });
        Some(number)
    }

    /// Writes a node if the types of its results are legal and small.
    pub(super) fn apply(&mut self, node: &Node) -> Option<()> {
        let Node { op, operands, params } = node;
        let types: Vec<Type> = operands.iter().map(|&value| self.ty(value)).collect();
        let stored: Vec<Type> = params.iter().map(|&param| self.params[param].ty).collect();
        let results = infer(op, &types, &stored).ok()?;
        if results.iter().any(|ty| ty.shape.elements() > ELEMENTS) || results.len() > 8 {
            return None;
        }
        let most = match op {
            Op::ArgMax => types[0].shape.width() as u32 - 1,
            _ => UNKNOWN,
        };
        let names: Vec<String> = params.iter().map(|&param| self.params[param].name.clone()).collect();
        let names = if names.is_empty() { String::new() } else { format!("[{}]", names.join(", ")) };
        let mut spelled: Vec<String> = operands.iter().map(|value| format!("%{value}")).collect();
        // A bound index may replace the operand that is one.
        let place = if matches!(op, Op::ListPick) { 0 } else { operands.len().saturating_sub(1) };
        if takes_index(op) && !self.in_body && types[place] == INDEX && self.rng.chance(40) {
            spelled[place] = format!("#{}", self.values[operands[place]].most);
        }
        let operands = if spelled.is_empty() { String::new() } else { format!("({})", spelled.join(", ")) };
        let right = format!("{}{}{names}{operands}", op.spelling(), attributes(op));
        self.line(&results, most, &right);
        Some(())
    }
}

fn takes_index(op: &Op) -> bool {
    matches!(
        op,
        Op::Pick
            | Op::ListPick
            | Op::PickNegLogSoftmax
            | Op::Hinge { .. }
            | Op::LabelLoss
            | Op::Lookup
            | Op::OneHot { .. }
    )
}

/// Returns the attributes of an op in textual form.
fn attributes(op: &Op) -> String {
    let shape = |shape: &Shape| {
        let dims: Vec<String> = shape.dims().iter().map(u32::to_string).collect();
        format!("{{shape=[{}]}}", dims.join(","))
    };
    match op {
        Op::LeakyRelu { slope } => format!("{{slope={:?}}}", slope.get()),
        Op::Elu { alpha } => format!("{{alpha={:?}}}", alpha.get()),
        Op::Clamp { low, high } => format!("{{low={:?} high={:?}}}", low.get(), high.get()),
        Op::Cast(to) => format!("{{to={to}}}"),
        Op::Broadcast(to) | Op::Reshape(to) => shape(to),
        Op::Transpose(order) => {
            let [a, b, c, d] = order.0;
            format!("{{order=[{a},{b},{c},{d}]}}")
        }
        Op::Affine { transposed: true, .. } => "{transposed}".to_owned(),
        Op::AffineRows { row, onto, .. } => format!("{{row={row}{}}}", if *onto { " onto" } else { "" }),
        Op::Concat { axis } => format!("{{axis={axis}}}"),
        Op::Split { axis, parts } => format!("{{axis={axis} parts={parts}}}"),
        Op::Slice { axis, start, len } => format!("{{axis={axis} start={start} len={len}}}"),
        Op::Reduce { fold, over } => format!("{{fold={} over={}}}", fold.spelling(), over.spelling()),
        Op::TopK { k } => format!("{{k={k}}}"),
        Op::LayerNorm { eps } => format!("{{eps={:?}}}", eps.get()),
        Op::WeightedSum { softmax: true } => "{softmax}".to_owned(),
        Op::Attend { scale } => format!("{{scale={:?}}}", scale.get()),
        Op::GraphAttend { slope } => format!("{{slope={:?}}}", slope.get()),
        Op::OneHot { width } => format!("{{width={width}}}"),
        Op::Hinge { margin } => format!("{{margin={:?}}}", margin.get()),
        Op::ScaleGradient { by } => format!("{{by={:?}}}", by.get()),
        _ => String::new(),
    }
}
