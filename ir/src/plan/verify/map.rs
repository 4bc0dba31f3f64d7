//! Rule P11: elementwise instructions.
//!
//! [`infer`] gives the types of an instruction, with single elements as operands. So graph and plan cannot disagree about the
//! types of an elementwise function.

use super::Rule;
use super::kernels::Walk;
use crate::graph::Op;
use crate::graph::infer::infer;
use crate::plan::row_ops::has_slope;
use crate::plan::{Code, Instr, Source, is_word_type};
use crate::types::{DType, Type};

impl Walk<'_> {
    pub(super) fn map(&mut self, width: u32, code: &[Instr]) {
        if width == 0 || code.is_empty() {
            self.report(Rule::Maps, "a line has a width and instructions");
            return;
        }
        let mut locals: Vec<Option<DType>> = Vec::with_capacity(code.len());
        for (number, instr) in code.iter().enumerate() {
            let operands: Vec<Option<DType>> = instr
                .sources
                .iter()
                .map(|&source| self.source(number, instr, source, width, &locals))
                .collect();
            let result = match result(instr, &operands) {
                Ok(result) => Some(result),
                Err(message) => {
                    self.report(Rule::Maps, format!("instruction {number} {message}"));
                    None
                }
            };
            locals.push(result);
            let Some(store) = instr.store else { continue };
            let stored = self.write(store);
            let agrees = match (stored, result) {
                (Some(stored), Some(result)) => stored == result,
                _ => true,
            };
            if store.width != width || !agrees {
                let message = format!(
                    "instruction {number} must store {width} elements of its own type, found {}",
                    store.width
                );
                self.report(Rule::Maps, message);
            }
        }
    }

    /// The element type of a source; `None` for an invalid source or a constant.
    fn source(
        &mut self,
        number: usize,
        instr: &Instr,
        source: Source,
        width: u32,
        locals: &[Option<DType>],
    ) -> Option<DType> {
        match source {
            Source::Local(local) => match locals.get(local as usize) {
                Some(&dtype) => dtype,
                None => {
                    let message = format!("instruction {number} must read an earlier local, found {local}");
                    self.report(Rule::Maps, message);
                    None
                }
            },
            Source::View(view) | Source::Scalar(view) => {
                let wanted = if matches!(source, Source::View(_)) { width } else { 1 };
                if view.width != wanted {
                    let found = view.width;
                    let message = format!("instruction {number} must read {wanted} elements, found {found}");
                    self.report(Rule::Maps, message);
                }
                self.read(view)
            }
            Source::Const(bits) => {
                if instr.dtype == DType::Bool && bits > 1 {
                    let message =
                        format!("instruction {number} takes a truth value, found the constant {bits}");
                    self.report(Rule::Maps, message);
                }
                None
            }
        }
    }
}

/// The element type of an instruction's result on operands of these types. Unknown types fit.
fn result(instr: &Instr, operands: &[Option<DType>]) -> Result<DType, String> {
    let wanted = |place: usize| match instr.code {
        Code::Select if place == 0 => DType::Bool,
        _ => instr.dtype,
    };
    let types: Vec<Type> = (0..operands.len()).map(|place| Type::scalar(wanted(place))).collect();
    for (place, found) in operands.iter().enumerate() {
        if let Some(found) = found
            && *found != wanted(place)
        {
            return Err(format!("takes {} as operand {place}, found {found}", wanted(place)));
        }
    }
    if !is_word_type(instr.dtype) {
        return Err(format!("computes in f32, i32, u32 or bool, found {}", instr.dtype));
    }
    let op = match (instr.code.op(), instr.code) {
        (Some(op), _) => op,
        (None, Code::Slope(unary)) if has_slope(unary) => Op::Unary(unary),
        (None, Code::Slope(unary)) => return Err(format!("knows no slope of {}", unary.spelling())),
        // A copy.
        (None, _) if operands.len() == 1 => return Ok(instr.dtype),
        (None, _) => return Err(format!("takes one operand, found {}", operands.len())),
    };
    match infer(&op, &types, &[]) {
        Ok(results) => Ok(results[0].dtype),
        Err(error) => Err(format!("is no {}: {error}", op.spelling())),
    }
}
