//! Maps: the generated body of a straight line of elementwise instructions, alone or as the tail of products.
//!
//! Instructions become `let` lines over words; constants, attributes and places are read from the record,
//! so lines of equal shape are one pipeline.

use super::record::{Record, Spot};
use super::step::Lanes;
use crate::error::GpuError;
use crate::module::Program;
use autobatch_ir::DType;
use autobatch_ir::graph::{Binary, Compare, Unary};
use autobatch_ir::plan::{Code, Instr, Source, View};
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
}

/// Adds the segment of a map.
pub(super) fn lower(lanes: &mut Lanes<'_, '_>, width: u32, code: &[Instr]) -> Result<(), GpuError> {
    let mut body = Body::new(Record::new(&[width]), Vec::new());
    body.lines(lanes, code);
    lanes.segment(Program::Map(body.text), &body.record, width)
}

impl Body {
    pub(super) fn new(record: Record, sums: Vec<View>) -> Self {
        Self { text: String::new(), record, spots: Vec::new(), sums }
    }

    /// Writes a line an instruction, then what is kept.
    pub(super) fn lines(&mut self, lanes: &Lanes<'_, '_>, code: &[Instr]) {
        for (number, instr) in code.iter().enumerate() {
            let sources: Vec<String> =
                instr.sources.iter().map(|source| self.source(lanes, source)).collect();
            let result = self.code(instr.code, instr.dtype, &sources);
            let _ = writeln!(self.text, "    let t{number} = {result};");
        }
        for (number, instr) in code.iter().enumerate() {
            if let Some(view) = instr.store {
                self.store(lanes.spot(view), &format!("t{number}"));
            }
        }
    }

    /// Writes a word to the element's place among others.
    pub(super) fn store(&mut self, spot: Spot, word: &str) {
        let at = self.spot(spot);
        let _ = writeln!(self.text, "    st(p{at} + element, {word});");
    }

    /// The number of the line that has the address of a place.
    fn spot(&mut self, spot: Spot) -> u32 {
        if let Some(&(_, number)) = self.spots.iter().find(|(known, _)| *known == spot) {
            return number;
        }
        let (number, at) = (self.spots.len() as u32, self.record.len());
        self.record.all(&spot);
        self.spots.push((spot, number));
        let _ = writeln!(self.text, "    let p{number} = row_of({at}u, lane);");
        number
    }

    /// A word of the record.
    pub(super) fn word(&mut self, word: u32) -> String {
        let at = self.record.len();
        self.record.push(word);
        format!("r({at}u)")
    }

    fn source(&mut self, lanes: &Lanes<'_, '_>, source: &Source) -> String {
        match source {
            Source::Local(local) => format!("t{local}"),
            Source::View(view) if self.sums.contains(view) => {
                let sum = self.sums.iter().position(|sum| sum == view).unwrap_or(0);
                format!("bitcast<u32>(s{sum})")
            }
            Source::View(view) => {
                let at = self.spot(lanes.spot(*view));
                format!("ld(p{at} + element)")
            }
            Source::Scalar(view) => {
                let at = self.spot(lanes.spot(*view));
                format!("ld(p{at})")
            }
            Source::Const(bits) => self.word(*bits),
        }
    }

    /// What an instruction computes, as a word.
    pub(super) fn code(&mut self, code: Code, dtype: DType, sources: &[String]) -> String {
        let float = |number: usize| format!("bitcast<f32>({})", sources[number]);
        let word = |text: String| format!("bitcast<u32>({text})");
        match code {
            Code::Copy => sources[0].clone(),
            Code::Unary(unary) => word(format!("op_{}({})", unary.spelling(), float(0))),
            Code::LeakyRelu(slope) => {
                let slope = self.word(slope.bits());
                word(format!("op_leaky_relu({}, bitcast<f32>({slope}))", float(0)))
            }
            Code::Elu(alpha) => {
                let alpha = self.word(alpha.bits());
                word(format!("op_elu({}, bitcast<f32>({alpha}))", float(0)))
            }
            Code::Clamp(low, high) => {
                let (low, high) = (self.word(low.bits()), self.word(high.bits()));
                word(format!("op_clamp({}, bitcast<f32>({low}), bitcast<f32>({high}))", float(0)))
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
