//! The command line: verbs, options, help and examples.

mod emit;
mod execute;
mod learn;

pub use emit::{EmitArgs, EmitModel};
pub use execute::ExecuteArgs;
pub use learn::{ModelArgs, OptimizerArg, RunArgs, TrainArgs};

use crate::failure::Failure;
use crate::planning::Wish;
use autobatch_ir::plan::Mode;
use autobatch_planner::RowOrder;
use autobatch_planner::schedule::Policy;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs and trains models that batch themselves, and says what became of their graphs: plans, proofs, pictures, times.
///
/// A path's extension picks the form: .graph and .plan are text, .abg and .abp binary, .json for
/// machines, .dot and .svg for eyes; - is standard input or output.
///
/// Exit codes: 0 done or yes, 1 the answer is no, 2 the command line makes no sense, 3 a file
/// cannot be read or is malformed, 4 an output cannot be written.
#[derive(Debug, Parser)]
#[command(name = "autobatch", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The path of a file or folder, or `-`: messages name it, so it must have a name.
fn path(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a path is not empty".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show a graph or plan in another form.
    #[command(after_help = "Example:  autobatch show trees.abg --format svg -o trees.svg")]
    Show(ShowArgs),
    /// Plan a graph: how many batches, how good, and step by step.
    #[command(after_help = "Example:  autobatch plan trees.abg --policy beam:16 -o trees.plan")]
    Plan(PlanArgs),
    /// Say why a plan is as it is: where steps go, what was not batched, what is read through tables.
    #[command(
        after_help = "Examples:  autobatch explain lattice.abg\n           autobatch explain lattice.abg --why %812 %977\n           autobatch explain names.abg --lanes --labels"
    )]
    Explain(ExplainArgs),
    /// Compare batching policies over graphs.
    #[command(after_help = "Example:  autobatch policies lattice0.abg lattice1.abg --json")]
    Policies(PoliciesArgs),
    /// Say what differs between two plans or two graphs; exit code 1 if anything does.
    #[command(after_help = "Example:  autobatch diff depth.plan beam.plan")]
    Diff(DiffArgs),
    /// Prove that a plan computes its graph, or score somebody else's order of batches.
    #[command(
        after_help = "Examples:  autobatch check trees.abg trees.plan\n           autobatch check trees.abg --batches order.json      ([[0, 1], [2], ..]: nodes by number, or \"%12\")"
    )]
    Check(CheckArgs),
    /// List the stages of planning.
    #[command(after_help = "Example:  autobatch passes")]
    Passes {
        /// Answer in JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make a graph smaller while a command still fails on it.
    #[command(
        after_help = "Example:  autobatch reduce bad.abg -o small.graph -- autobatch check {} bad.plan\n\nThe command fails if its exit code is not 0; {} stands for the candidate's file. Dropped are outputs,\nwhole instances, and everything that no output needs; outputs move towards the leaves."
    )]
    Reduce(ReduceArgs),
    /// Learn a table for the policy fsm from sample graphs.
    #[command(
        after_help = "Example:  autobatch fsm-train lattice0.abg lattice1.abg -o lattice.json\n          autobatch plan lattice2.abg --policy fsm:lattice.json"
    )]
    FsmTrain(FsmArgs),
    /// Emit a graph to try things on.
    #[command(
        after_help = "Examples:  autobatch emit trees --instances 32 -o trees.abg\n           autobatch emit lattice --data zh_lattice/train.txt --batch 3 -o lattice3.abg"
    )]
    Emit(EmitArgs),
    /// Execute a graph and show its outputs, by a plan made now or before.
    #[command(
        after_help = "Examples:  autobatch execute trees.abg --weights trees.safetensors -o roots.npy\n           autobatch execute trees.abg trees.abp --counters --trace trace.json"
    )]
    Execute(ExecuteArgs),
    /// Run a model: batched against one by one, with the same bits.
    #[command(
        after_help = "Example:  autobatch run treelstm --hidden 128\n\nWithout --data instances are generated; --data is a JSON file of instances."
    )]
    Run(RunArgs),
    /// Train a model and measure it after every epoch.
    #[command(
        after_help = "Examples:  autobatch train names\n           autobatch train names --data names/ --epochs 10 --curve names.svg --save names.safetensors\n\nWithout --data instances are generated; --data is the folder of the model's corpus."
    )]
    Train(TrainArgs),
    /// Time whole steps of a model: emit, plan, verify, execute, read.
    #[command(
        after_help = "Examples:  autobatch bench b --hidden 100\n           autobatch bench peak sst --hidden 512 --batch 256      (share of the processor's peak)\n           autobatch bench threads b --threads 2\n           AUTOBATCH_CPU=avx2 autobatch bench d --alone --json"
    )]
    Bench(autobatch_bench::BenchArgs),
    /// Time a model at several batch sizes: a table, and a picture.
    #[command(after_help = "Example:  autobatch sweep b --batch 1,4,16,64 -o sweep.svg")]
    Sweep(SweepArgs),
    /// Measure what steps and planning cost here, for policy auto.
    #[command(
        after_help = "Example:  autobatch calibrate -o costs.json\n          AUTOBATCH_COSTS=costs.json autobatch plan trees.abg"
    )]
    Calibrate(CalibrateArgs),
    /// Show what this machine has for executing plans.
    #[command(after_help = "Example:  autobatch devices")]
    Devices,
    /// Look at the adapters of this machine and execute a small plan on one: what fits, what is right, what to do.
    #[command(after_help = "Examples:  autobatch doctor\n           autobatch doctor gpu:0")]
    Doctor {
        /// The device: gpu, gpu:0, gpu:part-of-a-name.
        #[arg(default_value = "gpu")]
        device: String,
    },
    /// Print a completion script.
    #[command(after_help = "Example:  autobatch completions bash > autobatch.bash")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// In which form to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The text form, which reads back.
    Text,
    /// JSON, which reads back.
    Json,
    /// For Graphviz.
    Dot,
    /// A picture: a graph coloured by batch, or a plan's memory over time.
    Svg,
    /// A few lines.
    Summary,
}

