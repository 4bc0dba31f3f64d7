//! `AUTOBATCH_DUMP=dir`: writes the plans of sessions as files for the command line.
//!
//! [`Session`](crate::Session) describes the files. All sessions of a process share one counter and one limit.
//! Files are written in place: a killed process leaves a cut file, which loading refuses, and no temporary one.

use crate::error::{Error, Result};
use autobatch_ir::graph::{GraphData, OutputKind};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{OutputKey, Plan};
use autobatch_ir::types::{DType, Type};
use autobatch_planner::Request;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// The extension of a graph as the model emitted it, beside the graph that passes made.
const EMITTED: &str = "emitted.abg";
/// The number of plans that a process writes if the variable names no limit.
const DEFAULT_LIMIT: u32 = 16;

/// Returns the number of graphs that the sessions of this process had for `AUTOBATCH_DUMP`, those beyond its limit
/// included.
#[must_use]
pub fn dumped() -> u32 {
    NEXT.load(Ordering::Relaxed)
}

/// Writes the plans of a session if the environment asks for it.
#[derive(Debug)]
pub(crate) struct Dump {
    folder: Option<PathBuf>,
    limit: u32,
}

/// The next number. All sessions of the process write to one folder.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The common part of the names of the files of a graph, such as `0003-train`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DumpName {
    number: u32,
    kind: &'static str,
}

impl DumpName {
    /// Returns a name that no other graph of the process has.
    pub(crate) fn next(kind: &'static str) -> Self {
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), kind }
    }

    /// Returns the name with the extension of a file.
    fn file(self, extension: &str) -> String {
        format!("{:04}-{}.{extension}", self.number, self.kind)
    }
}

/// The graph of a plan, with the values and losses of the plan there.
pub(crate) struct PlannedGraph<'a> {
    pub(crate) graph: &'a GraphData,
    pub(crate) wanted: &'a [ValueId],
    pub(crate) losses: &'a [ValueId],
    /// Whether passes made another graph from the emitted one.
    pub(crate) rewritten: bool,
}

impl Dump {
    /// Reads `dir` or `dir:limit` from the environment; an empty variable means none.
    pub(crate) fn from_environment() -> Result<Self> {
        Self::parse(std::env::var_os("AUTOBATCH_DUMP").unwrap_or_default())
    }

    /// The text behind the last colon is a limit, unless it is part of a path: `D:\dump`, `./a:b/`.
    fn parse(variable: OsString) -> Result<Self> {
        let limited = variable.to_str().and_then(|text| text.rsplit_once(':'));
        let (folder, limit) = match limited.filter(|(_, limit)| !limit.contains(['/', '\\'])) {
            Some((folder, limit)) => {
                let limit = limit.parse().map_err(|_| Error::DumpVariable(limit.to_owned()))?;
                (PathBuf::from(folder), limit)
            }
            None => (PathBuf::from(variable), DEFAULT_LIMIT),
        };
        Ok(Self { folder: Some(folder).filter(|folder| !folder.as_os_str().is_empty()), limit })
    }

    /// Whether plans are to be written.
    pub(crate) fn is_on(&self) -> bool {
        self.folder.is_some()
    }

    /// Writes a graph before planning. A growing graph keeps its name and is written again. Without a
    /// folder, and beyond the limit, there is no name.
    pub(crate) fn graph(
        &self,
        graph: &GraphData,
        request: &Request<'_>,
        known: Option<DumpName>,
    ) -> Result<Option<DumpName>> {
        if self.folder.is_none() {
            return Ok(None);
        }
        let kind = if request.gradients.is_some() { "train" } else { "infer" };
        let name = known.unwrap_or_else(|| DumpName::next(kind));
        if name.number >= self.limit {
            return Ok(None);
        }
        self.write(&name.file("abg"), &with_outputs(graph, request.wanted, &losses(request)).to_bytes())?;
        Ok(Some(name))
    }

    /// Writes the plan of a written graph. If passes rewrote the graph, the graph of the plan takes the place
    /// of the emitted one, which is renamed.
    pub(crate) fn plan(&self, name: Option<DumpName>, of: &PlannedGraph<'_>, plan: &Plan) -> Result<()> {
        let Some(name) = name else { return Ok(()) };
        let graph = with_outputs(of.graph, of.wanted, of.losses);
        let mut outputs = plan.outputs.clone();
        for output in &mut outputs {
            if let OutputKey::Value(value) = output.key {
                output.key = OutputKey::named(&value.to_string());
            }
        }
        let mut seen = BTreeSet::new();
        outputs.retain(|output| seen.insert(output.key.clone()));
        let plan = Plan { structure: graph.structure(), outputs, ..plan.clone() };
        if of.rewritten {
            self.rename(&name.file("abg"), &name.file(EMITTED))?;
            self.write(&name.file("abg"), &graph.to_bytes())?;
        }
        self.write(&name.file("abp"), &plan.to_bytes())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.in_folder(name, |path| std::fs::write(path, bytes))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.in_folder(to, |path| std::fs::rename(path.with_file_name(from), path))
    }

