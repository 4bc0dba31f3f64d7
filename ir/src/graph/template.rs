//! Templates: a part of a graph that is recorded once and repeated with other operands.
//!
//! A [cell](crate::module::Cell) is one node, so its calls batch as a whole. A template repeats its nodes, and each of them
//! batches with whatever is like it: the rows of sequences of any lengths, for example.

use crate::graph::record::PartIds;
use crate::graph::{Callee, EmitError, Graph, GraphData, Op, Value, ValueKey};
use crate::id::ValueId;
use crate::module::Module;
use crate::types::{DType, INDEX, Type};
use std::panic::Location;
use std::sync::Arc;

/// A recorded part whose first nodes stand for the values that each repetition gives.
#[derive(Debug)]
pub struct Template {
    pub(super) data: GraphData,
    /// The number of values that a repetition gives.
    pub(super) inputs: usize,
    /// The words and floats that are bound to them.
    pub(super) words: usize,
    pub(super) floats: usize,
    results: Vec<ValueId>,
}

/// The ids that a template has in one graph.
#[derive(Debug, Default)]
pub struct TemplateIds {
    /// The number of the graph; `None` before the first repetition.
    pub(super) graph: Option<u32>,
    pub(super) part: PartIds,
    /// The first slots of its words and floats.
    pub(super) words: u32,
    pub(super) floats: u32,
    /// The values of its last repetition.
    pub(super) values: Vec<ValueId>,
}

impl Template {
    /// Begins a template: a graph over the module, and values of these types for the operands. The caller emits the part into
    /// the graph and passes it to [`end`](Self::end).
    ///
    /// ```
    /// use autobatch_ir::graph::{Template, TemplateIds};
    /// use autobatch_ir::{Graph, ModuleBuilder, types::f32};
    ///
    /// let module = ModuleBuilder::new("m").build().expect("no fault");
    /// let (graph, inputs) = Template::begin(&module, &[f32([3])]);
    /// let x = graph.value(inputs[0]).expect("an input of this graph");
    /// let result = (x + x).tanh().key().expect("no fault");
    /// let template = Template::end(graph, inputs.len(), &[result]).expect("no fault");
    ///
    /// let g = Graph::new(&module);
    /// let mut ids = TemplateIds::default();
    /// let once = g.repeat(&template, &mut ids, &[g.input(&[1.0; 3])]);
    /// let twice = g.repeat(&template, &mut ids, &once);
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

    /// Ends a template that [`begin`](Self::begin) began with this number of operands.
    ///
    /// # Errors
    /// The fault of the graph, or one if a result is no value of it or an operand.
    #[track_caller]
    pub fn end(graph: Graph, inputs: usize, results: &[ValueKey]) -> Result<Self, EmitError> {
        let location = Location::caller();
        let begins = graph
            .data()
            .arena
            .ids()
            .take(inputs)
            .all(|node| matches!(graph.data().signature(node).callee, Callee::Op(Op::Input(_))));
        let own = |key: &ValueKey| graph.value(*key).is_some() && key.id.index() >= inputs;
        if !begins || !results.iter().all(own) {
            let help = "return values that the template computes";
            graph.refuse("template", "a result is an operand, or of another graph", help, location);
        }
        let results = results.iter().map(|key| key.id).collect();
        Ok(Self::new(graph.finish()?, inputs, results))
    }

    /// A template of a finished graph, whose first nodes stand for its operands; `None` if they are no inputs, or a result is an
    /// operand.
    #[must_use]
    pub fn of(data: GraphData, inputs: usize, results: Vec<ValueId>) -> Option<Self> {
        let is_input = |node| match data.signature(node).callee {
            Callee::Op(Op::Input(ty)) => ty == INDEX || ty.dtype == DType::F32,
            _ => false,
        };
        let computed = inputs..data.arena.values();
        let fits = inputs <= data.arena.len() && data.arena.ids().take(inputs).all(is_input);
        let fits = fits && results.iter().all(|result| computed.contains(&result.index()));
        fits.then(|| Self::new(data, inputs, results))
    }

    fn new(data: GraphData, inputs: usize, results: Vec<ValueId>) -> Self {
        let (mut words, mut floats) = (0, 0);
        for ty in &data.arena.value_types()[..inputs] {
            let ty = data.types.get(*ty);
            if ty.dtype == DType::F32 { floats += ty.shape.elements() } else { words += 1 }
        }
        Self { data, inputs, words, floats, results }
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
        extends.then(|| Self { data, results: self.results.clone(), ..*self })
    }
}

impl Graph {
    /// Appends the nodes of a template, with these values in place of its operands. Returns its results, or one poison value
    /// after a fault. Nodes of the template that read no value, such as parameters, are appended once for each `ids`, which
    /// belongs to this template and may be new.
    #[track_caller]
    pub fn repeat<'g>(
        &'g self,
        template: &Template,
        ids: &mut TemplateIds,
        args: &[Value<'g>],
    ) -> Vec<Value<'g>> {
        let caller = Location::caller();
        if let Some(&foreign) = args.iter().find(|value| !value.is_of(self)) {
            self.refuse_other_graph(foreign, caller);
            return vec![Value::poison(self)];
        }
        let made =
            self.recorder(caller).and_then(|mut recorder| recorder.repeat(template, ids, args, caller));
        match made {
            Some(()) => template
                .results
                .iter()
                .map(|&result| self.nth(ids.values[result.index()].index() as u32, 0))
                .collect(),
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
            [made.affine(out, None).key(), made.key()].map(Option::unwrap)
        };
        let values: Vec<Value<'_>> = inputs.iter().map(|&key| part.value(key).unwrap()).collect();
        let shift = part.input(&[0.5; 4]);
        let results = emit(values[0], values[1], values[2], shift);
        let template = Template::end(part, inputs.len(), &results).unwrap();

        let (repeated, mut ids) = (Graph::new(&module), TemplateIds::default());
        let direct = Graph::new(&module);
        let rows = |g: &Graph| {
            [g.input(&[1.0; 4]), g.index(1), g.input_shaped([2, 4], &[2.0; 8])]
                .map(|value| value.key().unwrap())
        };
        let (mut one, mut other) = (rows(&repeated), rows(&direct));
        let shift = direct.input(&[0.5; 4]).key().unwrap();
        for _ in 0..3 {
            let args = one.map(|key| repeated.value(key).unwrap());
            one[0] = repeated.repeat(&template, &mut ids, &args)[1].key().unwrap();
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

        // Other types, another module, and results that are operands are faults.
        let g = Graph::new(&module);
        let x = g.input(&[1.0; 4]);
        assert!(
            g.repeat(&template, &mut TemplateIds::default(), &[x, x, x])[0].key().is_none()
                && g.check().is_err()
        );
        let g = Graph::new(&ModuleBuilder::new("other").build().unwrap());
        let args = [g.input(&[1.0; 4]), g.index(1), g.input_shaped([2, 4], &[2.0; 8])];
        assert!(g.repeat(&template, &mut TemplateIds::default(), &args)[0].key().is_none());
        let (part, inputs) = Template::begin(&module, &[f32([4])]);
        assert!(Template::end(part, 1, &inputs).is_err());
    }
}
