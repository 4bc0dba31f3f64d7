//! Maps: generated code of a line of elementwise instructions, alone or as the epilogue of products.
//!
//! Instructions become `let` lines over words. Constants, attributes and addresses are read from the record, so lines
//! of the same shape share a pipeline. The text depends on the kernel alone, so it is generated once per kernel.

use super::kernels::{LoweredUnit, RegisterLocation};
use super::record::Record;
use super::step::Lanes;
use crate::error::GpuError;
use crate::module::{LoadWidth, Program, Tile};
use autobatch_ir::DType;
use autobatch_ir::graph::{Binary, Compare, Unary};
use autobatch_ir::plan::{Code, Instr, RegId, Source, View};
use std::collections::HashMap;
use std::fmt::{Arguments, Write as _};

/// The words of the record that generated code reads, in order.
pub(super) type Recipe = Vec<Item>;

/// A part of the record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Address(View),
    Word(u32),
}

/// The variant of a program of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Variant {
    pub(super) tile: Tile,
    pub(super) load: LoadWidth,
    /// True if a weight is stored in 16 bits.
    pub(super) packed: bool,
}

/// Code that is being generated.
pub(super) struct Body<'h> {
    pub(super) text: String,
    recipe: Recipe,
    /// The locations of the kernel's registers.
    locations: &'h [RegisterLocation],
    /// The variables that hold addresses.
    addresses: HashMap<(RegisterLocation, RegId, u32), u32>,
    /// Words of the record so far.
    len: u32,
    /// Views that are sums in registers. The position in the list is the number of the sum.
    sums: Vec<View>,
}

/// Adds the segment of a map.
pub(super) fn lower(
    lanes: &mut Lanes<'_, '_>,
    unit: &LoweredUnit,
    width: u32,
    code: &[Instr],
) -> Result<(), GpuError> {
    let mut record = Record::new(&[width]);
    lanes.fill(&unit.recipe, &mut record);
    let locations = lanes.lowered.locations.as_slice();
    let number = lanes.generated(unit, None, || Program::Map(body(locations, code).text));
    let threads = lanes.threads(width);
    lanes.build.segment_of(number, &record, lanes.level, threads)
}

pub(super) fn recipe(locations: &[RegisterLocation], code: &[Instr]) -> Recipe {
    body(locations, code).recipe
}

fn body<'h>(locations: &'h [RegisterLocation], code: &[Instr]) -> Body<'h> {
    let mut body = Body::new(1, Vec::new(), locations);
    body.lines(code);
    body
}

impl Lanes<'_, '_> {
    /// Appends the words of a recipe to a record.
    pub(super) fn fill(&self, recipe: &Recipe, record: &mut Record) {
        for item in recipe {
            match *item {
                Item::Address(view) => record.all(&self.address(view)),
                Item::Word(word) => record.push(word),
            };
        }
    }
}

impl<'h> Body<'h> {
    /// Code whose words of the record follow the first `len`.
    pub(super) fn new(len: u32, sums: Vec<View>, locations: &'h [RegisterLocation]) -> Self {
        let (text, recipe, addresses) = (String::new(), Recipe::new(), HashMap::new());
        Self { text, recipe, locations, addresses, len, sums }
    }

    pub(super) fn into_recipe(self) -> Recipe {
        self.recipe
    }

    /// The text, and the record of code that reads no addresses, after its first words.
    pub(super) fn with_record(self, first: &[u32]) -> (String, Record) {
        let mut record = Record::new(first);
        for item in self.recipe {
            if let Item::Word(word) = item {
                record.push(word);
            }
        }
        (self.text, record)
    }

    /// Writes one line per instruction, then the stores.
    pub(super) fn lines(&mut self, code: &[Instr]) {
        for (number, instr) in code.iter().enumerate() {
            let sources: Vec<String> = instr.sources.iter().map(|source| self.source(source)).collect();
            let result = self.code(instr.code, instr.dtype, &sources);
            let _ = writeln!(self.text, "    let t{number} = {result};");
        }
        for (number, instr) in code.iter().enumerate() {
            if let Some(view) = instr.store {
                self.store(view, format_args!("t{number}"));
            }
        }
    }

    /// Writes the store of a word at the element's address.
    pub(super) fn store(&mut self, view: View, word: Arguments<'_>) {
        let at = self.address(view);
        let _ = writeln!(self.text, "    st(p{at} + element, {word});");
    }

    /// The variable that holds the address of a view. Registers that share words, such as equal constants, share it.
    fn address(&mut self, view: View) -> u32 {
        let location = self.locations[view.reg.index()];
        let reg = if matches!(location, RegisterLocation::Const(_) | RegisterLocation::Param(_)) {
            RegId(0)
        } else {
            view.reg
        };
        let next = self.addresses.len() as u32;
        let number = *self.addresses.entry((location, reg, view.start)).or_insert(next);
        if number == next {
            let _ = writeln!(self.text, "    let p{number} = row_of({}u, lane);", self.len);
            self.recipe.push(Item::Address(view));
            self.len += 4;
        }
        number
    }

    /// The expression of a word of the record.
    pub(super) fn word(&mut self, word: u32) -> String {
        let at = self.len;
        self.recipe.push(Item::Word(word));
        self.len += 1;
        format!("r({at}u)")
    }

    fn source(&mut self, source: &Source) -> String {
        match source {
            Source::Local(local) => format!("t{local}"),
            Source::View(view) if self.sums.contains(view) => {
                let sum = self.sums.iter().position(|sum| sum == view).unwrap_or(0);
                format!("bitcast<u32>(s{sum})")
            }
            Source::View(view) => {
                let at = self.address(*view);
                format!("ld(p{at} + element)")
            }
            Source::Scalar(view) => {
                let at = self.address(*view);
                format!("ld(p{at})")
            }
            Source::Const(bits) => self.word(*bits),
        }
    }

