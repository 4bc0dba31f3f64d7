//! Maps: the generated body of a straight line of elementwise instructions, alone or as the tail of products.
//!
//! Instructions become `let` lines over words; constants, attributes and places are read from the record,
//! so lines of equal shape are one pipeline. Their text follows from the kernel, and from which places are the same: it is
//! written once, and not for every step of the kernel.

use super::record::{Record, Spot};
use super::step::Lanes;
use crate::error::GpuError;
use crate::module::{Program, Reach, Tile};
use autobatch_ir::DType;
use autobatch_ir::graph::{Binary, Compare, Unary};
use autobatch_ir::plan::{Code, Instr, KernelId, Source, View};
use std::fmt::Write as _;

/// Lines in the making.
pub(super) struct Body {
    pub(super) text: String,
    /// What they read, behind what the template wants.
    pub(super) record: Record,
    /// Places that have a line, so that no address is computed twice.
    spots: Vec<(Spot, u32)>,
    /// Views that are sums in registers; the place in the list is the number of the sum.
    sums: Vec<View>,
    /// The lines that places were found in, in the order in which they were asked for.
    pub(super) asked: Vec<u32>,
    /// Whether there is no text, but a record alone.
    is_silent: bool,
}

/// What decides a generated program, among those of a plan.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Generated {
    pub(super) kernel: KernelId,
    /// The map, or the first of the products.
    pub(super) stage: usize,
    /// How products are cut among threads, what is read of weights at once, and whether one is in halves.
    pub(super) cut: Option<(Tile, Reach, bool)>,
    /// Which places are the same, as they are asked for.
    pub(super) asked: Vec<u32>,
}

/// Adds the segment of a map.
pub(super) fn lower(
    lanes: &mut Lanes<'_, '_>,
    stage: usize,
    width: u32,
    code: &[Instr],
) -> Result<(), GpuError> {
    let body = |lanes: &Lanes<'_, '_>, is_silent: bool| {
        let body = Body::new(Record::new(&[width]), Vec::new());
        let mut body = if is_silent { body.silent() } else { body };
        body.lines(lanes, code);
        body
    };
    let Body { record, asked, .. } = body(lanes, true);
    let key = Generated { kernel: lanes.step.kernel, stage, cut: None, asked };
    let program = lanes.generated(key, |lanes| Program::Map(body(lanes, false).text));
    let threads = u64::from(lanes.count) * u64::from(width);
    lanes.build.segment_of(program, &record, lanes.level, (lanes.first, threads), 1)
}

impl Body {
    pub(super) fn new(record: Record, sums: Vec<View>) -> Self {
        Self { text: String::new(), record, spots: Vec::new(), sums, asked: Vec::new(), is_silent: false }
    }

    /// The same without text.
    pub(super) fn silent(self) -> Self {
        Self { is_silent: true, ..self }
    }

    /// Writes a line an instruction, then what is kept.
    pub(super) fn lines(&mut self, lanes: &Lanes<'_, '_>, code: &[Instr]) {
        for (number, instr) in code.iter().enumerate() {
            if self.is_silent {
                for source in &instr.sources {
                    self.source(lanes, source);
                }
                self.attributes(instr.code);
                continue;
            }
            let sources: Vec<String> =
                instr.sources.iter().map(|source| self.source(lanes, source)).collect();
            let result = self.code(instr.code, instr.dtype, &sources);
            let _ = writeln!(self.text, "    let t{number} = {result};");
        }
        for (number, instr) in code.iter().enumerate() {
            if let Some(view) = instr.store {
                self.store(lanes.spot(view), format_args!("t{number}"));
            }
        }
    }

    /// Writes a word to the element's place among others.
    pub(super) fn store(&mut self, spot: Spot, word: std::fmt::Arguments<'_>) {
        let at = self.spot(spot);
        if !self.is_silent {
            let _ = writeln!(self.text, "    st(p{at} + element, {word});");
        }
    }

    /// The number of the line that has the address of a place.
    fn spot(&mut self, spot: Spot) -> u32 {
        if let Some(&(_, number)) = self.spots.iter().find(|(known, _)| *known == spot) {
            self.asked.push(number);
            return number;
        }
        let (number, at) = (self.spots.len() as u32, self.record.len());
        self.record.all(&spot);
        self.spots.push((spot, number));
        self.asked.push(number);
        if !self.is_silent {
            let _ = writeln!(self.text, "    let p{number} = row_of({at}u, lane);");
        }
        number
    }

    /// A word of the record.
    pub(super) fn word(&mut self, word: u32) -> String {
        let at = self.record.len();
        self.record.push(word);
        self.said(|| format!("r({at}u)"))
    }

    /// A piece of text, if there is any.
    fn said(&self, text: impl FnOnce() -> String) -> String {
        if self.is_silent { String::new() } else { text() }
    }

    fn source(&mut self, lanes: &Lanes<'_, '_>, source: &Source) -> String {
        match source {
            Source::Local(local) => self.said(|| format!("t{local}")),
            Source::View(view) if self.sums.contains(view) => {
                let sum = self.sums.iter().position(|sum| sum == view).unwrap_or(0);
                self.said(|| format!("bitcast<u32>(s{sum})"))
            }
            Source::View(view) => {
                let at = self.spot(lanes.spot(*view));
                self.said(|| format!("ld(p{at} + element)"))
            }
            Source::Scalar(view) => {
                let at = self.spot(lanes.spot(*view));
                self.said(|| format!("ld(p{at})"))
            }
            Source::Const(bits) => self.word(*bits),
        }
    }

    /// The attributes of an instruction, which are words of the record.
    fn attributes(&mut self, code: Code) -> [String; 2] {
        let words = match code {
            Code::LeakyRelu(slope) => [Some(slope.bits()), None],
            Code::Elu(alpha) => [Some(alpha.bits()), None],
            Code::Clamp(low, high) => [Some(low.bits()), Some(high.bits())],
            _ => [None; 2],
        };
        words.map(|word| word.map_or_else(String::new, |word| self.word(word)))
    }

    /// What an instruction computes, as a word.
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

/// The function of a slope; ops without one of their own never come here (rule P15).
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
        Binary::Min if signed => format!("least_signed({a}, {b})"),
        Binary::Max if signed => format!("most_signed({a}, {b})"),
        Binary::Min => format!("min({a}, {b})"),
        Binary::Max => format!("max({a}, {b})"),
        // Types see to it that no division and no power of integers arrives.
        Binary::Div | Binary::Pow => "0u".to_owned(),
    }
}

/// A NaN differs from all and is in no order; said apart, because compilers may assume there is none.
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
