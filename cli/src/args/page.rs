//! Options of `inspect`.

use super::path;
use clap::Args;

/// Options of `inspect`.
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// A graph.
    #[arg(value_parser = path, conflicts_with = "empty")]
    pub graph: Option<String>,
    /// A plan of the graph [default: the page plans with policy auto].
    #[arg(value_parser = path)]
    pub plan: Option<String>,
    /// Write a page without a graph, onto which files are dropped.
    #[arg(long)]
    pub empty: bool,
    /// Output file for the page, .html.
    #[arg(short, long, value_parser = path)]
    pub output: String,
}
