//! Printing the small parts of text: quoted strings, initialisers and attributes of ops.

use super::number::push_element;
use super::vocabulary::{Attr, attributes};
use crate::graph::op::{Op, Permutation};
use crate::module::Init;
use crate::printable::is_printable;
use crate::types::DType;
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

/// Appends a quoted string with escapes for quotes, backslashes and control characters.
pub(crate) fn push_text(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            other if !is_printable(other) => out.extend(other.escape_unicode()),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Appends the word of an op with its attributes: `slice{axis=0 start=2 len=4}`.
pub(crate) fn push_op(out: &mut String, mut op: Op) {
    out.push_str(op.spelling());
    let (mut typed, mut open) = (false, false);
    let Ok(()) = attributes::<Infallible>(&mut op, &mut |name, attr| {
        match attr {
            Attr::Type(ty) => {
                put(out, format_args!(" {ty}"));
                typed = true;
                return Ok(());
            }
            Attr::Flag(false) => return Ok(()),
            _ => {}
        }
        out.push_str(match (open, typed) {
            (true, _) => " ",
            (false, true) => " {",
            (false, false) => "{",
        });
        open = true;
        out.push_str(name);
        push_value(out, attr);
        Ok(())
    });
    out.push_str(if open { "}" } else { "" });
}

/// Appends `=` and the value of an attribute; nothing for a flag.
fn push_value(out: &mut String, attr: Attr<'_>) {
    match attr {
        Attr::Type(_) | Attr::Flag(_) => {}
        Attr::Axis(axis) => put(out, format_args!("={axis}")),
        Attr::Number(number) => put(out, format_args!("={number}")),
        Attr::Float(number) => push_value(out, Attr::Element(DType::F32, &mut number.bits())),
        Attr::Element(dtype, bits) => {
            out.push('=');
            push_element(out, dtype, *bits);
        }
        Attr::DType(dtype) => put(out, format_args!("={dtype}")),
        Attr::Shape(shape) => put(out, format_args!("={shape}")),
        Attr::Order(order) => put(out, format_args!("=[{}]", moved_axes(order).join(","))),
        Attr::Fold(fold) => put(out, format_args!("={}", fold.spelling())),
        Attr::Over(over) => put(out, format_args!("={}", over.spelling())),
    }
}

/// The axes of a permutation without the trailing ones that stay in place.
fn moved_axes(order: &Permutation) -> Vec<String> {
    let axes = &order.0;
    let moved = axes.iter().enumerate().rposition(|(place, &axis)| axis as usize != place);
    axes[..moved.map_or(0, |last| last + 1)].iter().map(u8::to_string).collect()
}

/// Appends anything that displays.
pub(crate) fn put(out: &mut String, thing: impl Display) {
    write!(out, "{thing}").expect("writing to a string does not fail");
}

/// Appends items with commas between them.
pub(crate) fn push_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut push: impl FnMut(&mut String, T),
) {
    for (place, item) in items.into_iter().enumerate() {
        out.push_str(if place == 0 { "" } else { ", " });
        push(out, item);
    }
}
