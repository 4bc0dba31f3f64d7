//! Kernels to text.
//!
//! ```text
//! kernel k1 @node (%0: f32[2], %1: f32[2]) [@0: f32[4,6], @1: f32[6]] {
//!   temp %2: f32[6], %3: f32[2]
//!   prod %2 = @1 + %0 . @0[0..2] + %1 . @0[2..4]
//!   map 2 {
//!     t0 = sigmoid %2[0..2]
//!     t1 = tanh %2[2..4]
//!     t2 = mul t0, t1 -> %3
//!   }
//!   return %3
//! }
//! ```
//! Text omits defaults: the type of an operand that is a whole register, the element type `f32` of an instruction, and columns
//! from 0 on.

use super::print::{COLUMNS, is_plain};
use crate::graph::Op;
use crate::graph::text::lex::is_name;
use crate::graph::text::number::push_element;
use crate::graph::text::write::{push_list, push_op, push_text, put};
use crate::plan::{
    Code, Instr, Kernel, ListSource, ProdInit, ProductPart, Reg, RegKind, Roles, Source, Stage, View,
};
use crate::types::{DType, Type};

/// The text of kernel `k<number>`.
pub(super) fn kernel(out: &mut String, number: usize, kernel: &Kernel) {
    let Kernel { name, ports, params, regs, stages, results, source, roles } = kernel;
    put(out, format_args!("kernel k{number} "));
    out.push_str(if *source { "source " } else { "" });
    let cell = name.strip_prefix('@').is_some_and(|cell| !cell.is_empty() && cell.bytes().all(is_name));
    if cell || (is_plain(name) && name != "source") {
        out.push_str(name)
    } else {
        push_text(out, name)
    }
    let mut line = Line::of(out);
    for (place, reg) in regs.iter().take(*ports as usize).enumerate() {
        line.item(if place == 0 { " (" } else { ", " }, &format!("%{place}: {}", reg.ty));
    }
    line.out.push_str(if *ports == 0 { " ()" } else { ")" });
    for (place, ty) in params.iter().enumerate() {
        line.item(if place == 0 { " [" } else { ", " }, &format!("@{place}: {ty}"));
    }
    out.push_str(if params.is_empty() { " {\n" } else { "] {\n" });
    if let Some(roles) = roles {
        self::roles(out, roles);
    }
    registers(out, regs, *ports as usize);
    for stage in stages {
        self::stage(out, kernel, stage);
    }
    out.push_str("  return ");
    views(out, kernel, results);
    out.truncate(out.trim_end().len());
    out.push_str("\n}\n");
}

/// A line that is broken between items where it grows long.
struct Line<'a> {
    out: &'a mut String,
    start: usize,
}

impl<'a> Line<'a> {
    fn of(out: &'a mut String) -> Self {
        let start = out.rfind('\n').map_or(0, |newline| newline + 1);
        Self { out, start }
    }

    fn item(&mut self, separator: &str, item: &str) {
        if self.out.len() - self.start + separator.len() + item.len() > COLUMNS {
            self.out.push_str(separator.trim_end());
            self.start = self.out.len() + 1;
            self.out.push_str("\n      ");
        } else {
            self.out.push_str(separator);
        }
        self.out.push_str(item);
    }
}

/// `reverse gradient 0, operand 1 -> to 0, part`
fn roles(out: &mut String, Roles { ports, results }: &Roles) {
    let mut line = Line::of(out);
    line.out.push_str("  reverse");
    for (place, role) in ports.iter().enumerate() {
        line.item(if place == 0 { " " } else { ", " }, &role.to_string());
    }
    line.out.push_str(" ->");
    for (place, role) in results.iter().enumerate() {
        line.item(if place == 0 { " " } else { ", " }, &role.to_string());
    }
    out.push('\n');
}

