//! The small parts of text: quoted strings, initialisers and the attributes of ops.

use super::number::push_element;
use super::vocabulary::{Visitor, attributes};
use crate::graph::op::{Float, Fold, Op, Over, Permutation};
use crate::module::Init;
use crate::types::{DType, Shape, Type};
use std::convert::Infallible;
use std::fmt::{Display, Write as _};

/// The word of an initialiser and its numbers.
pub(super) fn init_words(init: &Init) -> (&'static str, Option<&[f32]>) {
    use std::slice::from_ref;
    match init {
        Init::Constant(number) => ("constant", Some(from_ref(number))),
        Init::Uniform(bound) => ("uniform", Some(from_ref(bound))),
        Init::Normal(deviation) => ("normal", Some(from_ref(deviation))),
        Init::Glorot(gain) => ("glorot", Some(from_ref(gain))),
        Init::He => ("he", None),
        Init::Saxe(gain) => ("saxe", Some(from_ref(gain))),
        Init::Values(numbers) => ("values", Some(numbers)),
    }
}

/// A quoted text, with what would end it or break the line escaped.
pub(crate) fn push_text(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            control if control.is_control() => out.extend(control.escape_unicode()),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// The word of an op with its attributes: `slice{axis=0 start=2 len=4}`.
pub(crate) fn push_op(out: &mut String, mut op: Op) {
    let mut text = op.spelling().to_owned();
    let mut writer = Writer { out: &mut text, open: false };
    let Ok(()) = attributes(&mut op, &mut writer);
    writer.close();
    out.push_str(&text);
}

/// Writes attributes: `{axis=0 start=2 len=4}`.
struct Writer<'a> {
    out: &'a mut String,
    open: bool,
}

impl Writer<'_> {
    fn name(&mut self, name: &str) {
        let behind_type = !self.open && self.out.contains(' ');
        self.out.push_str(if behind_type { " " } else { "" });
        self.out.push_str(if self.open { " " } else { "{" });
        self.open = true;
        self.out.push_str(name);
    }

    fn pair(&mut self, name: &str, value: impl Display) -> Result<(), Infallible> {
        self.name(name);
        write!(self.out, "={value}").expect("writing to a string does not fail");
        Ok(())
    }

    fn close(self) {
        self.out.push_str(if self.open { "}" } else { "" });
    }
}

impl Visitor for Writer<'_> {
    type Error = Infallible;

    fn ty(&mut self, ty: &mut Type) -> Result<(), Infallible> {
        write!(self.out, " {ty}").expect("writing to a string does not fail");
        Ok(())
    }

    fn axis(&mut self, name: &'static str, axis: &mut u8) -> Result<(), Infallible> {
        self.pair(name, axis)
    }

    fn number(&mut self, name: &'static str, number: &mut u32) -> Result<(), Infallible> {
        self.pair(name, number)
    }

    fn float(&mut self, name: &'static str, number: &mut Float) -> Result<(), Infallible> {
        self.element(name, DType::F32, &mut number.bits())
    }

    fn element(&mut self, name: &'static str, of: DType, bits: &mut u32) -> Result<(), Infallible> {
        self.name(name);
        self.out.push('=');
        push_element(self.out, of, *bits);
        Ok(())
    }

    fn flag(&mut self, name: &'static str, flag: &mut bool) -> Result<(), Infallible> {
        if *flag {
            self.name(name);
        }
        Ok(())
    }

    fn dtype(&mut self, name: &'static str, dtype: &mut DType) -> Result<(), Infallible> {
        self.pair(name, dtype)
    }

    fn shape(&mut self, name: &'static str, shape: &mut Shape) -> Result<(), Infallible> {
        self.pair(name, shape)
    }

    /// Axes that stay in place at the end go without saying.
    fn order(&mut self, name: &'static str, order: &mut Permutation) -> Result<(), Infallible> {
        let axes = &order.0;
        let moved = axes.iter().enumerate().rposition(|(place, &axis)| axis as usize != place);
        let list: Vec<String> = axes[..moved.map_or(0, |last| last + 1)].iter().map(u8::to_string).collect();
        self.pair(name, format_args!("[{}]", list.join(",")))
    }

    fn fold(&mut self, name: &'static str, fold: &mut Fold) -> Result<(), Infallible> {
        self.pair(name, fold.spelling())
    }

    fn over(&mut self, name: &'static str, over: &mut Over) -> Result<(), Infallible> {
        self.pair(name, over.spelling())
    }
}
