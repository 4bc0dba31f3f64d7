//! How much the row-order planners save, and what they cost: `cargo run --release --example layout [DATA]`.
//!
//! Three workloads in minibatches of 32: binary trees, two-direction recurrent chains, lattices; generated, or read from
//! `DATA/sst/valid.txt` and `DATA/zh_lattice/train.txt` where a folder is given. Batches are formed by firing the type with
//! the largest ready share, which is what the compiler's scheduler does on these graphs. Trees and lattices are also emitted
//! and planned as users' graphs are, and the certificates of those plans counted.
#![allow(clippy::print_stdout, reason = "an example reports on standard output")]

mod emitted;
mod workloads;

use autobatch_planner::layout::{
    Access, BatchId, Budget, Layout, Problem, Role, batch_order, check, planned, propagated,
};
use std::time::Instant;
use workloads::{
    Graph, SplitMix64, chains, generated_trees, lattice, parsed_lattices, parsed_trees, random_lattices,
};

type Failure = Box<dyn std::error::Error>;

/// Sums over the minibatches of one workload.
#[derive(Default)]
struct Tally {
    gathered: u64,
    results: u64,
    direct: u64,
    descending: u64,
    recurrent: u64,
    runs: u64,
    nanoseconds: u128,
}

impl Tally {
    fn take(&mut self, problem: &Problem, repeat: u32, plan: impl Fn() -> Layout) -> Result<Layout, Failure> {
        let mut layout = plan();
        // The least of several: other programs share the machine.
        let mut best = u128::MAX;
        for _ in 0..repeat {
            let start = Instant::now();
            layout = plan();
            best = best.min(start.elapsed().as_nanos());
        }
        self.nanoseconds += best;
        check(problem, &layout)?;
        let counts = layout.counts();
        self.gathered += counts.gathered_operands();
        self.results += counts.result_gathered;
        self.direct += counts.direct_operands();
        self.descending += counts.descending;
        self.runs += layout.gathered_runs(problem);
        self.recurrent += recurrent_gathered(problem, &layout);
        Ok(layout)
    }
}

/// Rows of first operands that live in the slab the batch writes (the state of a recurrence) and are no range; one field.
fn recurrent_gathered(problem: &Problem, layout: &Layout) -> u64 {
    let gathered = |batch: BatchId| {
        let state = problem.slots(batch).find(|&s| problem.role(s) == Some(Role::Operand))?;
        let own = problem.slots(batch).find(|&s| problem.role(s) == Some(Role::Result))?;
        let recurrent = problem.slab(state) == problem.slab(own);
        let lanes = layout.lanes(problem, batch).len() as u64;
        let direct = matches!(layout.access(state), Access::Range { .. });
        Some(if recurrent && !direct { lanes } else { 0 })
    };
    (0..problem.batches()).map(BatchId).filter_map(gathered).sum()
}

fn report(name: &str, graphs: &[Graph]) -> Result<(), Failure> {
    let mut tallies = [Tally::default(), Tally::default(), Tally::default()];
    let (mut rows, mut batches, mut work, mut over) = (0u64, 0u64, 0, 0);
    let mut building = 0;
    for graph in graphs {
        let (problem, nanoseconds) = graph.problem()?;
        building += nanoseconds;
        rows += u64::from(problem.rows());
        batches += u64::from(problem.batches());
        tallies[0].take(&problem, 50, || batch_order(&problem))?;
        tallies[1].take(&problem, 50, || propagated(&problem))?;
        tallies[2].take(&problem, 3, || planned(&problem, Budget::default()).layout)?;
        let outcome = planned(&problem, Budget::default());
        work += outcome.work;
        over += u32::from(outcome.over_budget);
        if std::env::var_os("LAYOUT_TRACE").is_some() {
            println!(
                "  {} of {} kept, {} misaligned, {} tried",
                outcome.kept, outcome.candidates, outcome.misaligned, outcome.tried
            );
        }
    }
    println!(
        "{name}: {} minibatches, {rows} rows, {batches} batches, {over} over budget, {} tree nodes a row; building the problem {:.1} ns a row",
        graphs.len(),
        work / rows.max(1),
        building as f64 / rows as f64,
    );
    for (kind, tally) in ["batch order", "propagated", "planned"].iter().zip(&tallies) {
        println!(
            "  {kind:<12} operand rows gathered {:>7} ({:.2} of batch order, {} runs, {} descending), direct {:>7}, recurrent gathered {}; results gathered {}; {:.1} ns a row",
            tally.gathered,
            tally.gathered as f64 / tallies[0].gathered.max(1) as f64,
            tally.runs,
            tally.descending,
            tally.direct,
            tally.recurrent,
            tally.results,
            tally.nanoseconds as f64 / rows as f64,
        );
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut random = SplitMix64(7);
    let trees = (0..8).map(|_| generated_trees(&mut random)).collect::<Vec<_>>();
    report("random trees", &trees)?;
    emitted::report("random trees", &trees, true)?;
    report("chains", &(0..8).map(|_| chains(&mut random)).collect::<Vec<_>>())?;
    let lattices = (0..4).map(|_| random_lattices(&mut random)).collect::<Vec<_>>();
    report("random lattices", &lattices)?;
    emitted::report("random lattices", &lattices, false)?;
    if let Some(data) = std::env::args_os().nth(1) {
        let data = std::path::PathBuf::from(data);
        let trees = std::fs::read_to_string(data.join("sst/valid.txt"))?;
        let lines: Vec<&str> = trees.lines().collect();
        let trees = lines.chunks(32).take(12).map(parsed_trees).collect::<Vec<_>>();
        report("SST trees", &trees)?;
        emitted::report("SST trees", &trees, true)?;
        let lattices = parsed_lattices(&std::fs::read_to_string(data.join("zh_lattice/train.txt"))?);
        let lattices = lattices.chunks(32).take(6).map(lattice).collect::<Vec<_>>();
        report("Chinese lattices", &lattices)?;
        emitted::report("Chinese lattices", &lattices, false)?;
    }
    Ok(())
}
