//! `reduce`: makes a graph smaller while a command still fails on it.
//!
//! The search repeats two moves until neither helps or the maximum number of runs is reached:
//!
//! * It removes outputs, first half of them, at last single ones.
//! * It replaces an output by the operands of its node, which removes the node.
//!
//! Each move also removes the nodes and instances that no output needs any more. Candidates are edited
//! as JSON documents. The JSON reader verifies them, so every candidate keeps the rules of graphs.

mod declarations;

use super::show::graph_json;
use crate::args::ReduceArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{Form, form_of, load_graph, readable_form_to_write, write, write_file};
use crate::output_paths::{check_distinct, check_writable};
use autobatch::train::Bar;
use autobatch_inspector::text::{count, plural};
use autobatch_ir::graph::{GraphData, Output, OutputKind};
use autobatch_ir::id::ValueId;
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::io::Write;
use std::process::{Command, Stdio};
use std::slice;

/// Reduces a graph and writes the smallest graph found.
pub fn reduce(args: &ReduceArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    readable_form_to_write(&args.output, true)?;
    check_distinct(&[&args.output], &[&args.graph])?;
    check_writable(&args.output)?;
    let graph = load_graph(&args.graph)?;
    let mut search = Search { args, runs: 0, bar: Bar::new("reducing", args.runs as usize) };
    if !search.fails(&graph)? {
        let help = match &args.message {
            Some(_) => {
                "its output must contain the text of --message; {} is replaced by the path of the graph"
            }
            None => "it must exit with a code other than 0; {} is replaced by the path of the graph",
        };
        return Err(Failure::usage(format!("the command does not fail on {}", args.graph)).help(help));
    }
    let smallest = search.shrink(graph)?;
    let runs = search.runs;
    drop(search);
    write(&args.output, &encoded(&args.output, &smallest)?, console)?;
    if args.output == "-" {
        return Ok(Answer::Yes);
    }
    writeln!(
        console,
        "wrote {}: {} of {}, after {}",
        args.output,
        plural(smallest.arena.len() as u64, "node"),
        plural(smallest.instances() as u64, "instance"),
        plural(u64::from(runs), "run"),
    )?;
    if runs >= args.runs {
        writeln!(
            console,
            "stopped after {} runs; more runs may find a smaller graph (--runs)",
            count(args.runs)
        )?;
    }
    Ok(Answer::Yes)
}

fn encoded(path: &str, graph: &GraphData) -> Result<Vec<u8>, Failure> {
    match form_of(path) {
        Some(Form::Binary) => Ok(graph.to_bytes()),
        Some(Form::Json) => graph_json(graph),
        _ => Ok(graph.to_text().into_bytes()),
    }
}

struct Search<'a> {
    args: &'a ReduceArgs,
    runs: u32,
    bar: Bar,
}

