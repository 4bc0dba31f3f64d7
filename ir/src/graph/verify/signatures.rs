//! Rules G4 to G7: the verifier checks each signature once, so that nodes only compare words.

use super::{At, Rule, Verifier};
use crate::graph::infer::infer;
use crate::graph::{Callee, Op, ParamArg, Signature};
use crate::id::{CellId, TypeId};
use crate::module::ParamKind;
use crate::types::{DType, Type};

/// The facts about a signature that its nodes are checked against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    /// Whether the signature itself is sound. The verifier skips nodes of other signatures.
    pub(super) sound: bool,
    /// Whether nodes of a graph may have it: it is not a port and has no parameter ports.
    pub(super) in_graphs: bool,
    pub(super) form: Form,
    pub(super) noisy: bool,
    /// Whether it constrains lengths of lists, here or inside the cell.
    pub(super) constrains_lists: bool,
    pub(super) callee: Callee,
    pub(super) operands: &'a [TypeId],
    pub(super) results: &'a [TypeId],
}

/// The form of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One operand per type of the signature.
    Plain,
    /// Any number of values of one type.
    List,
    /// A bound range of elements.
    Input { elements: usize, dtype: DType },
    /// No operands: a port.
    Port,
}

impl<'a> Verifier<'a> {
    /// Checks every signature. It runs after the bounds of cells and before their bodies.
    pub(super) fn signatures(&mut self) {
        self.facts.reserve_exact(self.sigs.len());
        for (number, signature) in self.sigs.iter().enumerate() {
            let checked = self.check_signature(signature);
            let sound = checked.is_ok();
            if let Err((rule, message)) = checked {
                self.report(rule, At::Signature(number), message);
            }
            self.facts.push(self.facts_of(signature, sound));
        }
    }

    fn facts_of(&self, signature: &'a Signature, sound: bool) -> Facts<'a> {
        let Signature { callee, operands, params, param_types: _, results } = signature;
        let form = match callee {
            Callee::Op(Op::List) => Form::List,
            Callee::Op(Op::Port(_)) => Form::Port,
            Callee::Op(Op::Input(ty)) => Form::Input { elements: ty.shape.elements(), dtype: ty.dtype },
            Callee::Op(_) | Callee::Cell(_) => Form::Plain,
        };
        let noisy = match callee {
            Callee::Op(op) => matches!(op, Op::Dropout { .. } | Op::ForkNoise { .. }),
            Callee::Cell(cell) => sound && self.module.cell_decl(*cell).body.noise,
        };
        let ported = params.iter().any(|arg| matches!(arg, ParamArg::Port(_)));
        Facts {
            sound,
            in_graphs: form != Form::Port && !ported,
            form,
            noisy,
            constrains_lists: matches!(
                callee,
                Callee::Op(Op::WeightedSum { .. } | Op::Attend { .. } | Op::GraphAttend { .. })
            ),
            callee: *callee,
            operands,
            results,
        }
    }

    fn check_signature(&self, signature: &Signature) -> Result<(), (Rule, String)> {
        let Signature { callee, operands, params, param_types, results } = signature;
        let named = || operands.iter().chain(&**param_types).chain(&**results);
        if let Some(outside) = named().find(|id| id.index() >= self.types.len()) {
            return Err((Rule::Ids, format!("{outside} is not among {} types", self.types.len())));
        }
        if params.len() != param_types.len() {
            let (args, types) = (params.len(), param_types.len());
            return Err((Rule::ParamTypes, format!("{args} parameter arguments have {types} types")));
        }
        for (place, (&arg, &ty)) in params.iter().zip(param_types).enumerate() {
            if let ParamArg::Module(id) = arg {
                let Some(decl) = self.module.params.get(id.index()) else {
                    let count = self.module.params.len();
                    return Err((Rule::Ids, format!("{id} is not among {count} parameters")));
                };
                let found = self.types[ty.index()];
                if found != decl.ty {
                    let declared = decl.ty;
                    let message =
                        format!("parameter argument {place} was declared {declared}, found {found}");
                    return Err((Rule::ParamTypes, message));
                }
            }
        }
        match callee {
            Callee::Op(op) => self.check_op(op, signature),
            Callee::Cell(cell) => self.check_cell(*cell, signature),
        }
    }

    fn check_op(&self, op: &Op, signature: &Signature) -> Result<(), (Rule, String)> {
        let resolve = |ids: &[TypeId]| -> Vec<Type> { ids.iter().map(|id| self.types[id.index()]).collect() };
        // Inferring a split costs one type per part, so the signature must contain all of them.
        if let Op::Split { parts, .. } = op
            && *parts as usize != signature.results.len()
        {
            let found = signature.results.len();
            return Err((Rule::Inference, format!("{parts} parts are {parts} results, found {found}")));
        }
        let inferred = infer(op, &resolve(&signature.operands), &resolve(&signature.param_types))
            .map_err(|error| (Rule::Inference, error.message))?;
        let found = resolve(&signature.results);
        if inferred != found {
            let message = format!("expected results {}, found {}", spelled(&inferred), spelled(&found));
            return Err((Rule::Inference, message));
        }
        Ok(())
    }

    fn check_cell(&self, cell: CellId, signature: &Signature) -> Result<(), (Rule, String)> {
        let Some(decl) = self.module.cells.get(cell.index()) else {
            let count = self.module.cells.len();
            return Err((Rule::Ids, format!("{cell} is not among {count} cells")));
        };
        if !self.cells[cell.index()].in_bounds {
            return Err((Rule::CellSignature, "the body of the cell is invalid".to_owned()));
        }
        let body = &decl.body;
        let results = body.results.iter().map(|&value| body.arena.type_of(value));
        let sides = [
            ("operands", signature.operands.iter().copied().eq(body.port_types())),
            ("parameter arguments", *signature.param_types == *body.param_types),
            ("results", signature.results.iter().copied().eq(results)),
        ];
        match sides.iter().find(|(_, equal)| !equal) {
            Some((side, _)) => {
                Err((Rule::CellSignature, format!("the {side} must have the types of the body")))
            }
            None => Ok(()),
        }
    }

    /// The second part of G7, after the verifier knows the table ports of all cells.
    pub(super) fn lookups(&mut self) {
        for number in 0..self.sigs.len() {
            if !self.facts[number].sound {
                continue;
            }
            let signature = &self.sigs[number];
            for (place, &arg) in signature.params.iter().enumerate() {
                let ParamArg::Module(id) = arg else { continue };
                let decl = self.module.param_decl(id);
                if self.reads_table(signature.callee, place) && decl.kind != ParamKind::Table {
                    let name = crate::findings::brief(&decl.name);
                    let message = format!("a lookup reads a table, @{name} is a dense parameter");
                    self.report(Rule::ParamTypes, At::Signature(number), message);
                }
            }
        }
    }

    /// Whether a callee reads its parameter argument at `place` as a table.
    pub(super) fn reads_table(&self, callee: Callee, place: usize) -> bool {
        match callee {
            Callee::Op(op) => matches!(op, Op::Lookup),
            Callee::Cell(cell) => {
                let tables = self.cells.get(cell.index()).map(|facts| &facts.tables);
                tables.and_then(|tables| tables.get(place)).copied().unwrap_or(false)
            }
        }
    }
}

/// A list of types, cut after the first few.
fn spelled(types: &[Type]) -> String {
    const SHOWN: usize = 8;
    let mut words: Vec<String> = types.iter().take(SHOWN).map(Type::to_string).collect();
    if types.len() > SHOWN {
        words.push(format!(".. {} in total", types.len()));
    }
    format!("({})", words.join(", "))
}
