//! Definition of the command line: verbs, options, help and examples.

mod emit;
mod execute;
mod planning;
mod run;
mod train;

pub use emit::{EmitArgs, EmitModel};
pub use execute::ExecuteArgs;
pub use planning::{ModeArg, PlanningArgs, Rows};
pub use run::{ModelArgs, RunArgs};
pub use train::{OptimizerArg, TrainArgs};

use autobatch_planner::schedule::Policy;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs and trains dynamically batched models, and inspects their graphs and plans.
///
/// The extension of a path selects the form: .graph and .plan are text, .abg and .abp are binary, .json
/// is for programs, .dot and .svg are pictures. The path - is standard input or standard output.
///
/// Exit codes: 0 success or yes, 1 the answer is no, 2 usage error, 3 a file cannot be read or is
/// malformed, 4 an output cannot be written.
#[derive(Debug, Parser)]
#[command(name = "autobatch", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Parses the path of a file or folder, or `-`. Messages contain the path, so it must not be empty.
fn path(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a path must not be empty".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// A verb with its options.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show a graph or plan in another form.
    #[command(
        after_help = "Examples:  autobatch show trees.abg --format svg -o trees.svg\n           autobatch show trees.abg --picture instances -o trees.svg"
    )]
    Show(ShowArgs),
    /// Plan a graph and show the quality and the steps of the plan.
    #[command(after_help = "Example:  autobatch plan trees.abg --policy beam:16 -o trees.plan")]
    Plan(PlanArgs),
    /// Explain a plan: its kernels, missed batching, gathered operands.
    #[command(
        after_help = "Examples:  autobatch explain lattice.abg\n           autobatch explain lattice.abg --why %812 %977\n           autobatch explain names.abg --lanes --labels"
    )]
    Explain(ExplainArgs),
    /// Compare batching policies over graphs.
    #[command(after_help = "Example:  autobatch policies lattice0.abg lattice1.abg --json")]
    Policies(PoliciesArgs),
    /// Compare two plans or two graphs; exit code 1 if they differ.
    #[command(after_help = "Example:  autobatch diff depth.plan beam.plan")]
    Diff(DiffArgs),
    /// Prove that a plan computes its graph, or score an external order of batches.
    #[command(
        after_help = "Examples:  autobatch check trees.abg trees.plan\n           autobatch check trees.abg --batches order.json      ([[0, 1], [2], ..]: numbers of nodes, or \"%12\")"
    )]
    Check(CheckArgs),
    /// List the passes and stages of planning.
    #[command(after_help = "Example:  autobatch passes")]
    Passes {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Reduce a graph on which a command fails.
    #[command(
        after_help = "Example:  autobatch reduce bad.abg -o small.graph -- sh -c '! autobatch execute {} | grep -q NaN'\n\nThe command fails if its exit code is not 0; {} is replaced by the path of the candidate graph.\nReduction removes outputs, instances and unused nodes, and moves outputs towards the leaves."
    )]
    Reduce(ReduceArgs),
    /// Train a table for policy fsm on sample graphs.
    #[command(
        after_help = "Example:  autobatch fsm-train lattice0.abg lattice1.abg -o lattice.json\n          autobatch plan lattice2.abg --policy fsm:lattice.json"
    )]
    FsmTrain(FsmArgs),
    /// Emit a sample graph.
    #[command(
        after_help = "Examples:  autobatch emit trees --instances 32 -o trees.abg\n           autobatch emit lattice --data zh_lattice/train.txt --batch 3 -o lattice3.abg"
    )]
    Emit(EmitArgs),
    /// Execute a graph with a new or stored plan and show its outputs.
    #[command(
        after_help = "Examples:  autobatch execute trees.abg --weights trees.safetensors -o roots.npy\n           autobatch execute trees.abg trees.abp --counters --trace trace.json"
    )]
    Execute(ExecuteArgs),
    /// Run a model batched and unbatched; compare times and bits.
    #[command(
        after_help = "Example:  autobatch run treelstm --hidden 128\n\nWithout --data, instances are generated. --data names a JSON file of instances."
    )]
    Run(RunArgs),
    /// Train a model and evaluate it after every epoch.
    #[command(
        after_help = "Examples:  autobatch train names\n           autobatch train names --data names/ --epochs 10 --curve names.svg --save names.safetensors\n\nWithout --data, instances are generated. --data names the folder of the model's corpus."
    )]
    Train(TrainArgs),
    /// Time complete steps of a model: emit, plan, verify, execute, read.
    #[command(
        after_help = "Examples:  autobatch bench b --hidden 100\n           autobatch bench peak sst --hidden 512 --batch 256      (share of the peak of the processor)\n           autobatch bench threads b --threads 2\n           AUTOBATCH_CPU=avx2 autobatch bench d --alone --json"
    )]
    Bench(autobatch_bench::BenchArgs),
    /// Time a model at several batch sizes, as a table and a picture.
    #[command(after_help = "Example:  autobatch sweep b --batch 1,4,16,64 -o sweep.svg")]
    Sweep(SweepArgs),
    /// Measure the cost of steps and planning on this machine, for policy auto.
    #[command(
        after_help = "Example:  autobatch calibrate -o costs.json\n          AUTOBATCH_COSTS=costs.json autobatch plan trees.abg"
    )]
    Calibrate(CalibrateArgs),
    /// List the devices that can execute plans.
    #[command(after_help = "Example:  autobatch devices")]
    Devices,
    /// Test a GPU with a small plan and check its results.
    #[command(after_help = "Examples:  autobatch doctor\n           autobatch doctor gpu:0")]
    Doctor {
        /// Device: gpu, gpu:0, gpu:part-of-a-name.
        #[arg(default_value = "gpu")]
        device: String,
    },
    /// Print a shell completion script.
    #[command(after_help = "Example:  autobatch completions bash > autobatch.bash")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// The form in which `show` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The text form; it reads back.
    Text,
    /// JSON; it reads back.
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
    /// Show all steps.
    #[arg(long)]
    pub all: bool,
    /// Run the passes first; print the graph after each pass, after each pass that changed it, or after one pass.
    #[arg(long, value_name = "each|changed|PASS")]
    pub print_after: Option<String>,
    /// Run only the first N passes.
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
    /// Explain why two values do not share a batch.
    #[arg(long, num_args = 2, value_names = ["%A", "%B"], conflicts_with_all = ["lanes", "site", "gathers"])]
    pub why: Option<Vec<String>>,
    /// With --why: run the passes first, as sessions do for graphs of ops.
    #[arg(long, requires = "why")]
    pub passes: bool,
    /// With --why: a value that the program read before it emitted the rest of the graph.
    #[arg(long, value_name = "%C", requires = "why")]
    pub forced: Option<String>,
    /// Show the lanes of each instance in the steps of one kernel.
    #[arg(long, conflicts_with_all = ["site", "gathers"])]
    pub lanes: bool,
    /// With --lanes: show bound words instead of counts.
    #[arg(long, requires = "lanes")]
    pub labels: bool,
    /// With --lanes: the kernel [default: the kernel with the most steps].
    #[arg(long, requires = "lanes")]
    pub kernel: Option<String>,
    /// Show the nodes and steps of a source line.
    #[arg(long, value_name = "FILE:LINE", conflicts_with = "gathers")]
    pub site: Option<String>,
    /// List all gathered operands and copied rows, with reasons.
    #[arg(long)]
    pub gathers: bool,
    /// Print the product of each stage of planning a graph.
    #[arg(long, conflicts_with_all = ["why", "lanes", "site", "gathers"])]
    pub stages: bool,
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
    #[arg(long = "policy")]
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
    /// Another of the same kind.
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
    /// Maximum number of runs of the command.
    #[arg(long, default_value_t = 500)]
    pub runs: u32,
    /// The command; {} is replaced by the path of the graph.
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

/// Options of `fsm-train`.
#[derive(Args, Debug)]
pub struct FsmArgs {
    /// Sample graphs.
    #[arg(required = true, value_parser = path)]
    pub graphs: Vec<String>,
    /// Output file for the table.
    #[arg(short, long, value_parser = path)]
    pub output: String,
    /// Maximum number of episodes.
    #[arg(long, default_value_t = 500)]
    pub episodes: u32,
    /// Seed of the random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the results as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `sweep`.
#[derive(Args, Debug)]
pub struct SweepArgs {
    /// Options of the measurement.
    #[command(flatten)]
    pub bench: autobatch_bench::BenchArgs,
    /// Output file for the picture, .svg.
    #[arg(short, long, value_parser = path)]
    pub output: Option<String>,
}

/// Options of `calibrate`.
#[derive(Args, Debug)]
pub struct CalibrateArgs {
    /// Output file for the table.
    #[arg(short, long, default_value = "costs.json", value_parser = path)]
    pub output: String,
    /// Execution time of each of about a hundred measuring points, in milliseconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub turn: u64,
}