/// Options of `show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// A graph or plan.
    #[arg(value_parser = path)]
    pub file: String,
    /// The form; without it, what the extension of the output says, or text.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Where to write.
    #[arg(short, long, default_value = "-", value_parser = path)]
    pub output: String,
    /// How the graph of a picture is batched.
    #[command(flatten)]
    pub wish: WishArgs,
}

/// How to plan. What is not given can be told from what is.
#[derive(Args, Debug, Default)]
pub struct WishArgs {
    /// The batching policy: none, depth, agenda, agenda:remaining, ratio, beam:8, fsm:table.json, auto [default: auto].
    #[arg(long)]
    pub policy: Option<Policy>,
    /// How rows are ordered: as emitted, or as their consumers read [default: propagated].
    #[arg(long, value_enum)]
    pub rows: Option<Rows>,
    /// What the plan promises [default: infer].
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
}

impl WishArgs {
    /// The same for the planner.
    #[must_use]
    pub fn wish(&self) -> Wish {
        let rows = match self.rows.unwrap_or_default() {
            Rows::Batch => RowOrder::Batch,
            Rows::Propagated => RowOrder::Propagated,
        };
        let mode = match self.mode.unwrap_or_default() {
            ModeArg::Infer => Mode::Infer,
            ModeArg::Train => Mode::Train,
        };
        Wish { policy: self.policy.clone().unwrap_or_default(), rows, mode }
    }

    /// Refuses options of planning where nothing is planned.
    pub fn none_given(&self, why: &str) -> Result<(), Failure> {
        let given = [
            ("--policy", self.policy.is_some()),
            ("--rows", self.rows.is_some()),
            ("--mode", self.mode.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::usage(format!("{option} says how to plan, and {why}"))
                .help(format!("leave {option} out"))),
            None => Ok(()),
        }
    }
}

/// How rows are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Rows {
    /// As the nodes were emitted.
    Batch,
    /// As the consumers read.
    #[default]
    Propagated,
}

/// What a plan promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// Outputs only; rows are reused.
    #[default]
    Infer,
    /// Every row stays for the reverse.
    Train,
}

/// Options of `plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// A graph.
    #[arg(value_parser = path)]
    pub graph: String,
    /// How to plan.
    #[command(flatten)]
    pub wish: WishArgs,
    /// Where to write the plan: .plan, .abp, .json, or a picture .svg. A graph that passes changed is written beside it.
    #[arg(short, long, value_parser = path)]
    pub output: Option<String>,
    /// Show every step.
    #[arg(long)]
    pub all: bool,
    /// Let passes rewrite the graph first, and print it after each, after those that changed it, or after one.
    #[arg(long, value_name = "each|changed|PASS")]
    pub print_after: Option<String>,
    /// Let only the first so many passes rewrite the graph.
    #[arg(long, value_name = "N")]
    pub stop_after: Option<usize>,
    /// Let passes rewrite the graph first, and check it after each.
    #[arg(long)]
    pub verify: Option<VerifyArg>,
    /// Answer in JSON.
    #[arg(long)]
    pub json: bool,
}

