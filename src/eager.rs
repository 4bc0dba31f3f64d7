//! [`Eager`]: computes the emitted part of a graph one op at a time, with the reference evaluator.
//!
//! Use it to look into a model while it emits: it needs no planner and no batches, and it has every value,
//! not only the requested ones. The bits are those of a [`Session`], because the reference defines them.

use crate::error::{Error, Result};
use crate::row::{Row, RowBuf};
use crate::session::Session;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};
use autobatch_ir::numeric::noise::Noise;
use autobatch_ir::{Graph, Value};
use autobatch_oracle::reference::{self, Datum};
use std::cell::Ref;
use std::fmt;

/// The number of elements that a line shows.
const SHOWN: usize = 8;

/// The values of a graph, as far as the model had emitted it.
pub struct Eager<'g> {
    graph: &'g Graph,
    values: reference::Run<f32>,
}

impl fmt::Debug for Eager<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Eager").field("graph", &self.graph.number()).finish_non_exhaustive()
    }
}

impl Session {
    /// Computes everything emitted so far, one op at a time, with this session's weights and without dropout.
    /// A model may call it in the middle, to print the result of a line.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
    /// let g = session.graph();
    /// let x = g.input(&[1.0, -4.0]);
    /// let root = x.sqrt();
    /// println!("{}", session.eager(&g)?.show(root));   // %1 = sqrt  f32[2]  1 NaN  at src/main.rs:5:14
    /// let sum = root.sum() + 1.0;
    /// let eager = session.eager(&g)?;
    /// assert!(eager.value(sum).unwrap()[0].is_nan());
    /// let found = eager.first_not_finite().expect("the root of -4 is NaN");
    /// assert!(found.starts_with("%1 = sqrt"), "{found}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first fault of emitting, a graph of a module with other parameters, or an index out of range.
    #[track_caller]
    pub fn eager<'g>(&self, graph: &'g Graph) -> Result<Eager<'g>> {
        graph.check()?;
        self.check_module(&graph.data())?;
        let values =
            reference::forward(&graph.data(), self.weights(), Noise::Off).map_err(Error::Reference)?;
        Ok(Eager { graph, values })
    }
}

impl Eager<'_> {
    /// Returns the elements of a value. `None` for a list, for a later value, and for a value of another graph.
    #[track_caller]
    #[must_use]
    pub fn value(&self, value: Value<'_>) -> Option<RowBuf> {
        let own = std::ptr::eq(value.graph(), self.graph);
        self.row(value.id().filter(|_| own)?)
    }

    /// Describes a value in one line: its name, op, type, first elements and source line.
    #[track_caller]
    #[must_use]
    pub fn show(&self, value: Value<'_>) -> String {
        let own = std::ptr::eq(value.graph(), self.graph);
        match value.id().filter(|_| own) {
            Some(id) if self.values.value(id).is_some() => self.line(id),
            _ => "a value that was emitted after this evaluation, or in another graph".to_owned(),
        }
    }

    /// Finds the first value that holds NaN or an infinity while all its operands are finite, and describes it
    /// as [`show`](Self::show) does.
    #[must_use]
    pub fn first_not_finite(&self) -> Option<String> {
        let data = self.data();
        let strange =
            |id: ValueId| self.values.floats(id).is_some_and(|row| row.iter().any(|x| !x.is_finite()));
        let made_here = |node: &NodeId| {
            results(&data, *node).any(strange) && !self.operands(&data, *node).into_iter().any(strange)
        };
        let node = data.arena.ids().find(made_here)?;
        results(&data, node).find(|&id| strange(id)).map(|id| self.line(id))
    }

    fn data(&self) -> Ref<'_, GraphData> {
        self.graph.data()
    }

    /// Returns the operands of a node, with the elements of lists.
    fn operands(&self, data: &GraphData, node: NodeId) -> Vec<ValueId> {
        let named = data.arena.operands(node).iter().filter_map(|operand| operand.as_value());
        named.flat_map(|id| self.values.list(id).map_or_else(|| vec![id], <[ValueId]>::to_vec)).collect()
    }

    fn row(&self, id: ValueId) -> Option<RowBuf> {
        Some(match self.values.value(id)? {
            Datum::Floats(elements) => Row::new(elements).to_buf(),
            Datum::Words(words) => {
                RowBuf::of(Row::new(bytemuck::cast_slice(words)), self.data().type_of(id).dtype)
            }
            Datum::List(_) => return None,
        })
    }

    fn line(&self, id: ValueId) -> String {
        let data = self.data();
        let node = data.arena.producer(id);
        let name = data.module.callee_name(data.signature(node).callee);
        let elements = match self.values.value(id) {
            Some(Datum::Floats(row)) => listed(row),
            Some(Datum::Words(row)) => listed(row),
            Some(Datum::List(names)) => listed(names),
            None => " not computed".to_owned(),
        };
        let site = data.site(data.arena.node(node).site);
        format!("{id} = {name}  {} {elements}  at {site}", data.type_of(id))
    }
}

