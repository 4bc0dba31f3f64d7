//! Rules G4 and G8 to G17 for the nodes of a graph or a body.

use super::lists::{Length, Lengths};
use super::signatures::{Facts, Form};
use super::{At, Rule, Verifier};
use crate::graph::{Arena, Bindings, Callee, Op, Operand, OperandKind, ParamArg};
use crate::id::{CellId, NodeId};
use crate::module::{Body, Module};
use crate::types::DType;

/// The owner of the nodes.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    Graph(&'a Bindings),
    Body(CellId, &'a Body),
}

impl Scope<'_> {
    const fn cell(self) -> Option<CellId> {
        match self {
            Self::Graph(_) => None,
            Self::Body(cell, _) => Some(cell),
        }
    }
}

impl<'a> Verifier<'a> {
    /// Checks every node of an arena in order.
    pub(super) fn nodes(&mut self, arena: &Arena, scope: Scope<'_>) -> Lengths {
        let mut lengths = match scope {
            Scope::Graph(_) => Lengths::default(),
            Scope::Body(_, body) => Lengths::of_ports(body.ports),
        };
        for id in arena.ids() {
            if self.is_full() {
                break;
            }
            self.node(arena, id, scope, &mut lengths);
        }
        lengths
    }

    #[inline]
    fn node(&mut self, arena: &Arena, id: NodeId, scope: Scope<'_>, lengths: &mut Lengths) {
        let node = arena.node(id);
        let at = At::Node(scope.cell(), id, node.site);
        if node.site.index() >= self.sites.len() {
            let message = format!("{} is not among {} sites", node.site, self.sites.len());
            self.report(Rule::Ids, at, message);
        }
        let Some(&facts) = self.facts.get(node.sig.index()) else {
            let message = format!("{} is not among {} signatures", node.sig, self.sigs.len());
            return self.report(Rule::Ids, at, message);
        };
        if !facts.sound {
            return;
        }
        self.results(arena, id, &facts, at);
        match scope {
            Scope::Graph(_) if facts.in_graphs => {}
            Scope::Graph(_) => self.not_in_graphs(&facts, at),
            Scope::Body(cell, body) => self.in_body(cell, body, id, at),
        }
        self.operands(arena, id, &facts, scope, at);
        if facts.constrains_lists {
            self.lists(arena, id, &facts, lengths, at);
        }
    }

    #[inline]
    fn results(&mut self, arena: &Arena, id: NodeId, facts: &Facts<'_>, at: At<'_>) {
        let found = &arena.value_types()[arena.results(id)];
        if found.len() == facts.results.len() && found.iter().zip(facts.results).all(|(a, b)| a == b) {
            return;
        }
        let (expected, count) = (facts.results.len(), found.len());
        let message = if expected == count {
            "the results differ in type from the signature".to_owned()
        } else {
            format!("expected results: {expected}, found: {count}")
        };
        self.report(Rule::Results, at, message);
    }

    #[cold]
    fn not_in_graphs(&mut self, facts: &Facts<'_>, at: At<'_>) {
        if facts.form == Form::Port {
            self.report(Rule::Ports, at, "a graph has no ports; use an input");
        } else {
            self.report(Rule::ParamSource, at, "a graph names parameters of the module, found a port");
        }
    }

    fn in_body(&mut self, cell: CellId, body: &Body, id: NodeId, at: At<'_>) {
        let signature = &self.sigs[body.arena.node(id).sig.index()];
        let is_port = matches!(signature.callee, Callee::Op(Op::Port(_)));
        if is_port != (id.index() < body.ports) {
            let message = format!("exactly the first {} nodes must be ports", body.ports);
            self.report(Rule::Ports, at, message);
        }
        for (place, (&arg, &ty)) in signature.params.iter().zip(&signature.param_types).enumerate() {
            let message = match arg {
                ParamArg::Module(_) => {
                    format!("parameter argument {place} must be a port of the body, found one of the module")
                }
                ParamArg::Port(port) => match body.param_types.get(port as usize) {
                    Some(&declared) if declared == ty => continue,
                    Some(_) => format!("parameter argument {place} differs in type from port {port}"),
                    None => format!("the body has {} parameter ports, found @{port}", body.param_types.len()),
                },
            };
            self.report(Rule::ParamSource, at, message);
        }
        if signature.callee == Callee::Op(Op::Append) {
            self.report(Rule::Appends, at, "a body lists its items, only a graph appends to lists");
        }
        if let Callee::Cell(callee) = signature.callee
            && callee >= cell
        {
            let message = format!("{} is not declared earlier", self.cell_name(callee));
            self.report(Rule::CallOrder, at, message);
        }
    }

