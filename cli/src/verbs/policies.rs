//! `policies`: compares batching policies on one graph or on several.

use crate::args::PoliciesArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::{load_graph, one_standard_input};
use crate::planning::{self, PlanOptions, Planned};
use autobatch::train::Bar;
use autobatch_inspector::text::{byte_size, count, mean_and_deviation, table};
use autobatch_planner::schedule::{Policy, StopReason};
use serde::Serialize;
use serde_json::json;
use std::cmp::Reverse;
use std::io::Write;
use std::time::Duration;

/// Mean and standard deviation over all graphs.
#[derive(Clone, Copy, Debug, Serialize)]
struct Statistic {
    mean: f64,
    sd: f64,
}

impl Statistic {
    fn of(numbers: impl Iterator<Item = f64>) -> Self {
        let (mean, sd) = mean_and_deviation(&numbers.collect::<Vec<f64>>());
        Self { mean, sd }
    }

    /// `228 ± 21`, or the plain number for a single graph.
    fn text(self, graphs: usize) -> String {
        let whole = |number: f64| {
            if graphs == 1 || number >= 1000.0 {
                count(number.round() as u64)
            } else {
                format!("{number:.1}")
            }
        };
        if graphs == 1 { whole(self.mean) } else { format!("{} ± {:.1}", whole(self.mean), self.sd) }
    }
}

/// The largest number of nodes on which searches are compared without a request.
const MAX_SEARCHED: usize = 100_000;

/// The plans of one policy for all graphs.
struct PolicyPlans {
    policy: Policy,
    plans: Vec<Planned>,
}

impl PolicyPlans {
    fn statistic(&self, number: impl Fn(&Planned) -> f64) -> Statistic {
        Statistic::of(self.plans.iter().map(number))
    }

    fn batches(&self) -> Statistic {
        self.statistic(|planned| f64::from(planned.plan.certificate.batches))
    }

    fn mean_time(&self) -> Duration {
        self.plans.iter().map(|planned| planned.took).sum::<Duration>() / self.plans.len().max(1) as u32
    }

    /// The relative gap between the sum of batches and the sum of lower bounds.
    fn gap(&self) -> f64 {
        let sum = |number: fn(&Planned) -> u32| {
            self.plans.iter().map(|planned| f64::from(number(planned))).sum::<f64>()
        };
        sum(|planned| planned.plan.certificate.batches)
            / sum(|planned| planned.plan.certificate.bound).max(1.0)
            - 1.0
    }
}

/// Plans every graph with every policy and compares the plans.
pub fn policies(args: &PoliciesArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    one_standard_input(&args.graphs)?;
    let graphs =
        args.graphs.iter().map(|path| Ok((path, load_graph(path)?))).collect::<Result<Vec<_>, Failure>>()?;
    let standard = Policy::standard();
    let largest = graphs.iter().map(|(_, graph)| graph.arena.len()).max().unwrap_or(0);
    // The time of a beam search grows faster than the graph, so a large graph is searched on request only.
    let is_searched = |policy: &Policy| largest <= MAX_SEARCHED || !matches!(policy, Policy::Beam(_));
    let skipped: Vec<String> =
        standard.iter().filter(|policy| !is_searched(policy)).map(ToString::to_string).collect();
    if !skipped.is_empty() && !args.json {
        let nodes = count(largest as u64);
        writeln!(console, "without {}: {nodes} nodes; --policy {} adds it", skipped.join(", "), skipped[0])?;
    }
    let standard = standard.into_iter().filter(is_searched);
    let mut all: Vec<Policy> = standard.chain(args.policies.iter().cloned()).collect();
    all.push(Policy::Auto);
    let mut seen = Vec::new();
    all.retain(|policy| {
        !seen.contains(policy) && {
            seen.push(policy.clone());
            true
        }
    });
    let mut bar = Bar::new("planning", all.len() * graphs.len());
    let mut lines = Vec::new();
    for policy in all {
        let mut plans = Vec::new();
        for (path, graph) in &graphs {
            plans.push(planning::plan(
                path,
                graph,
                &PlanOptions { policy: policy.clone(), ..PlanOptions::default() },
            )?);
            bar.advance(&policy.to_string());
        }
        lines.push(PolicyPlans { policy, plans });
    }
    drop(bar);
    let auto = lines.pop().ok_or_else(|| Failure::usage("there is no policy to compare"))?;
    let fewest = lines.iter().map(|line| line.batches().mean).fold(f64::INFINITY, f64::min);
    if args.json {
        print_json(args, &lines, &auto, console)
    } else {
        print(args, &lines, &auto, fewest, console)
    }?;
    Ok(Answer::Yes)
}

