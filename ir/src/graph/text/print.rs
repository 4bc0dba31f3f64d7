//! Graphs and modules to text.
//!
//! What an application shares with all of its signature (word, attributes, parameters) is spelled
//! once and copied afterwards, so printing costs a few dozen nanoseconds an application.

use super::number::{push_element, push_float, push_number};
use super::vocabulary::{Visitor, attributes};
use super::{HEADER, UNKNOWN};
use crate::graph::op::{Float, Fold, Op, Over, Permutation};
use crate::graph::{
    Arena, Bindings, Callee, Cut, GraphData, OperandKind, Output, OutputKind, ParamArg, Signatures, Site,
    Sites,
};
use crate::id::{AppId, SigId, SiteId, TypeId, ValueId};
use crate::module::{CellDecl, Export, Init, Module, ParamDecl, ParamKind};
use crate::types::{DType, Shape, Type, Types};
use std::convert::Infallible;
use std::fmt::{Display, Write as _};
use std::ops::Range;

/// The text of a module alone.
pub(super) fn module(module: &Module) -> String {
    let mut printer = Printer::new(module, &module.types, &module.sigs, &module.sites);
    printer.module();
    printer.out
}

/// The text of a graph and its module.
pub(super) fn graph(graph: &GraphData) -> String {
    let GraphData {
        module,
        types,
        sigs,
        sites,
        arena,
        cuts,
        outputs,
        shared,
        alone,
        bindings,
        hash: _, // derived
    } = graph;
    let mut printer = Printer::new(module, types, sigs, sites);
    printer.out.reserve(arena.len().saturating_mul(32));
    printer.module();
    printer.out.push_str("\ngraph\n");
    let own = module.sites.items().len()..sites.items().len();
    let silent = own.len() == 1
        && !module.sites.items().contains(&UNKNOWN)
        && arena.apps().iter().any(|app| app.site.index() == own.start);
    printer.sites(own, silent);
    printer.stretches(arena, cuts, bindings);
    printer.wants(outputs, shared, alone, arena);
    printer.out
}

/// What the text of an application begins with, after its results.
struct Head {
    text: String,
    /// Whether the types of the results stand behind their names: not where the text says them.
    typed: bool,
    /// Whether parentheses stand even around no operands.
    called: bool,
    /// The type of the numbers that an input binds.
    input: Option<Type>,
}

struct Printer<'a> {
    out: String,
    module: &'a Module,
    types: &'a Types,
    sigs: &'a Signatures,
    sites: &'a Sites,
    heads: Vec<Option<Head>>,
    type_texts: Vec<String>,
}

impl<'a> Printer<'a> {
    fn new(module: &'a Module, types: &'a Types, sigs: &'a Signatures, sites: &'a Sites) -> Self {
        let heads = sigs.items().iter().map(|_| None).collect();
        let type_texts = types.items().iter().map(Type::to_string).collect();
        Self { out: format!("{HEADER}\n"), module, types, sigs, sites, heads, type_texts }
    }

    fn put(&mut self, thing: impl Display) {
        write!(self.out, "{thing}").expect("writing to a string does not fail");
    }

    fn module(&mut self) {
        let Module { tag: _, name, types: _, sigs: _, sites, params, cells, exports } = self.module;
        self.out.push_str("module ");
        push_text(&mut self.out, name);
        self.out.push('\n');
        let declares = !(params.is_empty() && cells.is_empty());
        self.sites(0..sites.items().len(), declares && sites.items().len() == 1);
        if !params.is_empty() {
            self.out.push('\n');
        }
        for param in params {
            self.param(param);
        }
        for cell in cells {
            self.cell(cell);
        }
        if !exports.is_empty() {
            self.out.push('\n');
        }
        for Export { name, sig } in exports {
            let signature = self.sigs.get(*sig);
            self.put(format_args!("export @{name} = {}", self.module.callee_name(signature.callee)));
            param_args(&mut self.out, self.module, &signature.params);
            self.out.push('\n');
        }
    }