    #[inline]
    fn operands(&mut self, arena: &Arena, id: NodeId, facts: &Facts<'_>, scope: Scope<'_>, at: At<'_>) {
        let operands = arena.operands(id);
        if facts.form != Form::List && operands.len() != facts.operands.len() {
            let (expected, found) = (facts.operands.len(), operands.len());
            let message = format!("expected operands: {expected}, found: {found}");
            return self.report(Rule::OperandCount, at, message);
        }
        if let Form::Input { elements, dtype } = facts.form {
            return self.input(operands[0], elements, dtype, scope, at);
        }
        let earlier = arena.node(id).results;
        for (place, &operand) in operands.iter().enumerate() {
            let expected = facts.operands[if facts.form == Form::List { 0 } else { place }];
            let word = operand.word();
            // Values have no tag bits, so a single comparison finds an earlier value.
            if word < earlier && arena.value_types()[word as usize] == expected {
                continue;
            }
            self.other_operand(arena, id, place, facts, scope, at);
        }
        if facts.noisy {
            self.noise_key(arena, operands, scope, at);
        }
    }

    /// Checks an operand that is not an earlier value of the right type.
    fn other_operand(
        &mut self,
        arena: &Arena,
        id: NodeId,
        place: usize,
        facts: &Facts<'_>,
        scope: Scope<'_>,
        at: At<'_>,
    ) {
        let operand = arena.operands(id)[place];
        let expected = facts.operands[if facts.form == Form::List { 0 } else { place }];
        match (operand.kind(), scope) {
            (Some(OperandKind::Index(slot)), Scope::Graph(bindings)) if reads_index(facts, place) => {
                if slot as usize >= bindings.words.len() {
                    let words = bindings.words.len();
                    let message = format!("operand {place} is word {slot} of {words} bound words");
                    self.report(Rule::Pools, at, message);
                }
            }
            (Some(OperandKind::Value(value)), _) if value.index() >= arena.node(id).results as usize => {
                let message = format!("operand {place} is {value}, which no earlier node produces");
                self.report(Rule::Order, at, message);
            }
            (Some(OperandKind::Value(value)), _) => {
                let expected = self.types[expected.index()];
                let found = self.types.get(arena.type_of(value).index());
                let found = found.map_or_else(|| "no type".to_owned(), ToString::to_string);
                let message = format!("operand {place} must be {expected}, found {value} of {found}");
                self.report(Rule::OperandTypes, at, message);
            }
            (Some(_), Scope::Body(..)) => {
                self.report(Rule::Bindings, at, format!("operand {place} is a binding in a body"));
            }
            (Some(_), Scope::Graph(_)) => {
                let name = self.callee_name(facts.callee);
                self.report(
                    Rule::Bindings,
                    at,
                    format!("{name} does not accept a binding as operand {place}"),
                );
            }
            (None, _) => {
                let message = format!("operand {place} is the invalid word {:#x}", operand.word());
                self.report(Rule::Order, at, message);
            }
        }
    }