fn bound(line: &PolicyPlans) -> Statistic {
    line.statistic(|planned| f64::from(planned.plan.certificate.bound))
}

fn print(
    args: &PoliciesArgs,
    lines: &[PolicyPlans],
    auto: &PolicyPlans,
    fewest: f64,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let graphs = args.graphs.len();
    match &args.graphs[..] {
        [one] => writeln!(console, "{one}")?,
        [first, .., last] => writeln!(console, "{first} .. {last}: {graphs} graphs, mean ± sd")?,
        [] => {}
    }
    let head = ["policy", "batches", "gap", "gathered", "copied", "slabs", "planning", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut marked = false;
    for line in lines {
        let best = line.batches().mean == fewest && !marked;
        marked |= best;
        let note = match line.plans.iter().map(|planned| &planned.batches.why).collect::<Vec<_>>()[..] {
            [why] if matches!(line.policy, Policy::Fsm(_)) => why.to_string(),
            _ if best => "<- fewest batches".to_owned(),
            _ => String::new(),
        };
        rows.push(vec![
            line.policy.to_string(),
            line.batches().text(graphs),
            if line.policy == Policy::None { "-".to_owned() } else { format!("{:.0} %", line.gap() * 100.0) },
            line.statistic(|planned| planned.plan.certificate.gathered as f64).text(graphs),
            line.statistic(|planned| planned.plan.certificate.copied as f64).text(graphs),
            byte_size(line.statistic(|planned| planned.plan.certificate.slab_bytes as f64).mean as u64),
            console.time(line.mean_time()),
            note,
        ]);
    }
    rows.push(vec!["bound".to_owned(), bound(auto).text(graphs)]);
    console.write_all(table(&rows, &[0, 7]).as_bytes())?;
    writeln!(console, "{}", auto_text(lines, auto))?;
    Ok(())
}

/// Describes the batches of `auto` on these graphs, and names the policy with the same batches.
fn auto_text(lines: &[PolicyPlans], auto: &PolicyPlans) -> String {
    let same = |line: &&PolicyPlans| {
        let pairs = line.plans.iter().zip(&auto.plans);
        let mut orders = pairs.map(|(one, other)| {
            one.batches.start == other.batches.start && one.batches.items == other.batches.items
        });
        orders.all(|same| same)
    };
    let like =
        lines.iter().find(same).map_or_else(String::new, |line| format!(", the order of {}", line.policy));
    let batches = auto.batches().text(auto.plans.len());
    let whys: Vec<&StopReason> = auto.plans.iter().map(|planned| &planned.batches.why).collect();
    let batches = if batches == "1" { "1 batch".to_owned() } else { format!("{batches} batches") };
    format!("auto selects {batches}{like}: {}", reasons(&whys))
}

/// The reason for a single graph. For several graphs, each kind of reason once, with its number of
/// graphs and the range of its times.
fn reasons(whys: &[&StopReason]) -> String {
    if let [why] = whys {
        return why.to_string();
    }
    let mut kinds: Vec<(String, Vec<&StopReason>)> = Vec::new();
    for &why in whys {
        let kind = match why {
            StopReason::SearchDoesNotPay { .. } => "further search does not pay".to_owned(),
            StopReason::BatchingDoesNotPay { .. } => "batching does not pay".to_owned(),
            other => other.to_string(),
        };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, members)) => members.push(why),
            None => kinds.push((kind, vec![why])),
        }
    }
    kinds.sort_by_key(|(_, members)| Reverse(members.len()));
    let texts = kinds.iter().map(|(kind, members)| {
        let times = match members[0] {
            StopReason::SearchDoesNotPay { .. } => {
                let [saved, spent] = ranges(members);
                format!(", it would save {saved} of execution and cost {spent} of planning")
            }
            StopReason::BatchingDoesNotPay { .. } => {
                let [one, many] = ranges(members);
                format!(", {one} unbatched, {many} batched, besides the cost of rows")
            }
            _ => String::new(),
        };
        format!("{kind} ({} of {} graphs{times})", members.len(), whys.len())
    });
    texts.collect::<Vec<_>>().join("; or ")
}

