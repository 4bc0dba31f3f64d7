//! Definition of the command line: verbs, options, help and examples.

mod doctor;
mod emit;
mod execute;
mod inspect;
mod measure;
mod page;
mod planning;
mod run;
mod train;
mod trained;
pub(crate) mod values;

pub use doctor::DoctorArgs;
pub use emit::EmitArgs;
pub use execute::ExecuteArgs;
pub use inspect::{
    Arrangement, CheckArgs, DiffArgs, ExplainArgs, Format, FsmArgs, PlanArgs, PoliciesArgs, ReduceArgs,
    ShowArgs, VerifyArg,
};
pub use measure::{CalibrateArgs, ScaleArgs, SweepArgs};
pub use page::InspectArgs;
pub use planning::{ModeArg, PlanningArgs, Rows};
pub use run::{ModelArgs, RunArgs};
pub use train::{OptimizerArg, TrainArgs};
pub use trained::{EvalArgs, FormArg, MapArgs, PartArg, PredictArgs, TrainedArgs};

use clap::{Parser, Subcommand};

/// Runs and trains dynamically batched models, and inspects their graphs and plans.
///
/// The extension of a path selects the form: .graph and .plan are text, .abg and .abp are binary, .json
/// is for programs, .dot and .svg are pictures. The path - is standard input or standard output.
///
/// Exit codes: 0 success or yes, 1 the answer is no, 2 usage error, 3 a file cannot be read or is
/// malformed, 4 an output cannot be written, 130 training was interrupted.
#[derive(Debug, Parser)]
#[command(
    name = "autobatch",
    version,
    long_version = crate::version::long(),
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Examples:\n  autobatch run treelstm\n  autobatch train names --save names.safetensors"
)]
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

/// The end of a help page: examples, remarks and exit codes.
macro_rules! after {
    ($($example:literal),+; $no:literal) => { after!($($example),+; $no; "") };
    ($($example:literal),+; $no:literal; $remark:literal) => {
        concat!(
            "Examples:", $("\n  autobatch ", $example,)+ "\n\n", $remark,
            "Exit codes: 0 success, ", $no, "2 usage error, 3 a file cannot be read or is malformed, ",
            "4 an output cannot be written"
        )
    };
}