    #[inline]
    fn input(&mut self, operand: Operand, elements: usize, dtype: DType, scope: Scope<'_>, at: At<'_>) {
        let Scope::Graph(bindings) = scope else {
            return self.report(Rule::Bindings, at, "a body has no bindings; use a port");
        };
        let (slot, pool) = match (operand.kind(), dtype) {
            (Some(OperandKind::Data(slot)), DType::F32) => (slot as usize, bindings.floats.len()),
            (Some(OperandKind::Index(slot)), DType::U32 | DType::I32 | DType::Bool) => {
                (slot as usize, bindings.words.len())
            }
            _ => {
                let pool = if dtype == DType::F32 { "floats" } else { "words" };
                return self.report(Rule::Bindings, at, format!("an input of {dtype} takes bound {pool}"));
            }
        };
        if pool < elements || slot > pool - elements {
            let message = format!("{elements} elements from slot {slot} exceed a pool of {pool}");
            return self.report(Rule::Pools, at, message);
        }
        if dtype == DType::Bool
            && let Some(word) = bindings.words[slot..slot + elements].iter().find(|&&word| word > 1)
        {
            self.report(Rule::Pools, at, format!("a bool is 0 or 1, found {word}"));
        }
    }

    fn noise_key(&mut self, arena: &Arena, operands: &[Operand], scope: Scope<'_>, at: At<'_>) {
        let Some(start) = operands.len().checked_sub(2) else { return };
        // Other checks have covered bound words and values outside the arena.
        let values = operands[start..].iter().filter_map(|operand| operand.as_value());
        for value in values.filter(|value| value.index() < arena.values()) {
            let producer = arena.producer(value);
            let is_port = match scope {
                Scope::Graph(_) => false,
                Scope::Body(_, body) => {
                    let key = body.ports.saturating_sub(2)..body.ports;
                    body.noise && key.contains(&producer.index())
                }
            };
            let callee = self.facts.get(arena.node(producer).sig.index()).map(|facts| facts.callee);
            if !is_port && !matches!(callee, Some(Callee::Op(Op::ForkNoise { .. }))) {
                self.report(Rule::Noise, at, format!("{value} is not part of a noise key"));
            }
        }
    }

    fn lists(&mut self, arena: &Arena, id: NodeId, facts: &Facts<'_>, lengths: &mut Lengths, at: At<'_>) {
        let operands = arena.operands(id);
        let length = |lengths: &mut Lengths, place: usize| -> Option<Length> {
            lengths.of(arena, self.sigs, operands.get(place)?.as_value()?)
        };
        let mut clash = None;
        let mut join = |place: usize, other: Result<usize, Length>| {
            let other = other.map_or_else(Some, |place| length(lengths, place));
            if let (Some(a), Some(b)) = (length(lengths, place), other)
                && let Err(lengths) = lengths.join(a, b)
            {
                clash.get_or_insert(lengths);
            }
        };
        match facts.callee {
            Callee::Op(_) => join(operands.len().wrapping_sub(2), Ok(operands.len().wrapping_sub(1))),
            Callee::Cell(cell) => {
                for constraint in self.cells.get(cell.index()).map_or(&[][..], |facts| &facts.constraints) {
                    join(constraint.like as usize, Ok(constraint.port as usize));
                    if let Some(exactly) = constraint.exactly {
                        join(constraint.port as usize, Err(Length::Known(exactly)));
                    }
                }
            }
        }
        if let Some((a, b)) = clash {
            let name = self.callee_name(facts.callee);
            self.report(Rule::Lengths, at, format!("{name} takes lists of equal length, found {a} and {b}"));
        }
    }
}

/// Whether the operand at `place` may be a binding.
#[inline]
fn reads_index(facts: &Facts<'_>, place: usize) -> bool {
    facts.form == Form::Plain
        && facts.operands[place] == Module::index_type()
        && match facts.callee {
            Callee::Cell(_) => true,
            Callee::Op(Op::Lookup | Op::OneHot { .. } | Op::ForkNoise { .. }) => true,
            Callee::Op(Op::ListPick) => place == 0,
            Callee::Op(Op::Pick | Op::PickNegLogSoftmax | Op::Hinge { .. } | Op::LabelLoss) => place == 1,
            Callee::Op(Op::Dropout { .. }) => place > 0,
            Callee::Op(_) => false,
        }
}