/// The ranges of the two times that reasons of one kind compare.
fn ranges(whys: &[&StopReason]) -> [String; 2] {
    let times: Vec<[f64; 2]> = whys.iter().filter_map(|why| compared_times(why)).collect();
    [0, 1].map(|number| range(times.iter().map(|pair| pair[number] / 1e3)))
}

/// The two times in nanoseconds that a reason compares.
fn compared_times(why: &StopReason) -> Option<[f64; 2]> {
    match *why {
        StopReason::SearchDoesNotPay { saves, costs } => Some([saves, costs]),
        StopReason::BatchingDoesNotPay { alone, batched } => Some([alone, batched]),
        _ => None,
    }
}

/// `3.1 to 10.2 µs`, or `3.1 µs` if both ends are equal.
fn range(micros: impl Iterator<Item = f64> + Clone) -> String {
    let (least, most) = (micros.clone().fold(f64::INFINITY, f64::min), micros.fold(0.0, f64::max));
    let [least, most] = [least, most].map(|time| format!("{time:.1}"));
    if least == most { format!("{least} µs") } else { format!("{least} to {most} µs") }
}

fn print_json(
    args: &PoliciesArgs,
    lines: &[PolicyPlans],
    auto: &PolicyPlans,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let line = |line: &PolicyPlans| {
        let why: Vec<String> = line.plans.iter().map(|planned| planned.batches.why.to_string()).collect();
        json!({
            "policy": line.policy.to_string(), "batches": line.batches(), "gap": line.gap(),
            "gathered_rows": line.statistic(|planned| planned.plan.certificate.gathered as f64),
            "direct_rows": line.statistic(|planned| planned.plan.certificate.direct as f64),
            "copied_rows": line.statistic(|planned| planned.plan.certificate.copied as f64),
            "slab_bytes": line.statistic(|planned| planned.plan.certificate.slab_bytes as f64),
            "planning_ms": console.millis(line.mean_time()),
            "batches_by_graph": line.plans.iter().map(|planned| planned.plan.certificate.batches).collect::<Vec<u32>>(),
            "why": why,
        })
    };
    let policies: Vec<serde_json::Value> = lines.iter().chain([auto]).map(line).collect();
    let answer = json!({"graphs": args.graphs, "bound": bound(auto), "policies": policies});
    writeln!(console, "{answer:#}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_one_kind_are_merged() {
        let search = |saves, costs| StopReason::SearchDoesNotPay { saves, costs };
        let all = [search(3e3, 31e3), StopReason::BoundMet, search(10e3, 26e3), search(4e3, 27e3)];
        assert_eq!(
            reasons(&all.iter().collect::<Vec<_>>()),
            "further search does not pay (3 of 4 graphs, it would save 3.0 to 10.0 µs of execution and cost \
             26.0 to 31.0 µs of planning); or met the lower bound: no order has fewer batches (1 of 4 graphs)"
        );
        assert_eq!(reasons(&[&all[0]]), all[0].to_string(), "a single graph shows its own times");
    }
}
