//! Options of the verbs that inspect graphs and plans.

use super::values::policy;
use super::{PlanningArgs, path};
use autobatch_planner::schedule::Policy;
use clap::{Args, ValueEnum};

/// The form in which `show` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The text form, which every command reads.
    Text,
    /// JSON, which every command reads.
    Json,
    /// Input for Graphviz; graphs only.
    Dot,
    /// A picture: a graph with its batches, or the memory of a plan over time.
    Svg,
    /// A summary of a few lines.
    Summary,
}

/// Options of `show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// A graph or plan.
    #[arg(value_parser = path)]
    pub file: String,
    /// The form [default: by the extension of the output, or text].
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The arrangement of the picture of a graph.
    #[arg(long, value_enum, default_value = "timeline")]
    pub picture: Arrangement,
    /// Output file; - is standard output.
    #[arg(short, long, default_value = "-", value_parser = path)]
    pub output: String,
    /// Options of planning, for the picture of a graph.
    #[command(flatten)]
    pub planning: PlanningArgs,
}

/// The arrangement of the picture of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arrangement {
    /// Columns are batches, bands are instances.
    Timeline,
    /// Each instance by itself; colours and numbers are batches.
    Instances,
}

/// Options of `plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// A graph.
    #[arg(value_parser = path)]
    pub graph: String,
    /// Options of planning.
    #[command(flatten)]
    pub planning: PlanningArgs,
    /// Output file: .plan, .abp, .json, or a picture .svg. If passes change the graph, the new graph is written next to it.
    #[arg(short, long, value_parser = path)]
    pub output: Option<String>,
    /// Show all steps, also of a long plan.
    #[arg(long)]
    pub all: bool,
    /// Run the passes first, which `autobatch passes` lists; print the graph after each pass, after each pass that changed
    /// it, or after one pass.
    #[arg(long, value_name = "each|changed|PASS")]
    pub print_after: Option<String>,
    /// Run the passes first, but only the first N of them.
    #[arg(long, value_name = "N")]
    pub stop_after: Option<usize>,
    /// Run the passes first and check the graph after each pass.
    #[arg(long)]
    pub verify: Option<VerifyArg>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The check after each pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VerifyArg {
    /// No check.
    Off,
    /// Check that the graph keeps the rules of graphs.
    Each,
    /// As each; also prove that every remaining value is unchanged.
    Prove,
}

/// Options of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A plan, or a graph to plan.
    #[arg(value_parser = path)]
    pub file: String,
    /// The graph of the plan [default: a file next to the plan with the same name].
    #[arg(long, value_parser = path)]
    pub graph: Option<String>,
    /// Options of planning; --why also uses the policy to judge alternatives.
    #[command(flatten)]
    pub planning: PlanningArgs,
    /// Explain why two values share a batch or do not; `autobatch show` lists the values of a graph.
    #[arg(long, num_args = 2, value_names = ["%A", "%B"], conflicts_with_all = ["lanes", "site", "gathers"])]
    pub why: Option<Vec<String>>,
    /// With --why: run the passes first, as sessions do for graphs that mainly use ops outside of cells.
    #[arg(long, requires = "why")]
    pub passes: bool,
    /// With --why: a value that the program computed before it emitted the rest of the graph, as tasks do.
    #[arg(long, value_name = "%C", requires = "why")]
    pub forced: Option<String>,
    /// Show how many lanes each instance has in each step of one kernel.
    #[arg(long, conflicts_with_all = ["site", "gathers"])]
    pub lanes: bool,
    /// With --lanes: show the index that a lane reads, such as the number of its word, instead of a count.
    #[arg(long, requires = "lanes")]
    pub labels: bool,
    /// With --lanes: the kernel [default: the kernel with the most steps].
    #[arg(long, requires = "lanes")]
    pub kernel: Option<String>,
    /// Show the nodes that a source line of the model emitted, and their steps.
    #[arg(long, value_name = "FILE:LINE", conflicts_with = "gathers")]
    pub site: Option<String>,
    /// List all gathered operands and copied rows, with reasons.
    #[arg(long)]
    pub gathers: bool,
    /// Print the result of each stage of planning a graph; see `autobatch passes`.
    #[arg(long, conflicts_with_all = ["why", "lanes", "site", "gathers"])]
    pub stages: bool,
    /// Show the dispatches of the plan on a GPU, with times that a cost model predicts for some cards; no GPU is needed.
    #[arg(long, value_parser = ["gpu"], conflicts_with_all = ["why", "lanes", "site", "gathers", "stages"])]
    pub device: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `policies`.
#[derive(Args, Debug)]
pub struct PoliciesArgs {
    /// Graphs.
    #[arg(required = true, value_parser = path)]
    pub graphs: Vec<String>,
    /// Additional policies besides none, depth, agenda, ratio and beam:8.
    #[arg(long = "policy", value_parser = policy())]
    pub policies: Vec<Policy>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// A plan or graph.
    #[arg(value_parser = path)]
    pub a: String,
    /// Another file of the same kind.
    #[arg(value_parser = path)]
    pub b: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// A graph.
    #[arg(value_parser = path)]
    pub graph: String,
    /// A plan of the graph.
    #[arg(required_unless_present = "batches", value_parser = path)]
    pub plan: Option<String>,
    /// An order of batches to score, instead of a plan.
    #[arg(long, conflicts_with = "plan", value_parser = path)]
    pub batches: Option<String>,
    /// Maximum memory of the rows that the plan describes: 1000000, 64KiB, 512MiB, 2GiB [default: half of the memory of this
    /// machine].
    #[arg(long, value_name = "BYTES", value_parser = autobatch_bench::parse_bytes)]
    pub memory_limit: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `reduce`.
#[derive(Args, Debug)]
pub struct ReduceArgs {
    /// A graph on which the command fails.
    #[arg(value_parser = path)]
    pub graph: String,
    /// Output file for the smallest graph.
    #[arg(short, long, value_parser = path)]
    pub output: String,
    /// Text that the output of the command must contain to count as the same failure; the exit code is then ignored.
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Maximum number of runs of the command.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// The command; {} stands for the path of the graph.
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

/// Options of `fsm-train`.
#[derive(Args, Debug)]
pub struct FsmArgs {
    /// Sample graphs.
    #[arg(required = true, value_parser = path)]
    pub graphs: Vec<String>,
    /// Output file for the table, .json.
    #[arg(short, long, value_parser = path)]
    pub output: String,
    /// Maximum number of episodes; each orders every sample.
    #[arg(long, default_value_t = 500)]
    pub episodes: u32,
    /// Seed of the random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Maximum number of nodes and candidates that the episodes visit, such as 1e10; the best table so far is written
    /// [default: 1e9].
    #[arg(long, value_name = "VISITS", value_parser = crate::limits::parse_work)]
    pub work_limit: Option<u64>,
    /// Print the results as JSON.
    #[arg(long)]
    pub json: bool,
}