    /// The expressions of an instruction's attributes, which are words of the record.
    fn attributes(&mut self, code: Code) -> [String; 2] {
        let words = match code {
            Code::LeakyRelu(slope) => [Some(slope.bits()), None],
            Code::Elu(alpha) => [Some(alpha.bits()), None],
            Code::Clamp(low, high) => [Some(low.bits()), Some(high.bits())],
            _ => [None; 2],
        };
        words.map(|word| word.map_or_else(String::new, |word| self.word(word)))
    }

    /// The expression of an instruction, as a word.
    pub(super) fn code(&mut self, code: Code, dtype: DType, sources: &[String]) -> String {
        let [one, two] = self.attributes(code);
        let float = |number: usize| format!("bitcast<f32>({})", sources[number]);
        let word = |text: String| format!("bitcast<u32>({text})");
        match code {
            Code::Copy => sources[0].clone(),
            Code::Unary(unary) => word(format!("op_{}({})", unary.spelling(), float(0))),
            Code::LeakyRelu(_) => word(format!("op_leaky_relu({}, bitcast<f32>({one}))", float(0))),
            Code::Elu(_) => word(format!("op_elu({}, bitcast<f32>({one}))", float(0))),
            Code::Clamp(..) => {
                word(format!("op_clamp({}, bitcast<f32>({one}), bitcast<f32>({two}))", float(0)))
            }
            Code::Slope(unary) => word(format!("{}({})", slope_function(unary), float(0))),
            Code::Binary(binary) => match dtype {
                DType::F32 => word(float_binary(binary, &float(0), &float(1))),
                _ => integer_binary(binary, dtype, &sources[0], &sources[1]),
            },
            Code::Compare(compare) => {
                let (a, b) = match dtype {
                    DType::F32 => (float(0), float(1)),
                    DType::I32 => {
                        (format!("bitcast<i32>({})", sources[0]), format!("bitcast<i32>({})", sources[1]))
                    }
                    _ => (sources[0].clone(), sources[1].clone()),
                };
                compared(compare, dtype, &a, &b)
            }
            Code::Select => format!("select({}, {}, {} != 0u)", sources[2], sources[1], sources[0]),
            Code::Cast(to) => cast(dtype, to, &sources[0]),
        }
    }
}

/// The function of a derivative. Rule P15 excludes ops without one.
fn slope_function(unary: Unary) -> String {
    match unary {
        Unary::Tanh
        | Unary::Sigmoid
        | Unary::Relu
        | Unary::Gelu
        | Unary::Silu
        | Unary::Softplus
        | Unary::Erf => format!("slope_{}", unary.spelling()),
        _ => "op_neg".to_owned(),
    }
}

fn float_binary(binary: Binary, a: &str, b: &str) -> String {
    match binary {
        Binary::Add => format!("({a} + {b})"),
        Binary::Sub => format!("({a} - {b})"),
        Binary::Mul => format!("({a} * {b})"),
        Binary::Div => format!("quotient({a}, {b})"),
        Binary::Pow => format!("op_pow({a}, {b})"),
        Binary::Min => format!("op_min({a}, {b})"),
        Binary::Max => format!("op_max({a}, {b})"),
    }
}

fn integer_binary(binary: Binary, dtype: DType, a: &str, b: &str) -> String {
    let signed = dtype == DType::I32;
    match binary {
        Binary::Add => format!("({a} + {b})"),
        Binary::Sub => format!("({a} - {b})"),
        Binary::Mul => format!("({a} * {b})"),
        Binary::Min if signed => format!("min_signed({a}, {b})"),
        Binary::Max if signed => format!("max_signed({a}, {b})"),
        Binary::Min => format!("min({a}, {b})"),
        Binary::Max => format!("max({a}, {b})"),
        // Typing excludes division and power of integers.
        Binary::Div | Binary::Pow => "0u".to_owned(),
    }
}

/// A comparison. It tests NaN, which is unordered, explicitly, because compilers may assume that it does not occur.
fn compared(compare: Compare, dtype: DType, a: &str, b: &str) -> String {
    let sign = match compare {
        Compare::Eq => "==",
        Compare::Ne => "!=",
        Compare::Lt => "<",
        Compare::Le => "<=",
        Compare::Gt => ">",
        Compare::Ge => ">=",
    };
    match (dtype, compare) {
        (DType::F32, Compare::Ne) => format!("u32({a} != {b} || is_nan({a}) || is_nan({b}))"),
        (DType::F32, _) => format!("u32({a} {sign} {b} && !is_nan({a}) && !is_nan({b}))"),
        _ => format!("u32({a} {sign} {b})"),
    }
}

fn cast(from: DType, to: DType, word: &str) -> String {
    match (from, to) {
        (DType::F32, DType::I32) => format!("signed_of(bitcast<f32>({word}))"),
        (DType::F32, DType::U32) => format!("unsigned_of(bitcast<f32>({word}))"),
        (DType::F32, DType::Bool) => {
            format!("u32(({word} & 0x7fffffffu) != 0u)")
        }
        (DType::I32, DType::F32) => format!("bitcast<u32>(f32(bitcast<i32>({word})))"),
        (DType::U32 | DType::Bool, DType::F32) => format!("bitcast<u32>(f32({word}))"),
        (DType::I32 | DType::U32, DType::Bool) => format!("u32({word} != 0u)"),
        _ => word.to_owned(),
    }
}
