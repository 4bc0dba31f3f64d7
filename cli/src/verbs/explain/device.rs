//! `explain --device gpu`: the dispatches of a plan, and their times on cards as the cost model predicts them.

use super::Report;
use crate::failure::Failure;
use autobatch::runtime_wgpu::compile::{Compiled, Cost, Dispatch, Target, compile};
use autobatch::runtime_wgpu::predict::Card;
use autobatch_inspector::text::{byte_size, plural, table};
use autobatch_ir::plan::{Plan, Verified};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The most dispatches that the text shows.
const SHOWN: usize = 60;

/// Compiles a plan for a device with the smallest limits that WebGPU allows, and predicts its time.
pub(super) fn report(plan: &Verified<Plan>) -> Result<Report, Failure> {
    let compiled = compile(plan, Target::MINIMUM).map_err(|error| {
        Failure::input(format!("this plan does not fit a GPU with small limits: {error}"))
    })?;
    let cards = Card::ALL
        .map(|card| json!({ "card": card.name, "seconds": card.time_of_plan(&compiled).as_secs_f64() }));
    let dispatches: Vec<Json> =
        compiled.dispatches.iter().map(|dispatch| document(&compiled, dispatch)).collect();
    let json = json!({ "cards": cards, "dispatches": dispatches });
    Ok(Report { text: text(&compiled), json })
}

fn template(compiled: &Compiled, dispatch: &Dispatch) -> &'static str {
    compiled.programs[dispatch.program as usize].template().name
}

fn document(compiled: &Compiled, dispatch: &Dispatch) -> Json {
    let Cost { threads, work, bytes, waits } = dispatch.cost;
    let times = Card::ALL.map(|card| {
        json!({
            "card": card.name, "seconds": card.time(&dispatch.cost).as_secs_f64(),
            "bound": card.bound(&dispatch.cost).word(),
        })
    });
    json!({
        "template": template(compiled, dispatch), "steps": dispatch.steps, "segments": dispatch.count,
        "groups": u64::from(dispatch.groups[0]) * u64::from(dispatch.groups[1]), "threads": threads,
        "multiply_adds": work, "bytes": bytes, "waits": waits, "times": times,
    })
}

fn text(compiled: &Compiled) -> String {
    let mut text = String::new();
    let totals = Card::ALL.map(|card| format!("{} {}", card.name, micros(card.time_of_plan(compiled))));
    let all = plural(compiled.dispatches.len() as u64, "dispatch");
    let _ = writeln!(text, "predicted for {all} in one submission: {}", totals.join(", "));
    text.push_str("by kind of kernel\n");
    text += &by_template(compiled);
    text.push_str("dispatches in order; after each time, its largest part\n");
    let head = ["  steps", "kernel", "groups", "multiply-adds", "memory", "waits"].map(str::to_owned);
    let mut rows =
        vec![head.into_iter().chain(Card::ALL.map(|card| card.name.to_owned())).collect::<Vec<_>>()];
    for dispatch in compiled.dispatches.iter().take(SHOWN) {
        let steps = match dispatch.steps {
            None => "  -".to_owned(),
            Some([first, last]) if first == last => format!("  {first}"),
            Some([first, last]) => format!("  {first} to {last}"),
        };
        let groups = u64::from(dispatch.groups[0]) * u64::from(dispatch.groups[1]);
        let Cost { work, bytes, waits, .. } = dispatch.cost;
        let own = [steps, template(compiled, dispatch).to_owned(), groups.to_string(), work.to_string()];
        let times = Card::ALL.map(|card| {
            format!("{} {}", micros(card.time(&dispatch.cost)), card.bound(&dispatch.cost).word())
        });
        rows.push(own.into_iter().chain([byte_size(bytes), waits.to_string()]).chain(times).collect());
    }
    text += &table(&rows, &[0, 1]);
    if compiled.dispatches.len() > SHOWN {
        let _ = writeln!(text, "  .. and {} more; --json lists all", compiled.dispatches.len() - SHOWN);
    }
    text
}

/// The times of all dispatches of each kind of kernel, the slowest on the first card first.
fn by_template(compiled: &Compiled) -> String {
    let mut kinds: BTreeMap<&str, (u64, [Duration; Card::ALL.len()])> = BTreeMap::new();
    for dispatch in &compiled.dispatches {
        let (count, times) = kinds.entry(template(compiled, dispatch)).or_default();
        *count += 1;
        for (time, card) in times.iter_mut().zip(Card::ALL) {
            *time += card.time(&dispatch.cost);
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, (_, times))| std::cmp::Reverse(*times));
    let row = |(name, (count, times)): (&str, (u64, [Duration; Card::ALL.len()]))| -> Vec<String> {
        let own = [format!("  {name}"), plural(count, "dispatch")];
        own.into_iter().chain(times.map(micros)).collect()
    };
    let head =
        ["  kernel", ""].map(str::to_owned).into_iter().chain(Card::ALL.map(|card| card.name.to_owned()));
    let rows: Vec<Vec<String>> = std::iter::once(head.collect()).chain(kinds.into_iter().map(row)).collect();
    table(&rows, &[0])
}

/// A time in microseconds or milliseconds.
fn micros(time: Duration) -> String {
    match time.as_secs_f64() * 1e6 {
        micros if micros < 1000.0 => format!("{micros:.1} µs"),
        micros => format!("{:.2} ms", micros / 1e3),
    }
}
