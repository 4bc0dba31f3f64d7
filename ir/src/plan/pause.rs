//! Pauses: plans that hand out results and then receive the gradients of these results.
//!
//! The losses of a model may lie outside of its graph. The plan of a vector-Jacobian product executes the forward waves and
//! pauses. The caller reads the outputs, computes their gradients, and binds them. The remaining waves are the reverse. No
//! forward step is executed twice, because every row stays.

use super::Plan;
use serde::{Deserialize, Serialize};

/// Where the execution of a plan pauses, and what arrives then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The number of waves before the pause.
    pub waves: u32,
    /// The numbers of the outputs whose gradients arrive. The gradients are bound floats. They follow the floats of the graph,
    /// in this order and without gaps.
    pub outputs: Vec<u32>,
}

impl Plan {
    /// The number of floats that are bound after the pause: those of the graph, then the gradients that arrive. Without a
    /// pause it is the number of floats of the graph.
    #[must_use]
    pub fn all_floats(&self) -> u64 {
        let outputs = self.pause.iter().flat_map(|pause| &pause.outputs);
        let width = |&output: &u32| {
            let field = self.outputs.get(output as usize).map(|output| output.field);
            field.and_then(|field| self.fields.get(field.index())).map_or(0, |field| field.width())
        };
        u64::from(self.floats) + outputs.map(|output| u64::from(width(output))).sum::<u64>()
    }

    /// The first step after the pause, or the number of steps if the plan does not pause.
    #[must_use]
    pub fn steps_before_pause(&self) -> usize {
        let Some(pause) = &self.pause else { return self.steps.len() };
        let last = (pause.waves as usize).checked_sub(1);
        last.map_or(0, |wave| self.waves.get(wave).map_or(self.steps.len(), |&end| end as usize))
    }
}