fn results(data: &GraphData, node: NodeId) -> impl Iterator<Item = ValueId> + use<> {
    data.arena.results(node).map(ValueId::new)
}

/// Returns the first elements and the number of the others.
fn listed<T: fmt::Display>(elements: &[T]) -> String {
    let mut line: String = elements.iter().take(SHOWN).map(|element| format!(" {element}")).collect();
    if let Some(more @ 1..) = elements.len().checked_sub(SHOWN) {
        line.push_str(&format!(" … {more} more"));
    }
    line
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn values_have_the_bits_of_a_session_and_grow_with_the_graph() -> Result<()> {
        let mut m = ModuleBuilder::new("m");
        let w = m.param("w", [3, 3], Init::Uniform(1.0));
        let cell = m.cell("cell", [f32([3])], |g, [x]| [g.affine([x], w, None).tanh()]);
        let mut session = Session::new(&m.build()?, Device::Cpu)?;
        let g = session.graph();
        let x = g.input(&[0.25, -1.5, 3.0]);
        let [h] = g.call(cell, x);
        let early = session.eager(&g)?;
        let (best, items) = (h.argmax(), g.list([x, h]));
        let eager = session.eager(&g)?;
        assert_eq!(early.value(best), None);
        assert_eq!(early.show(best), "a value that was emitted after this evaluation, or in another graph");
        assert_eq!(eager.value(items), None);
        for value in [x, h, best] {
            let row = eager.value(value).expect("it was computed");
            assert_eq!(row.words(), session.run(&g, [value])?[value].words());
        }
        assert_eq!(eager.first_not_finite(), None);
        let line = eager.show(best);
        assert!(line.contains(" = argmax  u32  2") && line.contains("src/eager.rs:"), "{line}");
        Ok(())
    }

    #[test]
    fn a_value_of_another_graph_has_no_elements() -> Result<()> {
        let session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
        let (one, two) = (session.graph(), session.graph());
        let (x, _) = (one.input(&[1.0]), two.input(&[2.0]));
        assert_eq!(session.eager(&two)?.value(x), None);
        Ok(())
    }

    #[test]
    fn the_first_not_finite_value_has_finite_operands() -> Result<()> {
        let session = Session::new(&ModuleBuilder::new("m").build()?, Device::Cpu)?;
        let g = session.graph();
        let x = g.input(&[0.0, 1.0]);
        let sound = x + x;
        let faulty = sound.log();
        let _ = g.list([faulty, sound]).sum();
        let found = session.eager(&g)?.first_not_finite().expect("the logarithm of 0");
        assert!(found.starts_with(&session.eager(&g)?.show(faulty)), "{found}");
        assert!(found.contains("-inf"), "{found}");
        Ok(())
    }
}
