//! `reduce`: makes a graph smaller while a command still fails on it.
//!
//! Two moves, tried until neither helps or the runs are spent: outputs are dropped, halves first and
//! single ones last; an output is replaced by the values that its node reads, which takes the
//! node away. After each move, whatever no output needs is dropped, and with it instances.
//! The search works on the JSON document, whose reader verifies: no candidate breaks a rule.

mod declarations;

use super::show::graph_json;
use crate::args::ReduceArgs;
use crate::console::{Console, progress};
use crate::failure::{Answer, Failure};
use crate::files::{Form, form_of, form_to_keep, load_graph, write, write_file};
use crate::places::{apart, writable};
use crate::words::{count, plural};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use indicatif::ProgressBar;
use serde_json::{Value as Json, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// Reduces a graph.
pub fn reduce(args: &ReduceArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    form_to_keep(&args.output, true)?;
    apart(&[&args.output], &[&args.graph])?;
    writable(&args.output)?;
    let graph = load_graph(&args.graph)?;
    let mut search = Search { args, runs: 0, bar: progress(args.runs as usize, "reducing") };
    if !search.fails(&graph)? {
        let message = format!("the command does not fail on {}", args.graph);
        return Err(Failure::usage(message)
            .help("it must end with an exit code other than 0; {} stands for the file"));
    }
    let smallest = search.shrink(graph)?;
    search.bar.finish_and_clear();
    write(&args.output, &form(&args.output, &smallest)?, console)?;
    if args.output == "-" {
        return Ok(Answer::Yes);
    }
    writeln!(
        console,
        "wrote {}: {} of {}, after {}",
        args.output,
        plural(smallest.arena.len() as u64, "node"),
        plural(smallest.instances() as u64, "instance"),
        plural(u64::from(search.runs), "run"),
    )?;
    if search.runs >= args.runs {
        writeln!(console, "stopped at {} runs; more may find a smaller one (--runs)", count(args.runs))?;
    }
    Ok(Answer::Yes)
}

fn form(path: &str, graph: &GraphData) -> Result<Vec<u8>, Failure> {
    match form_of(path) {
        Some(Form::Binary) => Ok(graph.to_bytes()),
        Some(Form::Json) => graph_json(graph),
        _ => Ok(graph.to_text().into_bytes()),
    }
}

struct Search<'a> {
    args: &'a ReduceArgs,
    runs: u32,
    bar: ProgressBar,
}

impl Search<'_> {
    /// Whether the command fails on a graph.
    fn fails(&mut self, graph: &GraphData) -> Result<bool, Failure> {
        self.runs += 1;
        self.bar.inc(1);
        let extension = self.args.output.rsplit_once('.').map_or("graph", |(_, extension)| extension);
        let file = std::env::temp_dir().join(format!("autobatch-reduce-{}.{extension}", std::process::id()));
        let file = file.to_string_lossy().into_owned();
        write_file(&file, &form(&file, graph)?)?;
        let words: Vec<String> = self.args.command.iter().map(|word| word.replace("{}", &file)).collect();
        let run = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        // The candidate is of no use to anyone; if it cannot be removed, it is only in the way.
        let _ = std::fs::remove_file(&file);
        let status = run.map_err(|error| {
            Failure::usage(format!("cannot run {}: {error}", words[0])).help("name a program after --")
        })?;
        Ok(!status.success())
    }

    fn shrink(&mut self, graph: GraphData) -> Result<GraphData, Failure> {
        let mut best = graph;
        loop {
            let before = (best.arena.len(), best.outputs.len());
            self.drop_outputs(&mut best)?;
            self.move_outputs(&mut best)?;
            if (best.arena.len(), best.outputs.len()) == before || self.spent() {
                break;
            }
        }
        match declarations::used(&best) {
            Some(candidate) if !self.spent() && self.fails(&candidate)? => Ok(candidate),
            _ => Ok(best),
        }
    }

    fn spent(&self) -> bool {
        self.runs >= self.args.runs
    }

    /// Takes a candidate if it is smaller and the command fails on it.
    fn accept(&mut self, best: &mut GraphData, wanted: &[(ValueId, bool)]) -> Result<bool, Failure> {
        let Some(candidate) = with_outputs(best, wanted)? else { return Ok(false) };
        let size = |graph: &GraphData| (graph.arena.len(), graph.outputs.len());
        if size(&candidate) >= size(best) || self.spent() || !self.fails(&candidate)? {
            return Ok(false);
        }
        *best = candidate;
        Ok(true)
    }

    fn drop_outputs(&mut self, best: &mut GraphData) -> Result<(), Failure> {
        let mut parts = 2;
        while best.outputs.len() > 1 && !self.spent() {
            let outputs = outputs(best);
            let size = outputs.len().div_ceil(parts);
            let mut smaller = false;
            for from in (0..outputs.len()).step_by(size) {
                let rest: Vec<_> = outputs
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| !(from..from + size).contains(at))
                    .map(|(_, &output)| output)
                    .collect();
                if self.accept(best, &rest)? {
                    smaller = true;
                    break;
                }
            }
            match smaller {
                true => parts = 2.max(parts - 1),
                false if size == 1 => return Ok(()),
                false => parts = (parts * 2).min(outputs.len()),
            }
        }
        Ok(())
    }

    fn move_outputs(&mut self, best: &mut GraphData) -> Result<(), Failure> {
        let mut at = 0;
        while at < best.outputs.len() && !self.spent() {
            let mut wanted = outputs(best);
            let (value, _) = wanted.remove(at);
            let mut read = Vec::new();
            read_by(best, value, &mut read);
            read.retain(|value| wanted.iter().all(|(known, _)| known != value));
            // All operands keep most; a single one takes more away.
            let mut choices = vec![read.clone()];
            choices.extend(read.iter().map(|&value| vec![value]));
            let mut smaller = false;
            for choice in choices {
                let moved: Vec<_> =
                    wanted.iter().copied().chain(choice.into_iter().map(|value| (value, false))).collect();
                smaller = self.accept(best, &moved)?;
                if smaller {
                    break;
                }
            }
            at += usize::from(!smaller);
        }
        Ok(())
    }
}

