//! Rules G1, G2 and G22 to G24 for graphs.

use super::nodes::Scope;
use super::{At, Rule, Verifier};
use crate::findings::{MAX_FINDINGS, brief};
use crate::graph::{GraphData, OutputKind};
use crate::types::{DType, Type};

/// Checks that the tables of a graph begin with those of its module.
pub(super) fn tables_extend(data: &GraphData) -> Result<(), String> {
    let module = &data.module;
    let sides = [
        ("types", data.types.items().starts_with(module.types.items())),
        ("signatures", data.sigs.items().starts_with(module.sigs.items())),
        ("sites", data.sites.items().starts_with(module.sites.items())),
    ];
    match sides.iter().find(|(_, extends)| !extends) {
        Some((side, _)) => Err(format!("the {side} must begin with those of module {}", brief(&module.name))),
        None => Ok(()),
    }
}

impl Verifier<'_> {
    pub(super) fn graph(&mut self, data: &GraphData) {
        if self.is_full() {
            return;
        }
        self.nodes(&data.arena, Scope::Graph(&data.bindings));
        self.cuts(data);
        self.outputs(data);
        self.marks(data);
    }

    fn cuts(&mut self, data: &GraphData) {
        let mut previous = 0;
        for (number, cut) in data.cuts.iter().enumerate() {
            let length = data.arena.len();
            if cut.first < previous || cut.first as usize > length {
                let first = cut.first;
                let message = format!("a cut must lie in {previous}..={length}, found {first}");
                self.report(Rule::Cuts, At::Cut(number), message);
            }
            previous = cut.first.max(previous);
        }
    }

    fn outputs(&mut self, data: &GraphData) {
        self.unique("output", data.outputs.iter().map(|output| output.name.as_str()).collect());
        for output in &data.outputs {
            let at = At::Output(&output.name);
            let Some(ty) = data.arena.value_types().get(output.value.index()) else {
                let message = format!("{} is not among {} values", output.value, data.arena.values());
                self.report(Rule::Outputs, at, message);
                continue;
            };
            let Some(ty) = self.types.get(ty.index()) else {
                self.report(Rule::Outputs, at, format!("{} has no type", output.value));
                continue;
            };
            if ty.is_list {
                self.report(Rule::Outputs, at, format!("an output cannot be a list, found {ty}"));
            } else if output.kind == OutputKind::Loss && *ty != Type::scalar(DType::F32) {
                self.report(Rule::Outputs, at, format!("a loss is a scalar f32, found {ty}"));
            }
        }
    }

    fn marks(&mut self, data: &GraphData) {
        let (values, nodes) = (data.arena.values(), data.arena.len());
        for value in data.shared.iter().filter(|value| value.index() >= values).take(MAX_FINDINGS) {
            self.report(Rule::Marks, At::Mark("shared"), format!("{value} is not among {values} values"));
        }
        for node in data.alone.iter().filter(|node| node.index() >= nodes).take(MAX_FINDINGS) {
            self.report(Rule::Marks, At::Mark("alone"), format!("{node} is not among {nodes} nodes"));
        }
    }
}
