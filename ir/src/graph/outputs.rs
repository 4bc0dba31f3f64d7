//! Outputs and losses of a graph.

use crate::graph::data::OutputKind;
use crate::graph::emit::Graph;
use crate::graph::record::Caller;
use crate::graph::value::Value;
use std::panic::Location;

/// Methods that name outputs.
impl Graph {
    /// Makes a value an output with a name. The caller can read it after the run.
    #[track_caller]
    pub fn output(&self, name: &str, value: Value<'_>) {
        self.add_output(name, value, OutputKind::Value, Location::caller());
    }

    /// Makes a scalar an output with a name and differentiates it.
    #[track_caller]
    pub fn loss(&self, name: &str, value: Value<'_>) {
        self.add_output(name, value, OutputKind::Loss, Location::caller());
    }

    fn add_output(&self, name: &str, value: Value<'_>, kind: OutputKind, caller: Caller) {
        if !value.is_of(self) {
            return self.refuse_other_graph(value, caller);
        }
        if let (Some(id), Some(mut recorder)) = (value.id(), self.recorder(caller)) {
            recorder.add_output(name, id, kind, caller);
        }
    }
}
