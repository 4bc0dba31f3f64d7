//! `AUTOBATCH_DUMP=dir`: each graph that a session plans as a file, for the command line.

use crate::error::{Error, Result};
use autobatch_ir::graph::GraphData;
use std::path::PathBuf;

/// Writes the graphs that a session plans, if the environment asks for it.
#[derive(Debug)]
pub(crate) struct Dump {
    folder: Option<PathBuf>,
    written: u32,
}

impl Dump {
    pub(crate) fn from_environment() -> Self {
        Self { folder: std::env::var_os("AUTOBATCH_DUMP").map(PathBuf::from), written: 0 }
    }

    /// Writes the graph of a plan that was just made: `graph-0.abg`, `graph-1.abg`, ..
    pub(crate) fn graph(&mut self, graph: &GraphData) -> Result<()> {
        self.growing(graph, &mut None)
    }

    /// As [`graph`](Self::graph); a graph that grows keeps the number of its file, which is written anew.
    pub(crate) fn growing(&mut self, graph: &GraphData, number: &mut Option<u32>) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let number = *number.get_or_insert(self.written);
        self.written = self.written.max(number + 1);
        let path = folder.join(format!("graph-{number}.abg"));
        let write = || {
            std::fs::create_dir_all(folder)?;
            std::fs::write(&path, graph.to_bytes())
        };
        write().map_err(|error| Error::Io { path: path.clone(), error })
    }
}
