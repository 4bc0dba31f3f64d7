//! Emits the graph of a recipe through the public emitter.

use super::kit::Kit;
use super::recipe::{Instance, Recipe, Step};
use super::stage::Stage;
use super::{losses, steps};
use autobatch_ir::{Graph, GraphData, Value};

impl Recipe {
    /// Emits the graph of the recipe.
    ///
    /// # Panics
    /// Panics if the emitter rejects the recipe, which is a defect of the recipes or of the emitter.
    #[must_use]
    pub fn graph(&self) -> GraphData {
        let (module, kit) = Kit::new(self);
        let g = Graph::new(&module);
        let mut prefix = Stage::new(&g, &kit, self.options, false);
        execute(&mut prefix, &self.prefix);
        let mut losses = Vec::new();
        for (number, instance) in self.instances.iter().enumerate() {
            g.instance(instance.key);
            losses.extend(self.instance(prefix.clone(), number, instance));
        }
        if self.total && !losses.is_empty() {
            g.common();
            g.output("total", g.list(&losses).mean());
        }
        g.finish().unwrap_or_else(|error| panic!("the emitter rejects a recipe: {error}\n{self:#?}"))
    }

    fn instance<'g>(
        &self,
        mut stage: Stage<'g, '_>,
        number: usize,
        instance: &Instance,
    ) -> Option<Value<'g>> {
        execute(&mut stage, &instance.steps);
        for (place, &pick) in instance.outputs.iter().enumerate() {
            if let Some(value) = stage.wanted(pick) {
                stage.g.output(&format!("y{number}_{place}"), value);
            }
        }
        let loss = losses::of_instance(&mut stage, instance.loss?);
        stage.g.loss(&format!("loss{number}"), loss);
        Some(loss)
    }
}

/// Emits every step in order.
pub(super) fn execute(stage: &mut Stage<'_, '_>, steps: &[Step]) {
    for step in steps {
        steps::take(stage, step);
    }
}
