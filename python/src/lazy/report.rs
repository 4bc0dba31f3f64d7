//! An account of a block: its batches, its methods, and the calls that torch computed.

use super::Block;
use super::engine::Engine;
use super::picture::picture;
use autobatch::ir::Graph;
use autobatch::ir::graph::ValueKey;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One flush: the nodes that were recorded for it, the batches of its plan, and the lower bound of that number.
type Flush = (u64, u32, u32);

/// A method that was called: its name, the number of its cells, and why it is recorded op by op, if it is.
pub(super) type MethodNote = (String, usize, Option<String>);

/// The pictures of one block.
const MAX_PICTURES: usize = 4;

/// The account.
#[derive(Default)]
pub(super) struct Report {
    flushes: Vec<Flush>,
    /// The pictures of the first ones; `None` where a graph is too large.
    pictures: Vec<Option<String>>,
    /// The calls that torch computed, by op, line and reason.
    eager: BTreeMap<(String, String, String), u64>,
}

impl Block {
    /// Notes a flush that an engine has computed.
    pub(super) fn note_flush(&self, py: Python<'_>, engine: &Engine, ops: u64) -> PyResult<()> {
        if let Some((batches, bound)) = engine.session().bind(py).get().batches()? {
            self.report.lock().flushes.push((ops, batches, bound));
        }
        Ok(())
    }

    /// Draws the graph of a flush, if the block draws and has not drawn many.
    pub(super) fn draw(&self, graph: &Graph, wanted: impl Iterator<Item = ValueKey>) {
        if self.draws && self.report.lock().pictures.len() < MAX_PICTURES {
            let drawn = picture(graph, &wanted.collect::<Vec<_>>());
            self.report.lock().pictures.push(drawn);
        }
    }

    pub(super) fn pictures(&self) -> Vec<Option<String>> {
        self.report.lock().pictures.clone()
    }

    /// Notes a call that torch computes.
    pub(super) fn note_eager(&self, py: Python<'_>, name: &str, why: &str) {
        let call = (name.to_owned(), self.place(py), why.to_owned());
        *self.report.lock().eager.entry(call).or_default() += 1;
    }

    /// The flushes, the methods, and the calls that torch computed.
    #[expect(clippy::type_complexity, reason = "the parts that Python writes down")]
    pub(super) fn account(
        self: &Arc<Self>,
        py: Python<'_>,
    ) -> PyResult<(Vec<Flush>, Vec<MethodNote>, Vec<(String, String, String, u64)>)> {
        let methods = self.lock()?.engine.methods.notes(py)?;
        let report = self.report.lock();
        let eager = report
            .eager
            .iter()
            .map(|((name, place, why), &calls)| (name.clone(), place.clone(), why.clone(), calls));
        Ok((report.flushes.clone(), methods, eager.collect()))
    }
}