impl Search<'_> {
    /// Whether the command fails on a graph.
    fn fails(&mut self, graph: &GraphData) -> Result<bool, Failure> {
        self.runs += 1;
        self.bar.advance(&plural(graph.arena.len() as u64, "node"));
        let extension = self.args.output.rsplit_once('.').map_or("graph", |(_, extension)| extension);
        let file = std::env::temp_dir().join(format!("autobatch-reduce-{}.{extension}", std::process::id()));
        let file = file.to_string_lossy().into_owned();
        write_file(&file, &encoded(&file, graph)?)?;
        let words: Vec<String> = self.args.command.iter().map(|word| word.replace("{}", &file)).collect();
        let run = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).output();
        // The candidate is temporary. An error here only leaves a file behind.
        let _ = std::fs::remove_file(&file);
        let output = run.map_err(|error| {
            Failure::usage(format!("cannot run {}: {error}", words[0])).help("name a program after --")
        })?;
        Ok(match &self.args.message {
            Some(message) => [output.stdout, output.stderr]
                .iter()
                .any(|text| String::from_utf8_lossy(text).contains(message.as_str())),
            None => !output.status.success(),
        })
    }

    fn shrink(&mut self, graph: GraphData) -> Result<GraphData, Failure> {
        let mut best = graph;
        loop {
            let before = size(&best);
            self.drop_outputs(&mut best)?;
            self.move_outputs(&mut best)?;
            if size(&best) == before || self.is_exhausted() {
                break;
            }
        }
        match declarations::without_unused(&best) {
            Some(candidate) if !self.is_exhausted() && self.fails(&candidate)? => Ok(candidate),
            _ => Ok(best),
        }
    }

    fn is_exhausted(&self) -> bool {
        self.runs >= self.args.runs
    }

    /// Replaces `best` by the candidate with these outputs, if it is smaller and the command fails on it.
    fn accept(&mut self, best: &mut GraphData, outputs: &[Wanted]) -> Result<bool, Failure> {
        let Some(candidate) = with_outputs(best, outputs)? else { return Ok(false) };
        if size(&candidate) >= size(best) || self.is_exhausted() || !self.fails(&candidate)? {
            return Ok(false);
        }
        *best = candidate;
        Ok(true)
    }

    fn drop_outputs(&mut self, best: &mut GraphData) -> Result<(), Failure> {
        let mut parts = 2;
        while best.outputs.len() > 1 && !self.is_exhausted() {
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
        while at < best.outputs.len() && !self.is_exhausted() {
            let mut rest = outputs(best);
            let Wanted { value, .. } = rest.remove(at);
            let mut read = Vec::new();
            read_by(best, value, &mut read);
            read.retain(|value| rest.iter().all(|known| known.value != *value));
            // All operands together change least; a single operand removes more.
            let mut choices = vec![read.clone()];
            choices.extend(read.iter().map(|&value| vec![value]));
            let mut smaller = false;
            for choice in choices {
                let moved: Vec<_> =
                    rest.iter().copied().chain(choice.into_iter().map(Wanted::plain)).collect();
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

/// Nodes and outputs of a graph, by which candidates are compared.
fn size(graph: &GraphData) -> (usize, usize) {
    (graph.arena.len(), graph.outputs.len())
}

/// An output of a candidate.
#[derive(Clone, Copy)]
struct Wanted {
    value: ValueId,
    is_loss: bool,
}

impl Wanted {
    fn plain(value: ValueId) -> Self {
        Self { value, is_loss: false }
    }
}

fn outputs(graph: &GraphData) -> Vec<Wanted> {
    let wanted = |output: &Output| Wanted { value: output.value, is_loss: output.kind == OutputKind::Loss };
    graph.outputs.iter().map(wanted).collect()
}

/// Collects the operands of the node that computes a value. A list contributes its elements.
fn read_by(graph: &GraphData, value: ValueId, read: &mut Vec<ValueId>) {
    for operand in graph.arena.operands(graph.arena.producer(value)) {
        let list = operand.as_value().filter(|&value| graph.type_of(value).is_list);
        let items =
            list.map_or(Cow::Borrowed(slice::from_ref(operand)), |list| graph.arena.items(list, &graph.sigs));
        for item in items.iter().filter_map(|item| item.as_value()) {
            if !read.contains(&item) {
                read.push(item);
            }
        }
    }
}

/// The graph with these outputs and the nodes that they need; `None` if that breaks a rule.
fn with_outputs(graph: &GraphData, outputs: &[Wanted]) -> Result<Option<GraphData>, Failure> {
    if outputs.is_empty() {
        return Ok(None);
    }
    let renumbering = Renumbering::of(graph, outputs);
    let mut document: Json = serde_json::from_slice(&graph_json(graph)?)
        .map_err(|error| Failure::input(format!("the JSON of the graph does not read back: {error}")))?;
    if let Some(nodes) = document["nodes"].as_array_mut() {
        let mut needed = renumbering.needed.iter();
        nodes.retain(|_| needed.next().copied().unwrap_or(false));
        nodes.iter_mut().for_each(|node| renumbering.renumber(node));
    }
    let ends = graph.cuts.iter().skip(1).map(|cut| cut.first as usize).chain([graph.arena.len()]);
    let cuts = graph
        .cuts
        .iter()
        .zip(ends)
        .filter(|(cut, end)| renumbering.nodes[cut.first as usize] < renumbering.nodes[*end]);
    document["cuts"] = cuts
        .map(|(cut, _)| json!({"first": renumbering.nodes[cut.first as usize], "key": cut.key}))
        .collect();
    let outputs = outputs.iter().enumerate().map(|(number, Wanted { value, is_loss })| {
        let kind = if *is_loss { "loss" } else { "value" };
        json!({"name": format!("output{number}"), "value": renumbering.values[value.index()], "kind": kind})
    });
    document["outputs"] = outputs.collect();
    let shared =
        graph.shared.iter().filter(|value| renumbering.needed[graph.arena.producer(**value).index()]);
    document["shared"] = shared.map(|value| json!(renumbering.values[value.index()])).collect();
    let alone = graph.alone.iter().filter(|node| renumbering.needed[node.index()]);
    document["alone"] = alone.map(|node| json!(renumbering.nodes[node.index()])).collect();
    Ok(GraphData::from_json(&document.to_string()).ok())
}

/// The nodes that a candidate needs, and the new numbers of nodes and values.
struct Renumbering {
    needed: Vec<bool>,
    /// The new number of each node, or of the next node that remains; one more entry than nodes.
    nodes: Vec<u64>,
    values: Vec<u64>,
}

impl Renumbering {
    fn of(graph: &GraphData, outputs: &[Wanted]) -> Self {
        let mut needed = vec![false; graph.arena.len()];
        outputs.iter().for_each(|output| needed[graph.arena.producer(output.value).index()] = true);
        for node in graph.arena.ids().rev() {
            if needed[node.index()] {
                let operands = graph.arena.operands(node).iter().filter_map(|operand| operand.as_value());
                operands.for_each(|value| needed[graph.arena.producer(value).index()] = true);
            }
        }
        let (mut values, mut nodes) = (vec![0; graph.arena.values()], vec![0; graph.arena.len() + 1]);
        let (mut next_node, mut next_value) = (0u64, 0u64);
        for node in graph.arena.ids() {
            nodes[node.index()] = next_node;
            if needed[node.index()] {
                next_node += 1;
                for value in graph.arena.results(node) {
                    values[value] = next_value;
                    next_value += 1;
                }
            }
        }
        nodes[graph.arena.len()] = next_node;
        Self { needed, nodes, values }
    }

    /// Replaces the numbers of values in the JSON of a node.
    fn renumber(&self, node: &mut Json) {
        let renumber = |number: &mut Json| {
            if let Some(value) = number.as_u64() {
                *number = json!(self.values[value as usize]);
            }
        };
        node["results"].as_array_mut().into_iter().flatten().for_each(renumber);
        let operands = node["operands"].as_array_mut().into_iter().flatten();
        operands.filter_map(|operand| operand.get_mut("value")).for_each(renumber);
    }
}