/// The outputs, each once, and whether it is a loss.
fn outputs(graph: &GraphData) -> Vec<(ValueId, bool)> {
    let is_loss = |kind| kind == autobatch_ir::graph::OutputKind::Loss;
    graph.outputs.iter().map(|output| (output.value, is_loss(output.kind))).collect()
}

/// The values that the maker of a value reads, elements of lists included.
fn read_by(graph: &GraphData, value: ValueId, read: &mut Vec<ValueId>) {
    for operand in
        graph.arena.operands(graph.arena.producer(value)).iter().filter_map(|operand| operand.as_value())
    {
        if graph.type_of(operand).is_list {
            read_by(graph, operand, read);
        } else if !read.contains(&operand) {
            read.push(operand);
        }
    }
}

/// The graph with these outputs and what they need; none if that is no graph.
fn with_outputs(graph: &GraphData, wanted: &[(ValueId, bool)]) -> Result<Option<GraphData>, Failure> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut needed = vec![false; graph.arena.len()];
    wanted.iter().for_each(|(value, _)| needed[graph.arena.producer(*value).index()] = true);
    for node in graph.arena.ids().rev() {
        if needed[node.index()] {
            for value in graph.arena.operands(node).iter().filter_map(|operand| operand.as_value()) {
                needed[graph.arena.producer(value).index()] = true;
            }
        }
    }
    let mut document: Json = serde_json::from_slice(&graph_json(graph)?)
        .map_err(|error| Failure::input(format!("the graph's own JSON does not read back: {error}")))?;
    let (mut values, mut nodes) = (vec![0u64; graph.arena.values()], vec![0u64; graph.arena.len() + 1]);
    let mut next = (0u64, 0u64);
    for node in graph.arena.ids() {
        nodes[node.index()] = next.0;
        if needed[node.index()] {
            next.0 += 1;
            for value in graph.arena.results(node) {
                values[value] = next.1;
                next.1 += 1;
            }
        }
    }
    nodes[graph.arena.len()] = next.0;
    if let Some(list) = document["nodes"].as_array_mut() {
        let mut needed = needed.iter();
        list.retain(|_| needed.next().copied().unwrap_or(false));
        for node in list {
            for result in node["results"].as_array_mut().into_iter().flatten() {
                if let Some(value) = result.as_u64() {
                    *result = json!(values[value as usize]);
                }
            }
            for operand in node["operands"].as_array_mut().into_iter().flatten() {
                if let Some(value) = operand.get("value").and_then(Json::as_u64) {
                    operand["value"] = json!(values[value as usize]);
                }
            }
        }
    }
    let ends = graph.cuts.iter().skip(1).map(|cut| cut.first as usize).chain([graph.arena.len()]);
    let cuts: Vec<Json> = graph
        .cuts
        .iter()
        .zip(ends)
        .filter(|(cut, end)| nodes[cut.first as usize] < nodes[*end])
        .map(|(cut, _)| json!({"first": nodes[cut.first as usize], "key": cut.key}))
        .collect();
    document["cuts"] = Json::Array(cuts);
    let outputs = wanted.iter().enumerate().map(|(number, (value, loss))| {
        let kind = if *loss { "loss" } else { "value" };
        json!({"name": format!("output{number}"), "value": values[value.index()], "kind": kind})
    });
    document["outputs"] = outputs.collect();
    let kept = |value: &ValueId| needed[graph.arena.producer(*value).index()];
    document["shared"] =
        graph.shared.iter().filter(|value| kept(value)).map(|value| json!(values[value.index()])).collect();
    document["alone"] = graph
        .alone
        .iter()
        .filter(|node| needed[node.index()])
        .map(|node| json!(nodes[node.index()]))
        .collect();
    Ok(GraphData::from_json(&document.to_string()).ok())
}