    /// The table of source lines. Where the unknown site is the only one and something has it, a
    /// reader comes to the same table by itself.
    fn sites(&mut self, own: Range<usize>, silent: bool) {
        for number in own {
            let site = &self.sites.items()[number];
            if silent && *site == UNKNOWN {
                continue;
            }
            let Site { file, line, column } = site;
            self.put(format_args!("site !{number} "));
            push_text(&mut self.out, file);
            self.put(format_args!(" {line}:{column}\n"));
        }
    }

    fn at(&mut self, site: SiteId) {
        if *self.sites.get(site) != UNKNOWN {
            self.out.push_str(" !");
            push_number(&mut self.out, site.index() as u64);
        }
    }

    fn param(&mut self, param: &ParamDecl) {
        let ParamDecl { name, kind, ty, init, site } = param;
        let word = match kind {
            ParamKind::Param => "param",
            ParamKind::Table => "table",
        };
        self.put(format_args!("{word} @{name} {ty} = "));
        let (word, numbers) = init_words(init);
        self.out.push_str(word);
        if let Some(numbers) = numbers {
            self.out.push('(');
            for (place, &number) in numbers.iter().enumerate() {
                self.out.push_str(if place == 0 { "" } else { ", " });
                push_float(&mut self.out, number);
            }
            self.out.push(')');
        }
        self.at(*site);
        self.out.push('\n');
    }

    fn cell(&mut self, cell: &CellDecl) {
        let CellDecl { name, body, site } = cell;
        self.put(format_args!("\ncell @{name}"));
        for (place, ty) in body.param_types.iter().enumerate() {
            let mark = if place == 0 { "[" } else { ", " };
            self.put(format_args!("{mark}@{place}: {}", self.types.get(*ty)));
        }
        self.out.push_str(if body.param_types.is_empty() { "(" } else { "](" });
        for (place, port) in body.arena.apps().iter().take(body.ports).enumerate() {
            let mark = if place == 0 { "" } else { ", " };
            let ty = body.arena.value_types()[place];
            self.put(format_args!("{mark}%{place}: {}", self.types.get(ty)));
            if port.site != *site {
                self.port_site(port.site);
            }
        }
        self.out.push_str(if body.noise { ") noise" } else { ")" });
        self.at(*site);
        self.out.push_str(" {\n");
        for app in body.arena.ids().skip(body.ports) {
            self.app(&body.arena, app, None);
        }
        self.out.push_str("  return");
        for (place, result) in body.results.iter().enumerate() {
            self.put(format_args!("{}{result}", if place == 0 { " " } else { ", " }));
        }
        self.out.push_str("\n}\n");
    }

    /// A port's site says even that it is unknown, because silence means the cell's.
    fn port_site(&mut self, site: SiteId) {
        self.put(format_args!(" {site}"));
    }

    fn stretches(&mut self, arena: &Arena, cuts: &[Cut], bindings: &Bindings) {
        let mut cuts = cuts.iter().peekable();
        for app in arena.ids() {
            while let Some(cut) = cuts.next_if(|cut| cut.first as usize <= app.index()) {
                self.cut(cut);
            }
            self.app(arena, app, Some(bindings));
        }
        cuts.for_each(|cut| self.cut(cut));
    }

    fn cut(&mut self, cut: &Cut) {
        match cut.key {
            Some(key) => self.put(format_args!("instance {key}:\n")),
            None => self.out.push_str("common:\n"),
        }
    }

    fn wants(&mut self, outputs: &[Output], shared: &[ValueId], alone: &[AppId], arena: &Arena) {
        for Output { name, value, kind } in outputs {
            self.out.push_str(match kind {
                OutputKind::Value => "output ",
                OutputKind::Loss => "loss ",
            });
            push_text(&mut self.out, name);
            self.put(format_args!(" {value}\n"));
        }
        for value in shared {
            self.put(format_args!("shared {value}\n"));
        }
        for &app in alone {
            self.put(format_args!("alone %{}\n", arena.results(app).start));
        }
    }