/// Registers behind the ports, grouped by kind.
fn registers(out: &mut String, regs: &[Reg], ports: usize) {
    let word = |kind: &RegKind| match kind {
        RegKind::Port => "port",
        RegKind::Param(_) => "param",
        RegKind::Const(_) => "const",
        RegKind::Temp => "temp",
        RegKind::Edges => "edges",
    };
    let mut previous = "";
    let mut start = 0;
    for (number, Reg { kind, ty }) in regs.iter().enumerate().skip(ports) {
        if word(kind) == previous {
            let mut line = Line { out, start };
            line.item(", ", &format!("%{number}: {ty}"));
            start = line.start;
        } else {
            out.push_str(if previous.is_empty() { "" } else { "\n" });
            previous = word(kind);
            start = out.len();
            put(out, format_args!("  {previous} %{number}: {ty}"));
        }
        match *kind {
            RegKind::Port | RegKind::Temp | RegKind::Edges => {}
            RegKind::Param(param) => put(out, format_args!(" = {param}")),
            RegKind::Const(bits) => {
                out.push_str(" = ");
                push_element(out, ty.dtype, bits);
            }
        }
    }
    out.push_str(if previous.is_empty() { "" } else { "\n" });
}

fn stage(out: &mut String, kernel: &Kernel, stage: &Stage) {
    match stage {
        Stage::Prod { dst, rows, init, parts } => prod(out, kernel, *dst, *rows, init, parts),
        Stage::Map { width, code } => map(out, kernel, *width, code),
        Stage::Row { op, sources, dsts } => {
            out.push_str("  row ");
            views(out, kernel, dsts);
            out.push_str(if dsts.is_empty() { "= " } else { " = " });
            push_op(out, *op);
            out.push(' ');
            push_list(out, sources, |out, (source, ty)| {
                view(out, kernel, *source);
                told(out, *ty, whole_type(kernel, *source));
            });
        }
        Stage::Seg { op, query, lists, elements, dst } => {
            out.push_str("  seg ");
            view(out, kernel, *dst);
            out.push_str(" = ");
            fold(out, kernel, *op, *query);
            push_list(out, lists.iter().zip(elements), |out, (list, element)| {
                list_source(out, kernel, list);
                told(out, *element, element_type(kernel, list));
            });
        }
        Stage::SegGrad { op, query, lists, elements, dy, dsts } => {
            out.push_str("  unseg ");
            push_list(out, dsts, |out, dst| match dst {
                Some(reg) => put(out, format_args!("{reg}")),
                None => out.push_str("none"),
            });
            out.push_str(" = ");
            fold(out, kernel, *op, *query);
            push_list(out, lists.iter().zip(elements), |out, (&list, element)| {
                put(out, format_args!("{list}"));
                told(out, *element, element_type(kernel, &ListSource::Port(list)));
            });
            out.push_str(" from ");
            view(out, kernel, *dy);
        }
        Stage::MeanGrad { list, dy, dst } => {
            out.push_str("  unmean ");
            view(out, kernel, *dst);
            out.push_str(" = ");
            view(out, kernel, *dy);
            put(out, format_args!(" over {list}"));
        }
        Stage::AttendGrad { op, query, keys, values, dy, dst, reader } => {
            out.push_str("  unattend ");
            taken(out, kernel, &[*dst, *reader]);
            fold(out, kernel, *op, Some(*query));
            put(out, format_args!("{keys}, {values} from "));
            view(out, kernel, *dy);
        }
        Stage::AttendPull { op, key, value, readers, key_dst, value_dst } => {
            out.push_str("  pull ");
            taken(out, kernel, &[*key_dst, *value_dst]);
            push_op(out, *op);
            out.push(' ');
            views(out, kernel, &[*key, *value]);
            put(out, format_args!(" by {readers}"));
        }
        Stage::Lookup { param, index, dst } => {
            out.push_str("  lookup ");
            view(out, kernel, *dst);
            put(out, format_args!(" = {param}["));
            view(out, kernel, *index);
            out.push(']');
        }
        Stage::LabelLoss { param, x, label, dst, log_sum, slope } => {
            out.push_str("  label_loss ");
            view(out, kernel, *dst);
            out.push_str(", ");
            taken(out, kernel, &[*log_sum, *slope]);
            put(out, format_args!("{param} "));
            view(out, kernel, *x);
            out.push_str(" at ");
            view(out, kernel, *label);
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
}

/// `%8, none = `
fn taken(out: &mut String, kernel: &Kernel, dsts: &[Option<View>; 2]) {
    push_list(out, dsts, |out, dst| match dst {
        Some(dst) => view(out, kernel, *dst),
        None => out.push_str("none"),
    });
    out.push_str(" = ");
}

/// `attend{scale=0.5} %4 over `
fn fold(out: &mut String, kernel: &Kernel, op: Op, query: Option<View>) {
    push_op(out, op);
    if let Some(query) = query {
        out.push(' ');
        view(out, kernel, query);
    }
    out.push_str(" over ");
}

fn prod(out: &mut String, kernel: &Kernel, dst: View, rows: u32, init: &ProdInit, parts: &[ProductPart]) {
    out.push_str("  prod ");
    if rows != 1 {
        put(out, format_args!("{rows} x "));
    }
    view(out, kernel, dst);
    out.push_str(" = ");
    match init {
        ProdInit::Zero => out.push('0'),
        ProdInit::Bias(param) => put(out, format_args!("{param}")),
        ProdInit::View(init) => view(out, kernel, *init),
    }
    for ProductPart { source, param, row, col, transposed } in parts {
        out.push_str(" + ");
        view(out, kernel, *source);
        let end = u64::from(*row) + u64::from(source.width / rows.max(1));
        let word = if *transposed { "transposed " } else { "" };
        put(out, format_args!(" . {word}{param}[{row}..{end}"));
        if *col > 0 {
            put(out, format_args!(", {col}.."));
        }
        out.push(']');
    }
}

fn map(out: &mut String, kernel: &Kernel, width: u32, code: &[Instr]) {
    put(out, format_args!("  map {width} {{"));
    let short = code.len() == 1;
    out.push_str(if short { " " } else { "\n" });
    let digits = code.len().saturating_sub(1).max(1).ilog10() as usize + 1;
    for (number, Instr { code, dtype, sources, store }) in code.iter().enumerate() {
        put(out, format_args!("{}t{number:<digits$} = ", if short { "" } else { "    " }));
        match (code.op(), code) {
            (Some(op), _) => push_op(out, op),
            (None, Code::Slope(unary)) => put(out, format_args!("slope {}", unary.spelling())),
            (None, _) => out.push_str("copy"),
        }
        if *dtype != DType::F32 {
            put(out, format_args!(".{dtype}"));
        }
        for (place, source) in sources.iter().enumerate() {
            out.push_str(if place == 0 { " " } else { ", " });
            match *source {
                Source::Local(local) => put(out, format_args!("t{local}")),
                Source::View(of) => view(out, kernel, of),
                Source::Scalar(of) => {
                    out.push_str("shared ");
                    view(out, kernel, of);
                }
                Source::Const(bits) => push_element(out, *dtype, bits),
            }
        }
        if let Some(store) = store {
            out.push_str(" -> ");
            view(out, kernel, *store);
        }
        out.push_str(if short { "" } else { "\n" });
    }
    out.push_str(if short { " }" } else { "  }" });
}

fn list_source(out: &mut String, kernel: &Kernel, list: &ListSource) {
    match list {
        ListSource::Port(reg) => put(out, format_args!("{reg}")),
        ListSource::Views(items) => {
            out.push('[');
            views(out, kernel, items);
            out.push(']');
        }
    }
}

fn views(out: &mut String, kernel: &Kernel, views: &[View]) {
    push_list(out, views, |out, of| view(out, kernel, *of));
}

/// `%4`, `%4[128..256]` or `%4[3]`.
fn view(out: &mut String, kernel: &Kernel, view: View) {
    let View { reg, start, width } = view;
    put(out, format_args!("{reg}"));
    let whole = kernel.regs.get(reg.index()).map(|reg| reg.ty.shape.elements() as u32);
    if start == 0 && whole == Some(width) {
        return;
    }
    match width {
        1 => put(out, format_args!("[{start}]")),
        _ => put(out, format_args!("[{start}..{}]", u64::from(start) + u64::from(width))),
    }
}

fn told(out: &mut String, ty: Type, known: Option<Type>) {
    if known != Some(ty) {
        put(out, format_args!(": {ty}"));
    }
}

/// The type of a view that is a whole register.
pub(super) fn whole_type(kernel: &Kernel, view: View) -> Option<Type> {
    let ty = kernel.regs.get(view.reg.index())?.ty;
    (view.start == 0 && view.width as usize == ty.shape.elements()).then_some(ty)
}

/// The default type of a list's elements.
pub(super) fn element_type(kernel: &Kernel, list: &ListSource) -> Option<Type> {
    match list {
        ListSource::Port(reg) => kernel.regs.get(reg.index()).map(|reg| reg.ty.element()),
        ListSource::Views(items) => whole_type(kernel, *items.first()?),
    }
}
