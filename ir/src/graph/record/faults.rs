//! Recording the first fault. Later faults are usually consequences of the first.

use super::{Caller, Raw, Recorder};
use crate::graph::Site;
use crate::graph::args::Arg;
use crate::graph::emit::Graph;
use crate::graph::error::Fault;
use crate::graph::value::{NO_TYPE, TYPED_SUM, Value, is_sum_of_none};
use crate::id::{SigId, TypeId};
use crate::module::Module;
use std::collections::BTreeSet;

impl Recorder {
    /// Stores a fault while a cell is traced: cell bodies have no instances, outputs and marks.
    pub(super) fn refuse_in_cell(&mut self, what: &str, caller: Caller) -> bool {
        if self.tracing.is_some() {
            let help = "call it where the graph calls the cell";
            let message = format!("{what} is not allowed inside a cell");
            self.fail(what, message, Some(help.to_owned()), &[], caller);
        }
        self.tracing.is_some()
    }

    /// Stores a fault about a value of another graph, or about a sum of no values.
    #[cold]
    pub(crate) fn refuse_other_graph(&mut self, op: &str, value: Value<'_>, caller: Caller) {
        if is_sum_of_none(value) {
            return self.fail("sum", NO_TYPE.to_owned(), Some(TYPED_SUM.to_owned()), &[], caller);
        }
        let (other, own) = (value.graph().number(), self.number);
        let message = format!("the value belongs to graph {other}, it is used in graph {own}");
        let help = "emit it into this graph again, or bind its elements: g.input(&numbers)".to_owned();
        self.fail(op, message, Some(help), &[], caller);
    }

    /// Stores a fault about a handle from the builder of another module.
    #[cold]
    pub(super) fn refuse_other_module<T>(&mut self, op: &str, what: &str, caller: Caller) -> Option<T> {
        let module = &self.data.module.name;
        let message = format!("the {what} belongs to another module");
        let help =
            format!("the graph uses module {module}: use a handle from its builder, or look it up by name");
        self.fail(op, message, Some(help), &[], caller);
        None
    }

    /// Removes the words that a call bound before it failed.
    #[cold]
    pub(super) fn abandon<T>(&mut self, bound: usize) -> Option<T> {
        self.data.bindings.words.truncate(bound);
        None
    }

    /// Stores the fault of an argument of a call.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_arg<T>(
        &mut self,
        graph: &Graph,
        bound: usize,
        place: usize,
        arg: Arg<'_>,
        sig: SigId,
        caller: Caller,
    ) -> Option<T> {
        let found = match arg {
            Arg::Value(value) if !value.is_of(graph) => {
                self.refuse_other_graph("call", value, caller);
                return self.abandon(bound);
            }
            Arg::Value(value) if value.id().is_none() => return self.abandon(bound),
            Arg::Index(_) if self.tracing.is_some() => {
                self.refuse_bound::<T>("call", caller);
                return self.abandon(bound);
            }
            Arg::Value(value) => value.type_id(),
            Arg::Index(_) => Module::index_type(),
        };
        self.refuse_type::<T>(place, found, sig, caller);
        self.abandon(bound)
    }

    /// Stores a fault about the type of an argument.
    #[cold]
    pub(super) fn refuse_type<T>(
        &mut self,
        place: usize,
        found: TypeId,
        sig: SigId,
        caller: Caller,
    ) -> Option<T> {
        let signature = self.data.sigs.get(sig);
        let name = self.data.module.callee_name(signature.callee);
        let (expected, found) = (self.data.ty(signature.operands[place]), self.data.ty(found));
        self.refuse("call", format!("port {place} of {name} takes {expected}, found {found}"), caller)
    }

    /// Stores a fault about a number bound inside a cell. Tracing runs once, so all calls would share the number.
    #[cold]
    pub(super) fn refuse_bound<T>(&mut self, op: &str, caller: Caller) -> Option<T> {
        let help = "add a port for it, or use a constant: g.fill(shape, number)";
        let message = "numbers cannot be bound inside a cell".to_owned();
        self.fail(op, message, Some(help.to_owned()), &[], caller);
        None
    }

    #[cold]
    pub(super) fn refuse<T>(&mut self, op: &str, message: String, caller: Caller) -> Option<T> {
        self.fail(op, message, None, &[], caller);
        None
    }

    #[cold]
    pub(crate) fn fail(
        &mut self,
        op: &str,
        message: String,
        help: Option<String>,
        operands: &[Option<Raw<'_>>],
        caller: Caller,
    ) {
        if self.error.is_some() {
            return;
        }
        let context = match (&self.tracing, self.instance) {
            (Some(tracing), _) => {
                format!("in cell @{}, while tracing, before any instance was emitted", tracing.cell)
            }
            (None, Some(key)) => {
                let keys: BTreeSet<u64> = self.data.keys_before(key).collect();
                format!("in instance {} (key {key})", self.instances_before + keys.len())
            }
            (None, None) => "in the common prefix".to_owned(),
        };
        let operands = operands.iter().flatten().map(|operand| self.describe(*operand)).collect();
        let site = self.data.sites.current().cloned().unwrap_or_else(|| Site::from(caller));
        let fault = Fault { op: op.to_owned(), message, site, operands, help, context };
        assert!(!self.strict, "{fault}");
        self.error = Some(fault.into());
    }

    pub(super) fn describe(&self, operand: Raw<'_>) -> String {
        match operand {
            Raw::Value(id, ty) => format!("{id}: {}", self.data.ty(ty)),
            Raw::Index(index) => format!("#{index}"),
            Raw::Words(_, ty) | Raw::Floats(_, ty) => format!("bound {ty}"),
        }
    }
}
