//! Templates: a part of a graph that is recorded once and repeated with other operands.
//!
//! A [cell](crate::module::Cell) is one node, so its calls batch as a whole. A template repeats its nodes, and each of them
//! batches with whatever is like it: the rows of sequences of any lengths, for example.

use crate::graph::{Callee, Graph, GraphData, Op, OperandKind, Value, ValueKey};
use crate::id::{NodeId, ValueId};
use crate::module::Module;
use crate::types::{DType, INDEX, Type};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A recorded part whose first nodes stand for the values that each repetition gives.
#[derive(Debug)]
pub struct Template {
    /// Distinguishes templates within a process; never stored.
    pub(super) number: u64,
    pub(super) data: GraphData,
    /// The number of values that a repetition gives.
    pub(super) inputs: usize,
    /// The words and floats that are bound to them.
    pub(super) words: usize,
    pub(super) floats: usize,
    pub(super) results: Vec<ValueId>,
}

impl Template {
    /// Begins a template: a graph over the module, and values of these types for the operands. The caller emits the part into
    /// the graph, and passes what it finishes to [`of`](Self::of).
    ///
    /// ```
    /// use autobatch_ir::graph::Template;
    /// use autobatch_ir::{Graph, ModuleBuilder, types::f32};
    ///
    /// let module = ModuleBuilder::new("m").build().expect("no fault");
    /// let (graph, inputs) = Template::begin(&module, &[f32([3])]);
    /// let x = graph.value(inputs[0]).expect("an input of this graph");
    /// let result = (x + x).tanh().id().expect("no fault");
    /// let data = graph.finish().expect("no fault");
    /// let template = Template::of(data, inputs.len(), vec![result]).expect("the result is computed");
    ///
    /// let g = Graph::new(&module);
    /// let once = g.repeat(&template, &[g.input(&[1.0; 3])]);
    /// let twice = g.repeat(&template, &once);
    /// assert_eq!((twice[0].shape().dims(), g.data().arena.len()), (&[3][..], 5));
    /// ```
    #[track_caller]
    #[must_use]
    pub fn begin(module: &Arc<Module>, types: &[Type]) -> (Graph, Vec<ValueKey>) {
        let (graph, location) = (Graph::new(module), Location::caller());
        let mut inputs = Vec::with_capacity(types.len());
        for &ty in types {
            let value = match ty.dtype {
                DType::F32 => graph.input_shaped(ty.shape, &vec![0.0; ty.shape.elements()]),
                _ if ty == INDEX => graph.index(0),
                _ => graph.refuse(
                    "template",
                    &format!("an operand of type {ty}"),
                    "give floats or indices",
                    location,
                ),
            };
            inputs.extend(value.key());
        }
        (graph, inputs)
    }

    /// A template of a finished graph, whose first nodes stand for its operands. `None` if they are no inputs of floats or indices
    /// with bindings of their own, if it draws noise, or if a result is an operand.
    #[must_use]
    pub fn of(data: GraphData, inputs: usize, results: Vec<ValueId>) -> Option<Self> {
        let (mut words, mut floats) = (0, 0);
        for node in (0..inputs).map(NodeId::new) {
            match data.arena.nodes().get(node.index()).map(|_| data.signature(node).callee)? {
                Callee::Op(Op::Input(ty)) if ty == INDEX => words += 1,
                Callee::Op(Op::Input(ty)) if ty.dtype == DType::F32 => floats += ty.shape.elements(),
                _ => return None,
            }
        }
        let repeats = |node: NodeId| {
            // The bindings of the inputs come first, and no other node shares them.
            let is_input = node.index() < inputs;
            let own = data.arena.operands(node).iter().all(|operand| match operand.kind() {
                Some(OperandKind::Index(slot)) => ((slot as usize) < words) == is_input,
                Some(OperandKind::Data(slot)) => ((slot as usize) < floats) == is_input,
                Some(OperandKind::Value(_)) | None => true,
            });
            // Each repetition would draw the same noise.
            let is_noisy = match data.signature(node).callee {
                Callee::Op(op) => matches!(op, Op::Dropout { .. } | Op::ForkNoise { .. }),
                Callee::Cell(cell) => data.module.cells[cell.index()].body.noise,
            };
            own && !is_noisy
        };
        let computed = inputs..data.arena.values();
        if !data.arena.ids().all(repeats) || !results.iter().all(|result| computed.contains(&result.index()))
        {
            return None;
        }
        Some(Self { number: next_number(), data, inputs, words, floats, results })
    }

