//! The time of emission and planning in nanoseconds per node, and the batches and gathered rows of the plans.
//!
//! `cargo run --release -p autobatch-planner --example plan_speed [WORKLOAD [POLICY [ORDER [INSTANCES [ROUNDS [DATA]]]]]]`
//!
//! WORKLOAD is `trees`, `trees2` (two kinds of node at random), `lattice` or `chain`; ORDER is `batch`, `propagated` or
//! `all`; DATA is a folder with `sst`, `zh_lattice` and `wikiner`, without which instances are generated. INSTANCES is a number,
//! or `all` for several sizes. For a profile, choose one order and one size.
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

mod workloads;

use autobatch_ir::{Graph, ValueId};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{PlanCache, Planner, Request, RowOrder};
use std::time::Instant;
use workloads::{Failure, Instance, Model, Random, emit, instances, model};

const USAGE: &str = "WORKLOAD [POLICY [ORDER [INSTANCES [ROUNDS [DATA]]]]]";

/// Number of cache hits per measurement.
const HITS: usize = 11;

/// Times of one row order, and the quality of its plan.
struct Tally {
    rows: RowOrder,
    times: Vec<f64>,
    gathered: u64,
    direct: u64,
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &'static str| words.get(at).map_or(default, String::as_str);
    let workload = word(0, "trees");
    let policy: Policy = word(1, "auto").parse()?;
    let orders = match word(2, "all") {
        "batch" => vec![RowOrder::Batch],
        "propagated" => vec![RowOrder::Propagated],
        "all" => vec![RowOrder::Batch, RowOrder::Propagated],
        other => return Err(format!("unknown order {other}; usage: {USAGE}").into()),
    };
    let sizes = match word(3, "all") {
        "all" => vec![32, 128, 512, 2560],
        number => vec![number.parse()?],
    };
    let rounds = word(4, "0").parse()?;
    let instances = instances(workload, words.get(5).map(String::as_str))?;
    let kinds = if workload == "trees2" { 2 } else { 1 };
    let (module, model) = model();
    let mut planner = Planner::new(policy.load()?);
    for size in sizes {
        let graph = Graph::new(&module);
        let corpus = Corpus { instances: &instances, size, kinds };
        measure(graph, &model, &mut planner, corpus, &orders, rounds)?;
    }
    Ok(())
}

/// Instances of which some are planned, with some kinds of nodes.
#[derive(Clone, Copy)]
struct Corpus<'a> {
    instances: &'a [Instance],
    size: usize,
    kinds: usize,
}

fn measure(
    mut graph: Graph,
    model: &Model,
    planner: &mut Planner,
    Corpus { instances, size, kinds }: Corpus<'_>,
    orders: &[RowOrder],
    rounds: usize,
) -> Result<(), Failure> {
    let rounds = if rounds > 0 { rounds } else { (20_000 / size).clamp(5, 201) };
    let mut tallies: Vec<Tally> =
        orders.iter().map(|&rows| Tally { rows, times: Vec::new(), gathered: 0, direct: 0 }).collect();
    let (mut emitting, mut batches) = (Vec::new(), (0, 0));
    let mut wanted: Vec<ValueId> = Vec::new();
    for _ in 0..rounds {
        graph.clear();
        let mut random = Random(7);
        let start = Instant::now();
        wanted = Vec::with_capacity(size);
        for (key, instance) in instances.iter().cycle().take(size).enumerate() {
            graph.instance(key as u64);
            emit(&graph, model, instance, kinds, &mut random, &mut wanted);
        }
        emitting.push(start.elapsed().as_secs_f64());
        for tally in &mut tallies {
            let request = Request { wanted: &wanted, rows: tally.rows, ..Request::default() };
            let start = Instant::now();
            let plan = planner.plan(&graph.data(), &request)?;
            tally.times.push(start.elapsed().as_secs_f64());
            let certificate = plan.certificate;
            (tally.gathered, tally.direct) = (certificate.gathered, certificate.direct);
            batches = (certificate.batches, certificate.bound);
            // Sessions recycle the plans that leave their cache.
            planner.recycle(plan);
        }
    }
    // The first call plans; all others hit the cache.
    let (mut cache, mut finding) = (PlanCache::new(1), Vec::new());
    let (request, policy) = (Request { wanted: &wanted, ..Request::default() }, planner.policy());
    for _ in 0..=HITS {
        let start = Instant::now();
        cache.get_or_plan(&graph.data(), &request, policy, None, |_| {
            Ok::<_, Failure>(planner.plan(&graph.data(), &request)?.verify()?)
        })?;
        finding.push(start.elapsed().as_secs_f64());
    }
    finding.remove(0);
    let nodes = graph.data().arena.len();
    let each = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        let nanoseconds = |time: f64| time * 1e9 / nodes as f64;
        format!("{:.1} ({:.1})", nanoseconds(times[0]), nanoseconds(times[times.len() / 2]))
    };
    println!(
        "{size} instances, {nodes} nodes: batches {} bound {}, {}; ns a node, least (median): emit {}, found in a cache {}",
        batches.0,
        batches.1,
        planner.search_end(),
        each(emitting),
        each(finding),
    );
    for tally in tallies {
        println!(
            "  {:<10}  plan {}  operand rows gathered {} direct {}",
            format!("{:?}", tally.rows),
            each(tally.times),
            tally.gathered,
            tally.direct,
        );
    }
    Ok(())
}