/// What is checked after each pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VerifyArg {
    /// Nothing.
    Off,
    /// That the graph keeps the rules of graphs.
    Each,
    /// That, and that every value left is the value that it was.
    Prove,
}

/// Options of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A plan, or a graph to plan.
    #[arg(value_parser = path)]
    pub file: String,
    /// The graph of a plan, if it does not lie beside it under the same name.
    #[arg(long, value_parser = path)]
    pub graph: Option<String>,
    /// How to plan a graph; alternatives are judged by the policy too.
    #[command(flatten)]
    pub wish: WishArgs,
    /// Why two values do not share a batch.
    #[arg(long, num_args = 2, value_names = ["%A", "%B"], conflicts_with_all = ["lanes", "site", "gathers"])]
    pub why: Option<Vec<String>>,
    /// With --why: let passes rewrite the graph first, as a session does with graphs made of ops.
    #[arg(long, requires = "why")]
    pub passes: bool,
    /// With --why: a value that was read before the rest of the graph was emitted.
    #[arg(long, value_name = "%C", requires = "why")]
    pub forced: Option<String>,
    /// The packed picture: instances against steps.
    #[arg(long, conflicts_with_all = ["site", "gathers"])]
    pub lanes: bool,
    /// Bound words in the packed picture instead of counts.
    #[arg(long, requires = "lanes")]
    pub labels: bool,
    /// The kernel of the packed picture; without it, the one with the most steps.
    #[arg(long, requires = "lanes")]
    pub kernel: Option<String>,
    /// What became of a line of source.
    #[arg(long, value_name = "FILE:LINE", conflicts_with = "gathers")]
    pub site: Option<String>,
    /// Every operand that is read through a table, with the reason.
    #[arg(long)]
    pub gathers: bool,
    /// The product of each stage of planning a graph.
    #[arg(long, conflicts_with_all = ["why", "lanes", "site", "gathers"])]
    pub stages: bool,
    /// Answer in JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `policies`.
#[derive(Args, Debug)]
pub struct PoliciesArgs {
    /// Graphs.
    #[arg(required = true, value_parser = path)]
    pub graphs: Vec<String>,
    /// More policies than none, depth, agenda, ratio and beam:8.
    #[arg(long = "policy")]
    pub policies: Vec<Policy>,
    /// Answer in JSON.
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
    /// Answer in JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// A graph.
    #[arg(value_parser = path)]
    pub graph: String,
    /// A plan of it.
    #[arg(required_unless_present = "batches", value_parser = path)]
    pub plan: Option<String>,
    /// An order to score instead of a plan.
    #[arg(long, conflicts_with = "plan", value_parser = path)]
    pub batches: Option<String>,
    /// Answer in JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `reduce`.
#[derive(Args, Debug)]
pub struct ReduceArgs {
    /// A graph on which the command fails.
    #[arg(value_parser = path)]
    pub graph: String,
    /// Where to write the smallest graph found.
    #[arg(short, long, value_parser = path)]
    pub output: String,
    /// How often the command may run.
    #[arg(long, default_value_t = 500)]
    pub runs: u32,
    /// The command, {} standing for the file.
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

/// Options of `fsm-train`.
#[derive(Args, Debug)]
pub struct FsmArgs {
    /// Sample graphs.
    #[arg(required = true, value_parser = path)]
    pub graphs: Vec<String>,
    /// Where to write the table.
    #[arg(short, long, value_parser = path)]
    pub output: String,
    /// The most episodes.
    #[arg(long, default_value_t = 500)]
    pub episodes: u32,
    /// Of the random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Say in JSON what was learned.
    #[arg(long)]
    pub json: bool,
}

/// Options of `sweep`.
#[derive(Args, Debug)]
pub struct SweepArgs {
    /// What to measure.
    #[command(flatten)]
    pub bench: autobatch_bench::BenchArgs,
    /// Where to draw the picture, .svg.
    #[arg(short, long, value_parser = path)]
    pub output: Option<String>,
}

/// Options of `calibrate`.
#[derive(Args, Debug)]
pub struct CalibrateArgs {
    /// Where to write the table.
    #[arg(short, long, default_value = "costs.json", value_parser = path)]
    pub output: String,
    /// Milliseconds that each of about a hundred points is executed for.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub turn: u64,
}