    /// The module of the graphs that repeat it.
    #[must_use]
    pub fn module(&self) -> &Arc<Module> {
        &self.data.module
    }

    /// The same template over a module that begins with the declarations of its own; `None` if the module does not.
    #[must_use]
    pub fn over(&self, module: &Arc<Module>) -> Option<Self> {
        let own = &self.data.module;
        let extends = module.params.starts_with(&own.params) && module.cells.starts_with(&own.cells);
        let data = GraphData { module: Arc::clone(module), ..self.data.clone() };
        extends.then(|| Self { number: next_number(), data, results: self.results.clone(), ..*self })
    }
}

/// A number that no other template of this process has.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Graph {
    /// Appends the nodes of a template, with these values in place of its operands. Returns its results, or one poison value
    /// after a fault. Nodes of the template that read no value, such as parameters, are appended once for the graph.
    #[track_caller]
    pub fn repeat<'g>(&'g self, template: &Template, args: &[Value<'g>]) -> Vec<Value<'g>> {
        let caller = Location::caller();
        if let Some(&foreign) = args.iter().find(|value| !value.is_of(self)) {
            self.refuse_other_graph(foreign, caller);
            return vec![Value::poison(self)];
        }
        let made = self.recorder(caller).and_then(|mut recorder| recorder.repeat(template, args, caller));
        match made {
            Some(results) => results.into_iter().map(|id| self.nth(id.index() as u32, 0)).collect(),
            None => vec![Value::poison(self)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::{Init, ModuleBuilder};
    use crate::types::f32;

    #[test]
    fn a_template_repeats_what_was_recorded() {
        let mut m = ModuleBuilder::new("m");
        let out = m.param("out", [4, 3], Init::ZEROS);
        let module = m.build().unwrap();
        let (part, inputs) = Template::begin(&module, &[f32([4]), INDEX, f32([2, 4])]);
        let emit = |x: Value<'_>, index: Value<'_>, rows: Value<'_>, shift: Value<'_>| {
            let made = (x + rows.pick(index) + rows.pick(1) + shift).tanh();
            [made.affine(out, None), made].map(|value| value.key().unwrap())
        };
        let values: Vec<Value<'_>> = inputs.iter().map(|&key| part.value(key).unwrap()).collect();
        let shift = part.input(&[0.5; 4]);
        let results = emit(values[0], values[1], values[2], shift);
        let template =
            Template::of(part.finish().unwrap(), inputs.len(), results.map(ValueKey::id).into()).unwrap();

        let (repeated, direct) = (Graph::new(&module), Graph::new(&module));
        let rows = |g: &Graph| {
            [g.input(&[1.0; 4]), g.index(1), g.input_shaped([2, 4], &[2.0; 8])]
                .map(|value| value.key().unwrap())
        };
        let (mut one, mut other) = (rows(&repeated), rows(&direct));
        let shift = direct.input(&[0.5; 4]).key().unwrap();
        for _ in 0..3 {
            let args = one.map(|key| repeated.value(key).unwrap());
            one[0] = repeated.repeat(&template, &args)[1].key().unwrap();
            let [x, index, rows, shift] =
                [other[0], other[1], other[2], shift].map(|key| direct.value(key).unwrap());
            other[0] = emit(x, index, rows, shift)[1];
        }
        let (repeated, direct) = (repeated.finish().unwrap(), direct.finish().unwrap());
        assert_eq!(repeated.arena.len(), direct.arena.len(), "the constant is there once");
        let callees =
            |data: &GraphData| data.arena.ids().map(|node| data.signature(node).callee).collect::<Vec<_>>();
        assert_eq!(callees(&repeated), callees(&direct));
        assert!(repeated.verify().is_ok());

        // Other types, another module, and results that are operands are refused.
        let g = Graph::new(&module);
        let x = g.input(&[1.0; 4]);
        assert!(g.repeat(&template, &[x, x, x])[0].key().is_none() && g.check().is_err());
        let g = Graph::new(&ModuleBuilder::new("other").build().unwrap());
        let args = [g.input(&[1.0; 4]), g.index(1), g.input_shaped([2, 4], &[2.0; 8])];
        assert!(g.repeat(&template, &args)[0].key().is_none());
        let (part, inputs) = Template::begin(&module, &[f32([4])]);
        assert!(Template::of(part.finish().unwrap(), 1, vec![inputs[0].id()]).is_none());
        let (part, _) = Template::begin(&module, &[f32([4])]);
        assert!(Template::of(part.finish().unwrap(), 2, Vec::new()).is_none());
    }
}