    fn app(&mut self, arena: &Arena, id: AppId, bindings: Option<&Bindings>) {
        let app = arena.app(id);
        let sig = app.sig;
        if self.heads[sig.index()].is_none() {
            self.heads[sig.index()] = Some(self.head(sig));
        }
        let Self { out, heads, type_texts, .. } = self;
        let Some(head) = &heads[sig.index()] else { return };
        let operands = arena.operands(id);
        let bare_list = operands.is_empty() && !head.called && head.typed && head.text == "list";
        out.push_str("  ");
        for value in arena.results(id) {
            out.push_str(if value == app.results as usize { "%" } else { ", %" });
            push_number(out, value as u64);
            if head.typed && !bare_list {
                out.push_str(": ");
                out.push_str(&type_texts[arena.value_types()[value].index()]);
            }
        }
        out.push_str(if arena.results(id).is_empty() { "" } else { " = " });
        out.push_str(&head.text);
        if bare_list {
            out.push(' ');
            out.push_str(&element_text(self.types, self.sigs.get(sig).operands.first()));
        }
        if !operands.is_empty() || head.called {
            out.push_str(if head.input.is_some() { " (" } else { "(" });
            for (place, operand) in operands.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { ", " });
                match operand.kind() {
                    Some(OperandKind::Value(value)) => {
                        out.push('%');
                        push_number(out, value.index() as u64);
                    }
                    Some(kind) => push_bound(out, kind, head.input, bindings),
                    None => out.push('?'),
                }
            }
            out.push(')');
        }
        self.at(app.site);
        self.out.push('\n');
    }

    fn head(&self, sig: SigId) -> Head {
        let signature = self.sigs.get(sig);
        let mut text = String::new();
        let (typed, called, input) = match signature.callee {
            Callee::Cell(_) => {
                text.push_str("call ");
                text.push_str(&self.module.callee_name(signature.callee));
                (false, true, None)
            }
            Callee::Op(op) => {
                push_op(&mut text, op);
                let input = if let Op::Input(ty) = op { Some(ty) } else { None };
                (!matches!(op, Op::Input(_) | Op::Fill { .. } | Op::Port(_)), false, input)
            }
        };
        param_args(&mut text, self.module, &signature.params);
        Head { text, typed, called, input }
    }
}

fn element_text(types: &Types, element: Option<&TypeId>) -> String {
    element.map_or_else(|| "?".to_owned(), |&ty| types.get(ty).to_string())
}

/// Bound numbers. In the body of a cell none are legal, and no pool holds them.
fn push_bound(out: &mut String, kind: OperandKind, input: Option<Type>, bindings: Option<&Bindings>) {
    out.push('#');
    let ty = input.unwrap_or(crate::types::INDEX);
    let many = ty.shape.rank() > 0;
    out.push_str(if many { "[" } else { "" });
    for place in 0..ty.shape.elements() {
        out.push_str(if place == 0 { "" } else { ", " });
        let element = bindings.and_then(|Bindings { words, floats }| match kind {
            OperandKind::Index(slot) => words.get(slot as usize + place).copied(),
            OperandKind::Data(slot) => floats.get(slot as usize + place).map(|number| number.to_bits()),
            OperandKind::Value(_) => None,
        });
        match element {
            Some(bits) => push_element(out, ty.dtype, bits),
            None => {
                out.push('?');
                break;
            }
        }
    }
    out.push_str(if many { "]" } else { "" });
}

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

fn param_args(out: &mut String, module: &Module, params: &[ParamArg]) {
    for (place, &arg) in params.iter().enumerate() {
        out.push_str(if place == 0 { "[" } else { ", " });
        out.push_str(&module.param_name(arg));
    }
    out.push_str(if params.is_empty() { "" } else { "]" });
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
