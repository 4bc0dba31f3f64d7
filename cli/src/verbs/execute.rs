//! `execute`: executes a graph with a new or stored plan and shows its outputs.

use super::check::{InFile, check_computes};
use crate::args::ExecuteArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Form, form_of, load_graph, load_plan, one_standard_input, write};
use crate::output_paths::check_distinct;
use crate::progress::Waiting;
use crate::{limits, npy, planning};
use autobatch::Device;
use autobatch::runtime_cpu::{Counters, resolve_threads};
use autobatch::train::read_weights;
use autobatch_bench::Machine;
use autobatch_inspector::steps::Kinds;
use autobatch_inspector::text::{byte_size, count, plural, table};
use autobatch_ir::Weights;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::{Limits, Plan, Verified};
use autobatch_ir::types::{DType, Type};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Number of outputs to show.
const SHOWN_OUTPUTS: usize = 12;
/// Number of elements to show of each output.
const SHOWN_ELEMENTS: usize = 6;

/// Executes a graph.
pub fn execute(args: &ExecuteArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    check_outputs(args)?;
    one_standard_input(std::iter::once(&args.graph).chain(&args.plan))?;
    if let Some(path) = &args.plan {
        args.planning.reject_if_given(&format!("{path} is already a plan"))?;
    }
    let outputs: Vec<&str> = [&args.output, &args.trace].into_iter().flatten().map(String::as_str).collect();
    let inputs = [Some(&args.graph), args.plan.as_ref(), args.weights.as_ref()];
    check_distinct(&outputs, &inputs.into_iter().flatten().map(String::as_str).collect::<Vec<_>>())?;
    if !outputs.is_empty() {
        console.ignore_closed_pipe();
    }
    let graph = load_graph(&args.graph)?;
    let plan = plan_of(args, &graph)?;
    let weights = match &args.weights {
        Some(path) => read_weights(path, &graph.module).map_err(|error| Failure::input(error.to_string()))?,
        None => Weights::try_init(&graph.module, args.seed)
            .map_err(|error| Failure::input(format!("{}: {error}", args.graph)))?,
    };
    // Creation fails if AUTOBATCH_CPU names an unavailable instruction set, or if no GPU fits the option.
    let mut executor = Machine::new(&args.device, args.threads, Limits::NONE)?;
    if let Some(executor) = executor.cpu() {
        executor.set_watch(args.watch);
        executor.set_counting(args.counters || args.trace.is_some());
    }
    let waiting = Waiting::new("executing");
    executor
        .execute(&plan, &weights, &graph)
        .map_err(|error| Failure::input(format!("{}: {error}", args.graph)))?;
    drop(waiting);

    let outputs: Vec<Output<'_>> =
        (0..plan.outputs.len()).map(|number| output(&executor, &plan, number)).collect();
    let mut written = String::new();
    if let Some(path) = &args.trace {
        let mut bytes = Vec::new();
        let counters = executor.counters().expect("the run was counted");
        counters.write_trace(&plan, &mut bytes)?;
        write(path, &bytes, console)?;
        written += &format!("wrote {path}: open it with https://ui.perfetto.dev or chrome://tracing\n");
    }
    if let Some(path) = &args.output {
        write(path, &encoded(path, &outputs)?, console)?;
        written += &format!("wrote {path}\n");
    }
    if [&args.output, &args.trace].into_iter().flatten().any(|path| path == "-") {
        return Ok(Answer::Yes);
    }
    show(&outputs, console)?;
    writeln!(
        console,
        "{} in {}, slabs of {}, {}",
        plural(plan.certificate.batches.into(), "batch"),
        plural(plan.waves.len() as u64, "wave"),
        byte_size(plan.certificate.slab_bytes),
        match &args.weights {
            Some(path) => format!("weights of {path}"),
            None => format!("random weights (seed {})", args.seed),
        }
    )?;
    if args.counters {
        let kinds = Kinds::with_graph(&plan, Some(&graph));
        write_counters(executor.counters().expect("the run was counted"), &kinds, console)?;
    }
    console.write_all(written.as_bytes())?;
    Ok(Answer::Yes)
}

/// Rejects outputs of unknown form, two outputs on standard output, and observations that the device does not offer.
fn check_outputs(args: &ExecuteArgs) -> Result<(), Failure> {
    if let Some(path) = &args.output
        && path != "-"
        && !is_npy(path)
        && form_of(path) != Some(Form::Json)
    {
        return Err(Failure::usage(format!("{path}: no form of outputs has this extension"))
            .help("use .json or .npy"));
    }
    let to_console = [
        ("-o -", args.output.as_deref() == Some("-")),
        ("--trace -", args.trace.as_deref() == Some("-")),
        ("--counters", args.counters),
    ];
    let wanted: Vec<&str> =
        to_console.into_iter().filter(|(_, wanted)| *wanted).map(|(name, _)| name).collect();
    let only_cpu =
        [("--watch", args.watch), ("--counters", args.counters), ("--trace", args.trace.is_some())];
    if args.device != Device::Cpu
        && let Some((option, _)) = only_cpu.iter().find(|(_, wanted)| *wanted)
    {
        return Err(Failure::usage(format!("{option} observes the CPU, and --device is {}", args.device))
            .help("remove --device, or remove that option"));
    }
    match wanted[..] {
        [one, other, ..] => Err(Failure::usage(format!("{one} and {other} both write to standard output"))
            .help("name a file for one of them")),
        _ => Ok(()),
    }
}

fn is_npy(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "npy")
}