    fn in_folder(&self, name: &str, act: impl FnOnce(&PathBuf) -> std::io::Result<()>) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join(name);
        std::fs::create_dir_all(folder).and_then(|()| act(&path)).map_err(|error| {
            let told = std::io::Error::new(error.kind(), format!("{error}; set or unset AUTOBATCH_DUMP"));
            Error::Io { path: path.clone(), error: told }
        })
    }
}

/// Returns the values that a request differentiates.
pub(crate) fn losses(request: &Request<'_>) -> Vec<ValueId> {
    let losses = request.gradients.iter().flat_map(|gradients| gradients.losses);
    losses.map(|&(value, _)| value).collect()
}

/// Returns the graph with the values as additional outputs, named as plans name them. Scalars among the
/// losses become losses.
fn with_outputs(graph: &GraphData, wanted: &[ValueId], losses: &[ValueId]) -> GraphData {
    let losses: BTreeSet<ValueId> = losses.iter().copied().collect();
    let is_loss =
        |value: &ValueId| losses.contains(value) && graph.type_of(*value) == Type::scalar(DType::F32);
    let kind = |value: &ValueId| if is_loss(value) { OutputKind::Loss } else { OutputKind::Value };
    let mut named = graph.clone();
    named.add_outputs(wanted.iter().map(|value| (*value, kind(value))));
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::plan::Mode;
    use autobatch_ir::{Graph, Init, ModuleBuilder, f32};
    use autobatch_oracle::check::{Wanted, check};
    use autobatch_planner::{Gradients, Planner};

    #[test]
    fn the_variable_holds_a_folder_and_a_limit() {
        let parsed = |text: &str| {
            let Dump { folder, limit } = Dump::parse(text.into()).expect("the limit is a number");
            (folder.map(|folder| folder.display().to_string()), limit)
        };
        let some = |folder: &str, limit| (Some(folder.to_owned()), limit);
        assert_eq!(parsed("").0, None);
        assert_eq!(parsed("out/dir"), some("out/dir", DEFAULT_LIMIT));
        assert_eq!(parsed("out:5"), some("out", 5));
        assert_eq!(parsed("D:\\out"), some("D:\\out", DEFAULT_LIMIT));
        assert_eq!(parsed("D:\\out:7"), some("D:\\out", 7));
        assert_eq!(parsed("./a:b/"), some("./a:b/", DEFAULT_LIMIT));
        let error = Dump::parse("dump:abc".into()).expect_err("`abc` is no number").to_string();
        assert!(error.contains("`abc`") && error.contains("AUTOBATCH_DUMP"), "{error}");
    }

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
        wanted.extend(losses.iter().map(|&(loss, _)| loss));
        wanted.push(wanted[0]);
        let graph = g.data();
        let gradients = Some(Gradients { losses: &losses, params: None, values: &wanted[..1] });
        let request = Request { wanted: &wanted, mode: Mode::Train, gradients, ..Request::default() };
        let plan = Planner::default().plan(&graph, &request).expect("values are wanted");

        let folder = std::env::temp_dir().join(format!("autobatch-dump-{}", std::process::id()));
        let dump = || Dump { folder: Some(folder.clone()), limit: u32::MAX };
        let name = dump().graph(&graph, &request, None).expect("the folder can be made");
        let losses: Vec<ValueId> = losses.iter().map(|&(loss, _)| loss).collect();
        let of = PlannedGraph { graph: &graph, wanted: &wanted, losses: &losses, rewritten: false };
        dump().plan(name, &of, &plan).expect("the folder is there");
        let name = name.expect("it was written");
        let other = dump().graph(&graph, &request, None).expect("it is there").expect("it was written");
        assert_ne!(name.number, other.number, "two sessions write over each other's files");
        assert!(dump().graph(&graph, &request, Some(name)).is_ok());
        let none = Dump { folder: Some(folder.clone()), limit: other.number };
        assert!(none.graph(&graph, &request, None).expect("nothing is written").is_none());

        let mut files: Vec<String> = std::fs::read_dir(&folder)
            .expect("it was made")
            .map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let names = [name.file("abg"), name.file("abp"), other.file("abg")];
        assert_eq!(files, names, "a plan has the stem of its graph");
        assert!(files[1].starts_with("0") && files[1].ends_with("-train.abp"), "{files:?}");
        let read = |name: String| std::fs::read(folder.join(name)).expect("it was just written");
        let written = GraphData::from_bytes(&read(name.file("abg"))).expect("it is a graph");
        let dumped = Plan::from_bytes(&read(name.file("abp"))).expect("it is a plan, and sound");
        std::fs::remove_dir_all(&folder).expect("it was just made");

        let count = |kind| written.outputs.iter().filter(|output| output.kind == kind).count();
        assert_eq!([count(OutputKind::Value), count(OutputKind::Loss)], [3, 3]);
        Planner::default().plan(&written, &Request::default()).expect("its outputs are wanted");
        let proof = check(&dumped, &written, Wanted { values: &[], training: true }).expect("it is proven");
        assert_eq!((proof.losses.len(), proof.values.len()), (3, 1));
    }
}
