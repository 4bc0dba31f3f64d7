//! The printer of graphs and modules.
//!
//! It formats the word, attributes and parameters of a signature once and copies them for every node,
//! so printing takes a few dozen nanoseconds per node.

use super::number::{push_element, push_float, push_number};
use super::operand::{FLOATS, SLOT, WORDS};
use super::write::{init_words, push_list, push_op, push_text};
use super::{HEADER, UNKNOWN};
use crate::graph::op::Op;
use crate::graph::{
    Arena, Bindings, Callee, Cut, GraphData, OperandKind, Output, OutputKind, ParamArg, Signatures, Site,
    Sites,
};
use crate::id::{NodeId, SigId, SiteId, TypeId, ValueId};
use crate::module::{CellDecl, Export, Module, ParamDecl, ParamKind};
use crate::types::{DType, Type, Types};
use std::fmt::Display;
use std::ops::Range;

/// Prints a module.
pub(super) fn module(module: &Module) -> String {
    let mut printer = Printer::new(module, &module.types, &module.sigs, &module.sites);
    printer.module();
    printer.out
}

/// Prints a graph and its module.
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
        && arena.nodes().iter().any(|node| node.site.index() == own.start);
    printer.sites(own, silent);
    let slots = !names_each_binding_once(arena, sigs, bindings);
    if slots {
        printer.pools(bindings);
    }
    printer.stretches(arena, cuts, &BoundSlots { bindings, slots });
    printer.outputs_and_marks(outputs, shared, alone, arena);
    printer.out
}

/// The text of a signature, which begins the text of its nodes after their results.
struct Head {
    text: String,
    /// Whether the types of the results follow their names, unless the word of the op contains the type.
    typed: bool,
    /// Whether the text has parentheses even without operands.
    called: bool,
    /// The type of the bindings of an input.
    input: Option<Type>,
    /// The element type of a list, which the text of an empty list contains.
    element: Option<TypeId>,
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
        super::write::put(&mut self.out, thing);
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

    /// Prints the table of sites. `silent` leaves out the unknown site where the parser adds it by itself.
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
            push_list(&mut self.out, numbers, |out, &number| push_float(out, number));
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
        for (place, port) in body.arena.nodes().iter().take(body.ports).enumerate() {
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
        for node in body.arena.ids().skip(body.ports) {
            self.node(&body.arena, node, None);
        }
        self.out.push_str("  return");
        for (place, result) in body.results.iter().enumerate() {
            self.put(format_args!("{}{result}", if place == 0 { " " } else { ", " }));
        }
        self.out.push_str("\n}\n");
    }

    /// Prints the site of a port, even the unknown one: a port without a site has the site of its cell.
    fn port_site(&mut self, site: SiteId) {
        self.put(format_args!(" {site}"));
    }

    /// The bindings, for a graph whose nodes name their slots.
    fn pools(&mut self, Bindings { words, floats }: &Bindings) {
        let floats: Vec<u32> = floats.iter().map(|number| number.to_bits()).collect();
        for (name, dtype, pool) in [(WORDS, DType::U32, words), (FLOATS, DType::F32, &floats)] {
            if pool.is_empty() {
                continue;
            }
            self.put(format_args!("{name} ["));
            push_list(&mut self.out, pool, |out, &bits| push_element(out, dtype, bits));
            self.out.push_str("]\n");
        }
    }

    fn stretches(&mut self, arena: &Arena, cuts: &[Cut], bindings: &BoundSlots<'_>) {
        let mut cuts = cuts.iter().peekable();
        for node in arena.ids() {
            while let Some(cut) = cuts.next_if(|cut| cut.first as usize <= node.index()) {
                self.cut(cut);
            }
            self.node(arena, node, Some(bindings));
        }
        cuts.for_each(|cut| self.cut(cut));
    }

    fn cut(&mut self, cut: &Cut) {
        match cut.key {
            Some(key) => self.put(format_args!("instance {key}:\n")),
            None => self.out.push_str("common:\n"),
        }
    }

    fn outputs_and_marks(&mut self, outputs: &[Output], shared: &[ValueId], alone: &[NodeId], arena: &Arena) {
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
        for &node in alone {
            self.put(format_args!("alone %{}\n", arena.results(node).start));
        }
    }

    fn node(&mut self, arena: &Arena, id: NodeId, bindings: Option<&BoundSlots<'_>>) {
        let node = arena.node(id);
        let sig = node.sig;
        if self.heads[sig.index()].is_none() {
            self.heads[sig.index()] = Some(self.head(sig));
        }
        let Self { out, heads, type_texts, .. } = self;
        let Some(head) = &heads[sig.index()] else { return };
        let operands = arena.operands(id);
        let empty_list = head.element.filter(|_| operands.is_empty());
        out.push_str("  ");
        for value in arena.results(id) {
            out.push_str(if value == node.results as usize { "%" } else { ", %" });
            push_number(out, value as u64);
            if head.typed && empty_list.is_none() {
                out.push_str(": ");
                out.push_str(&type_texts[arena.value_types()[value].index()]);
            }
        }
        out.push_str(if arena.results(id).is_empty() { "" } else { " = " });
        out.push_str(&head.text);
        if let Some(element) = empty_list {
            out.push(' ');
            out.push_str(&type_texts[element.index()]);
            out.push_str(" ()");
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
        self.at(node.site);
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
        let is_whole = signature.callee == Callee::Op(Op::List);
        let element = is_whole.then(|| signature.operands.first().copied()).flatten();
        Head { text, typed, called, input, element }
    }
}

/// The bindings of a graph, and whether its nodes name their slots.
struct BoundSlots<'a> {
    bindings: &'a Bindings,
    slots: bool,
}

/// Whether the nodes bind every word and float once, in order. Then the text of a node holds its own bindings; a graph that was
/// rewritten or read from a file may share bindings or have unused ones.
fn names_each_binding_once(arena: &Arena, sigs: &Signatures, bindings: &Bindings) -> bool {
    let (mut words, mut floats) = (0usize, 0usize);
    for id in arena.ids() {
        let input = match sigs.get(arena.node(id).sig).callee {
            Callee::Op(Op::Input(ty)) => ty.shape.elements(),
            _ => 1,
        };
        for operand in arena.operands(id) {
            let (next, slot) = match operand.kind() {
                Some(OperandKind::Index(slot)) => (&mut words, slot),
                Some(OperandKind::Data(slot)) => (&mut floats, slot),
                _ => continue,
            };
            if slot as usize != *next {
                return false;
            }
            *next += input;
        }
    }
    words == bindings.words.len() && floats == bindings.floats.len()
}

/// Prints bindings, or `?` for slots outside the pools. Cell bodies have no pools.
fn push_bound(out: &mut String, kind: OperandKind, input: Option<Type>, bindings: Option<&BoundSlots<'_>>) {
    if let (Some(BoundSlots { slots: true, .. }), OperandKind::Index(slot) | OperandKind::Data(slot)) =
        (bindings, kind)
    {
        out.push_str(SLOT);
        out.push(' ');
        push_number(out, u64::from(slot));
        return;
    }
    let bindings = bindings.map(|bound| bound.bindings);
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

fn param_args(out: &mut String, module: &Module, params: &[ParamArg]) {
    for (place, &arg) in params.iter().enumerate() {
        out.push_str(if place == 0 { "[" } else { ", " });
        out.push_str(&module.param_name(arg));
    }
    out.push_str(if params.is_empty() { "" } else { "]" });
}
