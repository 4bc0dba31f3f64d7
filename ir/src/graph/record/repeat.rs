//! Repeating a template.
//!
//! The first repetition interns the tables of the template and appends its bindings and the nodes that read no value, such as
//! parameters and constants. Further ones append the other nodes.

use super::parts::{PartIds, TOO_LARGE};
use super::{Caller, Recorder};
use crate::graph::Value;
use crate::graph::arena::{Operand, OperandKind};
use crate::graph::template::Template;
use crate::id::ValueId;

/// The ids that a template has in this graph.
#[derive(Debug)]
pub(super) struct Repeated {
    ids: PartIds,
    /// The first slots of its words and floats.
    words: u32,
    floats: u32,
    /// The values of its last repetition.
    values: Vec<ValueId>,
}

impl Recorder {
    /// Appends the nodes of a template behind its inputs, which read `args`. Returns the values of its results. Stores a fault if
    /// the template belongs to another module, the types of the operands differ or the graph would become too large.
    pub(crate) fn repeat(
        &mut self,
        template: &Template,
        args: &[Value<'_>],
        caller: Caller,
    ) -> Option<Vec<ValueId>> {
        let part = &template.data;
        if part.module.tag != self.data.module.tag {
            return self.refuse("repeat", "the template belongs to another module".to_owned(), caller);
        }
        if self.is_too_large_with(part) {
            return self.refuse("repeat", TOO_LARGE.to_owned(), caller);
        }
        let known = self.templates.remove(&template.number);
        let is_new = known.is_none();
        let mut own = known.unwrap_or_else(|| self.begin_repeating(template));
        let types = &part.arena.value_types()[..template.inputs];
        let fits = types.iter().map(|ty| own.ids.types[ty.index()]).eq(args.iter().map(|arg| arg.type_id()));
        let given = args.iter().map(|arg| arg.id()).collect::<Option<Vec<_>>>();
        let Some(given) = given.filter(|_| fits) else {
            let message = "the operands have other types than those of the template".to_owned();
            return self.refuse("repeat", message, caller);
        };
        own.values[..template.inputs].copy_from_slice(&given);
        for node in part.arena.ids().skip(template.inputs) {
            if !is_new && part.arena.operands(node).iter().all(|operand| operand.as_value().is_none()) {
                continue;
            }
            let (words, floats, values) = (own.words, own.floats, &own.values);
            let renamed = |operand: &Operand| match operand.kind() {
                Some(OperandKind::Value(id)) => Operand::value(values[id.index()]),
                Some(OperandKind::Index(slot)) => Operand::index(slot - template.words as u32 + words),
                Some(OperandKind::Data(slot)) => Operand::data(slot - template.floats as u32 + floats),
                None => *operand,
            };
            let first = own.ids.append(&mut self.data, part, node, renamed) as usize;
            for (place, value) in part.arena.results(node).enumerate() {
                own.values[value] = ValueId::new(first + place);
            }
        }
        let results = template.results.iter().map(|result| own.values[result.index()]).collect();
        self.templates.insert(template.number, own);
        Some(results)
    }

    /// Interns the tables of a template and appends the bindings behind those of its inputs.
    fn begin_repeating(&mut self, template: &Template) -> Repeated {
        let part = &template.data;
        let ids = self.intern_tables(part);
        let bindings = &mut self.data.bindings;
        let (words, floats) = (bindings.words.len() as u32, bindings.floats.len() as u32);
        bindings.words.extend_from_slice(&part.bindings.words[template.words..]);
        bindings.floats.extend_from_slice(&part.bindings.floats[template.floats..]);
        Repeated { ids, words, floats, values: vec![ValueId::new(0); part.arena.values()] }
    }
}