/// Loads the named plan and proves that it computes the graph, or makes a new plan. A plan that exceeds the limits is
/// refused before it is proven.
fn plan_of(args: &ExecuteArgs, graph: &GraphData) -> Result<Verified<Plan>, Failure> {
    let check_limits = |plan: &Verified<Plan>| {
        let threads = resolve_threads(args.threads);
        let footprint = limits::with_parameters(plan, threads, &graph.module, args.weights.is_none());
        args.limits.check(&args.graph, &footprint)
    };
    let Some(path) = &args.plan else {
        let plan = planning::plan(&args.graph, graph, &args.planning.options())?.plan;
        check_limits(&plan)?;
        return Ok(plan);
    };
    let plan = load_plan(path)?;
    check_limits(&plan)?;
    check_computes(&InFile { path, content: &plan }, &InFile { path: &args.graph, content: graph })?;
    Ok(plan)
}

/// A named output.
struct Output<'a> {
    name: Cow<'a, str>,
    ty: Type,
    elements: &'a [f32],
}

fn output<'a>(executor: &'a Machine, plan: &'a Plan, number: usize) -> Output<'a> {
    let output = &plan.outputs[number];
    Output {
        name: output.key.label(),
        ty: plan.field(output.field).ty,
        elements: executor.output(plan, number),
    }
}

impl Output<'_> {
    /// The text of an element.
    fn element_text(&self, element: f32) -> String {
        match self.ty.dtype {
            DType::I32 => (element.to_bits() as i32).to_string(),
            DType::U32 => element.to_bits().to_string(),
            DType::Bool => (element.to_bits() != 0).to_string(),
            DType::F32 | DType::F16 | DType::BF16 => element.to_string(),
        }
    }

    fn extents(&self) -> Vec<usize> {
        self.ty.shape.dims().iter().map(|&extent| extent as usize).collect()
    }
}

fn show(outputs: &[Output<'_>], console: &mut Console<'_>) -> Result<(), Failure> {
    let line = |output: &Output<'_>| {
        let shown = output.elements.iter().take(SHOWN_ELEMENTS).map(|&element| output.element_text(element));
        let mut elements = shown.collect::<Vec<_>>().join(" ");
        if output.elements.len() > SHOWN_ELEMENTS {
            elements += " …";
        }
        vec![output.name.to_string(), output.ty.to_string(), elements]
    };
    let rows: Vec<Vec<String>> = outputs.iter().take(SHOWN_OUTPUTS).map(line).collect();
    write!(console, "{}", table(&rows, &[1, 2]))?;
    if let Some(more @ 1..) = outputs.len().checked_sub(SHOWN_OUTPUTS) {
        writeln!(console, "… {more} more    (-o FILE.json writes all)")?;
    }
    Ok(())
}

fn write_counters(counters: &Counters, kinds: &Kinds, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut rows = vec![["kernel", "steps", "rows", "moved", "Mflop", "time"].map(str::to_owned).to_vec()];
    for kernel in counters.by_kind(kinds.names(), |step| kinds.of_step(step.step as usize)) {
        rows.push(vec![
            kernel.name.clone(),
            count(kernel.steps),
            count(kernel.rows),
            byte_size(kernel.bytes),
            format!("{:.1}", kernel.flops as f64 / 1e6),
            console.time(kernel.time),
        ]);
    }
    write!(console, "{}", table(&rows, &[]))?;
    writeln!(console, "packing weights {}", console.time(counters.pack))?;
    Ok(())
}

/// The JSON form of an output. Values without a JSON number are strings: `"NaN"`, `"inf"`, `"-inf"`.
#[derive(Serialize)]
struct OutputDocument {
    #[serde(rename = "type")]
    ty: String,
    shape: Vec<usize>,
    values: Vec<serde_json::Value>,
}

/// Encodes the outputs in the form that the extension of the path selects.
fn encoded(path: &str, outputs: &[Output<'_>]) -> Result<Vec<u8>, Failure> {
    if is_npy(path) {
        return stacked(path, outputs);
    }
    let document = |output: &Output<'_>| {
        let value = |&element: &f32| match output.ty.dtype {
            DType::I32 => (element.to_bits() as i32).into(),
            DType::U32 => element.to_bits().into(),
            DType::Bool => (element.to_bits() != 0).into(),
            DType::F32 | DType::F16 | DType::BF16 if element.is_finite() => element.into(),
            DType::F32 | DType::F16 | DType::BF16 => output.element_text(element).into(),
        };
        let values = output.elements.iter().map(value).collect();
        (
            output.name.to_string(),
            OutputDocument { ty: output.ty.to_string(), shape: output.extents(), values },
        )
    };
    let documents: BTreeMap<String, OutputDocument> = outputs.iter().map(document).collect();
    let mut bytes = serde_json::to_vec(&documents)
        .map_err(|error| Failure::input(format!("cannot encode the outputs as JSON: {error}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Stacks outputs of one type into one array. The additional first axis is the number of the output.
fn stacked(path: &str, outputs: &[Output<'_>]) -> Result<Vec<u8>, Failure> {
    let Some(first) = outputs.first() else {
        return Err(Failure::usage(format!("{path}: the plan has no outputs to write")));
    };
    if let Some(other) = outputs.iter().find(|output| output.ty != first.ty) {
        let types = format!("{} is {}, {} is {}", first.name, first.ty, other.name, other.ty);
        return Err(Failure::usage(format!(
            "{path}: all outputs of an .npy file must have one type, but {types}"
        ))
        .help("use .json"));
    }
    let extents: Vec<usize> = [outputs.len()].into_iter().chain(first.extents()).collect();
    let words = outputs.iter().flat_map(|output| output.elements.iter().map(|element| element.to_bits()));
    Ok(npy::file(first.ty.dtype, &extents, words))
}