/// A verb with its options.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the models, with the corpus that each of them reads.
    #[command(after_help = after!("models", "models --json"; ""))]
    Models {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run a model batched and unbatched; compare times and bits.
    #[command(after_help = after!("run treelstm --hidden 128", "run tagger --data wikiner/ -o out/"; "1 the bits differ, "))]
    Run(RunArgs),
    /// Train a model and evaluate it after every epoch.
    ///
    /// The development part of the instances chooses the best epoch. The test part is evaluated once, with the
    /// parameters of that epoch. Ctrl-C writes a checkpoint and prints the command that continues.
    #[command(after_help = after!(
        "train names",
        "train names --data names/ --epochs 10 --curve names.svg --save names.safetensors",
        "train names --data names/ --epochs 20 --resume names.safetensors"; "";
        "A corpus keeps its published parts. Without a test file, the valid file is the test part. Missing parts are held out from the training instances. After Ctrl-C the exit code is 130.\n\n"
    ))]
    Train(TrainArgs),
    /// Evaluate a trained model on a part of its corpus.
    #[command(after_help = after!("eval names --weights names.best.safetensors --data names/"; ""))]
    Eval(EvalArgs),
    /// Predict the instances of a file with a trained model.
    #[command(after_help = after!(
        "predict names --weights names.best.safetensors names.txt",
        "predict tagger --weights tagger.safetensors --json - < sentences.txt"; "";
        "The input has the form of the model's corpus: one name per line for names, words with or without tags for tagger, a folder such as sick/valid for similarity.\n\n"
    ))]
    Predict(PredictArgs),
    /// Predict inputs of any size into shards of JSON Lines or Parquet; an interrupted run continues.
    ///
    /// Each input is cut into shards of equal numbers of instances, whose names begin with the name of the input. A shard is written
    /// whole or not at all. The manifest has the hashes of the model, of the parameters, and of what was read and written for each
    /// shard. The same command continues after an interruption: it makes the shards that are missing, and those whose input or file has
    /// changed. The processes of mpirun take shards by demand.
    #[command(after_help = after!(
        "map names --weights names.best.safetensors --data part*.txt -o answers/",
        "map tagger --weights tagger.safetensors --data wiki/ -o tags/ --threads 1",
        "map names --weights names.best.safetensors --data @list.txt --shard 1000 -o answers/"; "";
        "Memory holds one shard and one graph, whatever the sizes of the inputs.\n\n"
    ))]
    Map(MapArgs),
    /// Emit the graph of a minibatch of a model.
    #[command(after_help = after!(
        "emit treelstm --instances 32 -o trees.abg",
        "emit lattice --data zh_lattice/ --batch 3 -o lattice3.abg",
        "emit random --cells 3 --nodes 50 -o random.graph"; ""
    ))]
    Emit(EmitArgs),
    /// Show a graph or plan in another form.
    #[command(after_help = after!("show trees.abg --format svg -o trees.svg", "show trees.abg --picture instances -o trees.svg"; ""))]
    Show(ShowArgs),
    /// Plan a graph and show the quality and the steps of the plan.
    #[command(after_help = after!("plan trees.abg --policy beam:16 -o trees.plan"; ""))]
    Plan(PlanArgs),
    /// Explain a plan: its kernels, its batches, gathered operands.
    #[command(after_help = after!(
        "explain lattice.abg",
        "explain lattice.abg --why %812 %977",
        "explain names.abg --lanes --labels"; ""
    ))]
    Explain(ExplainArgs),
    /// Write a page that shows a graph with its plan, answers questions and plans again.
    #[command(after_help = after!("inspect trees.abg -o trees.html", "inspect trees.abg trees.plan -o trees.html", "inspect --empty -o inspector.html"; ""))]
    Inspect(InspectArgs),
    /// Compare batching policies over graphs.
    #[command(after_help = after!("policies lattice0.abg lattice1.abg --json"; ""))]
    Policies(PoliciesArgs),
    /// Compare two plans or two graphs.
    #[command(after_help = after!("diff depth.plan beam.plan"; "1 they differ, "))]
    Diff(DiffArgs),
    /// Prove that a plan computes its graph, or score an external order of batches.
    #[command(after_help = after!(
        "check trees.abg trees.plan",
        "check trees.abg --batches order.json"; "1 the plan is not proven or the order is not valid, ";
        "An order of batches is a JSON list of lists of nodes or values: [[0, 1], [\"%12\"]].\n\n"
    ))]
    Check(CheckArgs),
    /// List the passes and stages of planning.
    #[command(after_help = after!("passes"; ""))]
    Passes {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Reduce a graph on which a command fails.
    #[command(after_help = after!(
        "reduce bad.abg -o small.graph -- autobatch execute {} --watch",
        "reduce bad.abg -o small.graph --message 'is infinite' -- autobatch execute {} --watch"; "";
        "{} is replaced by the path of the candidate graph. The command fails if its exit code is not 0. Each candidate is another graph, so the command must make plans of its own: a stored plan computes none of the candidates. Reduction removes outputs, instances and unused nodes, and moves outputs towards the leaves.\n\n"
    ))]
    Reduce(ReduceArgs),
    /// Train a table for policy fsm on sample graphs.
    #[command(after_help = after!(
        "fsm-train lattice0.abg lattice1.abg -o lattice.json",
        "plan lattice2.abg --policy fsm:lattice.json"; ""
    ))]
    FsmTrain(FsmArgs),
    /// Execute a graph with a new or stored plan and show its outputs.
    #[command(after_help = after!(
        "execute trees.abg --weights trees.safetensors -o roots.npy",
        "execute trees.abg trees.abp --counters --trace trace.json"; ""
    ))]
    Execute(ExecuteArgs),
    /// Time complete steps of a model: emit, plan, verify, execute, read.
    #[command(after_help = after!(
        "bench treelstm --hidden 100",
        "bench peak sentiment --hidden 512 --batch 256",
        "bench threads treelstm --threads 2",
        "bench tagger --alone --json"; "";
        "AUTOBATCH_CPU=avx2 selects the instruction set. The last line of --json has the fields seconds_per_step, mode and threads.\n\n"
    ))]
    Bench(autobatch_bench::BenchArgs),
    /// Time a model at several batch sizes, as a table and a picture.
    #[command(after_help = after!("sweep treelstm --batch 1,4,16,64 -o sweep.svg"; ""))]
    Sweep(SweepArgs),
    /// Predict how training scales with the number of processes.
    ///
    /// The work of one process is measured, as one of 2, 4, 8 and more. A latency and a bandwidth predict the messages. Started
    /// by mpirun as two processes, the command measures both, and real steps beside the prediction.
    #[command(after_help = after!(
        "scale treelstm --batch 512",
        "scale transformer --batch 256 --latency 2 --bandwidth 12 --json"; "";
        "The instances of a step are divided among the processes. The network is a model: each message costs the latency, a sum of gradients costs one for each other process, and messages overlap with the work on others.\n\n"
    ))]
    Scale(ScaleArgs),
    /// Measure the cost of steps and planning on this machine, for policy auto.
    #[command(after_help = after!(
        "calibrate -o costs.json"; "";
        "AUTOBATCH_COSTS=costs.json makes policy auto read the table.\n\n"
    ))]
    Calibrate(CalibrateArgs),
    /// List the devices that can execute plans.
    #[command(after_help = after!("devices"; ""))]
    Devices {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Test a GPU: with one plan in a second, or completely.
    ///
    /// The complete report says whether the GPU computes what the CPU computes, for every model; how fast it is, beside the CPU
    /// and beside its own roofs; and what is wrong, with what to do. It takes up to eight minutes, and its JSON can be sent.
    #[command(after_help = after!(
        "doctor",
        "doctor --device gpu:0",
        "doctor --gpu --json report.json"; "1 the GPU is missing or its results are wrong, "
    ))]
    Doctor(DoctorArgs),
    /// Print a shell completion script.
    #[command(after_help = after!("completions bash > autobatch.bash"; ""))]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages.
    #[command(after_help = after!("man -o man1/"; ""))]
    Man {
        /// Folder for one page per verb; - writes the main page to standard output.
        #[arg(short, long, default_value = "-", value_parser = path, value_hint = clap::ValueHint::DirPath)]
        output: String,
    },
}
