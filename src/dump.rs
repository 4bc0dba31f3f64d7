//! `AUTOBATCH_DUMP=dir`: writes the plans of sessions as files for the command line.
//!
//! Each plan gives three files with one number; all sessions of a process share the counter.
//! `graph-0.abg` is the graph as the model emitted it. `plan-0.abp` is the plan. `plan-0.abg` is the graph
//! of the plan, which passes may have rewritten. Both graphs declare the requested values as outputs and
//! losses, so every verb accepts them; `autobatch check plan-0.abg plan-0.abp` proves the plan.

use crate::error::{Error, Result};
use autobatch_ir::graph::{GraphData, Output, OutputKind};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{OutputKey, Plan};
use autobatch_ir::types::{DType, Type};
use autobatch_planner::Request;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes the plans of a session if the environment asks for it.
#[derive(Debug)]
pub(crate) struct Dump {
    folder: Option<PathBuf>,
}

/// The next number. All sessions of the process write to one folder.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The number of the files of a graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number(u32);

impl Dump {
    /// Writes into the folder that the environment names; an empty name means none.
    pub(crate) fn from_environment() -> Self {
        let folder = std::env::var_os("AUTOBATCH_DUMP").filter(|folder| !folder.is_empty());
        Self { folder: folder.map(PathBuf::from) }
    }

    /// Writes a graph before planning. A growing graph keeps its number and is written again. Without a
    /// folder there is no number.
    pub(crate) fn graph(
        &self,
        graph: &GraphData,
        request: &Request<'_>,
        known: Option<Number>,
    ) -> Result<Option<Number>> {
        if self.folder.is_none() {
            return Ok(None);
        }
        let number = known.unwrap_or_else(|| Number(NEXT.fetch_add(1, Ordering::Relaxed)));
        let losses = request.gradients.iter().flat_map(|gradients| gradients.losses).map(|&(value, _)| {
            let kind = match graph.type_of(value) == Type::scalar(DType::F32) {
                true => OutputKind::Loss,
                false => OutputKind::Value,
            };
            Output { name: format!("loss {value}"), value, kind }
        });
        let graph = with_outputs(graph, read(request.wanted).chain(losses));
        self.write(&format!("graph-{}.abg", number.0), &graph.to_bytes())?;
        Ok(Some(number))
    }

    /// Writes the plan of a written graph, and the graph of the plan with the requested values under their names there.
    pub(crate) fn plan(
        &self,
        number: Option<Number>,
        (graph, wanted): (&GraphData, &[ValueId]),
        plan: &Plan,
    ) -> Result<()> {
        let Some(Number(number)) = number else { return Ok(()) };
        let graph = with_outputs(graph, read(wanted));
        let mut outputs = plan.outputs.clone();
        for output in &mut outputs {
            if let OutputKey::Value(value) = output.key {
                output.key = OutputKey::named(&value.to_string());
            }
        }
        let mut seen = BTreeSet::new();
        outputs.retain(|output| seen.insert(output.key.clone()));
        let plan = Plan { structure: graph.structure(), outputs, ..plan.clone() };
        self.write(&format!("plan-{number}.abg"), &graph.to_bytes())?;
        self.write(&format!("plan-{number}.abp"), &plan.to_bytes())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join(name);
        let write = || {
            std::fs::create_dir_all(folder)?;
            autobatch_ir::files::write(&path, bytes)
        };
        write().map_err(|error| {
            let told = std::io::Error::new(error.kind(), format!("{error}; set or unset AUTOBATCH_DUMP"));
            Error::Io { path: path.clone(), error: told }
        })
    }
}

/// Returns the values as outputs, named as plans name them.
fn read(wanted: &[ValueId]) -> impl Iterator<Item = Output> {
    wanted.iter().map(|&value| Output { name: value.to_string(), value, kind: OutputKind::Value })
}

/// Returns the graph with additional outputs after its own, each name once.
fn with_outputs(graph: &GraphData, more: impl Iterator<Item = Output>) -> GraphData {
    let mut graph = graph.clone();
    let mut seen: BTreeSet<String> = graph.outputs.iter().map(|output| output.name.clone()).collect();
    graph.outputs.extend(more.filter(|output| seen.insert(output.name.clone())));
    graph
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::{Graph, Init, ModuleBuilder, f32};
    use autobatch_oracle::check::{Wanted, check};
    use autobatch_planner::{Gradients, Planner};

    #[test]
    fn dumped_files_can_be_planned_and_proven() {
        let mut m = ModuleBuilder::new("dump");
        let weight = m.param("w", [2, 2], Init::Glorot(1.0));
        let cell = m.cell("cell", [f32([2])], |g, [x]| [g.affine([x], weight, None).tanh()]);
        let module = m.build().expect("the model is well typed");
        let g = Graph::new(&module);
        let mut wanted = Vec::new();
        let mut losses = Vec::new();
        for key in 0..3 {
            g.instance(key);
            let [y] = g.call(cell, [g.input(&[1.0, key as f32])]);
            wanted.extend(y.id());
            losses.extend(y.cross_entropy(1).id().map(|loss| (loss, 1.0)));
        }
        wanted.push(wanted[0]);
        let graph = g.data();
        let gradients = Some(Gradients { losses: &losses, params: None, values: &wanted[..1] });
        let mode = autobatch_ir::plan::Mode::Train;
        let request = Request { wanted: &wanted, mode, gradients, ..Request::default() };
        let plan = Planner::default().plan(&graph, &request).expect("values are wanted");

        let folder = std::env::temp_dir().join(format!("autobatch-dump-{}", std::process::id()));
        let dump = Dump { folder: Some(folder.clone()) };
        let number = dump.graph(&graph, &request, None).expect("the folder can be made");
        dump.plan(number, (&graph, &wanted), &plan).expect("the folder is there");
        let other = Dump { folder: Some(folder.clone()) }.graph(&graph, &request, None).expect("it is there");
        let [Number(number), Number(other)] = [number, other].map(|number| number.expect("it was written"));
        assert_ne!(number, other, "two sessions write over each other's files");
        let read = |name: String| std::fs::read(folder.join(name)).expect("it was just written");
        let emitted = GraphData::from_bytes(&read(format!("graph-{number}.abg"))).expect("it is a graph");
        let spoken_of = GraphData::from_bytes(&read(format!("plan-{number}.abg"))).expect("it is a graph");
        let dumped = Plan::from_bytes(&read(format!("plan-{number}.abp"))).expect("it is a plan, and sound");
        std::fs::remove_dir_all(&folder).expect("it was just made");

        let count = |kind| emitted.outputs.iter().filter(|output| output.kind == kind).count();
        assert_eq!([count(OutputKind::Value), count(OutputKind::Loss)], [3, 3]);
        Planner::default().plan(&emitted, &Request::default()).expect("its outputs are wanted");
        let proof = check(&dumped, &spoken_of, Wanted { values: &[], training: true }).expect("it is proven");
        assert_eq!((proof.losses.len(), proof.values.len()), (3, 1));
    }
}
