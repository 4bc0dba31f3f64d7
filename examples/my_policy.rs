//! A custom batching policy, compared with the policies of the library on trees of two cells.
//!
//! The policy always executes the type of jobs for which the longest chain waits.
//!
//! ```text
//! cargo run --release --example my_policy -- 64
//! ```
//!
//! A policy sees the type and the operands of each job, as numbers. Planners and sessions accept custom
//! policies and check their schedules.

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::planner::schedule::{Batches, Problem, Schedule, Scratch, StopReason};
use autobatch::planner::{JobId, Planner, Request};
use autobatch::prelude::*;
use autobatch::random::Random;
use std::cmp::Reverse;

/// Executes the ready type with the job that starts the longest chain to the end of the graph.
struct LongestChain;

impl Schedule for LongestChain {
    fn name(&self) -> &str {
        "longest-chain"
    }

    /// The policy has no options. Sessions cache plans by the name and the options of the policy.
    fn options(&self) -> String {
        String::new()
    }

    fn schedule(&self, problem: &Problem<'_>, _: &mut Scratch) -> Batches {
        let jobs = problem.len();
        let (mut height, mut waits, mut consumers) = (vec![0; jobs], vec![0; jobs], vec![Vec::new(); jobs]);
        for job in problem.jobs().rev() {
            for operand in problem.operands(job) {
                height[operand.index()] = height[operand.index()].max(height[job.index()] + 1);
                consumers[operand.index()].push(job);
                waits[job.index()] += 1;
            }
        }
        let mut ready = vec![Vec::new(); problem.types() as usize];
        for job in problem.jobs().filter(|job| waits[job.index()] == 0) {
            ready[problem.ty_of(job).index()].push(job);
        }

        let (mut start, mut items) = (vec![0], Vec::with_capacity(jobs));
        while items.len() < jobs {
            let urgency = |ty: &usize| ready[*ty].iter().map(|job| height[job.index()]).max();
            let ty = (0..ready.len()).max_by_key(|ty| (urgency(ty), Reverse(*ty))).expect("jobs have types");
            let mut batch = std::mem::take(&mut ready[ty]);
            batch.sort_unstable();
            // A job that the model marks as alone must be a batch of its own.
            let alone = |job: &JobId| problem.alone().binary_search(job).is_ok();
            if let Some(at) = batch.iter().position(alone).filter(|_| batch.len() > 1) {
                let lone = batch.remove(at);
                ready[ty] = std::mem::replace(&mut batch, vec![lone]);
            }
            for job in batch {
                items.push(job);
                for &consumer in &consumers[job.index()] {
                    waits[consumer.index()] -= 1;
                    if waits[consumer.index()] == 0 {
                        ready[problem.ty_of(consumer).index()].push(consumer);
                    }
                }
            }
            start.push(items.len() as u32);
        }
        Batches { start, items, bound: None, why: StopReason::Rule }
    }
}

struct Model {
    words: Table,
    nodes: [Cell<2, 1>; 2],
}

impl Model {
    fn new(m: &mut ModuleBuilder) -> Self {
        let words = m.table("words", [100, 16], Init::Uniform(0.5));
        let nodes = ["noun", "verb"].map(|name| {
            let w = m.param(&format!("{name}.w"), [32, 16], Init::Glorot(1.0));
            m.cell(name, [f32([16]); 2], |g, [l, r]| [g.affine([l, r], w, None).tanh()])
        });
        Self { words, nodes }
    }

    /// A random tree over a number of words, with a random cell at each inner node.
    fn tree<'g>(&self, g: &'g Graph, words: usize, random: &mut Random) -> Value<'g> {
        if words == 1 {
            return self.words.lookup(g, random.between(0, 99));
        }
        let left = 1 + random.index(words - 1);
        let kids = [self.tree(g, left, random), self.tree(g, words - left, random)];
        let [root] = g.call(self.nodes[random.index(2)], kids);
        root
    }
}

fn main() -> autobatch::Result<()> {
    let trees: u64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(32);
    let mut m = ModuleBuilder::new("two cells");
    let model = Model::new(&mut m);
    let module = m.build()?;
    let session = Session::new(&module, Device::Cpu)?;
    let graph = session.graph();
    let mut random = Random::new(1);
    let roots: Vec<Value<'_>> = (0..trees)
        .map(|key| {
            graph.instance(key);
            let words = 5 + random.index(20);
            model.tree(&graph, words, &mut random)
        })
        .collect();

    let wanted: Vec<_> = roots.iter().filter_map(|root| root.id()).collect();
    let request = Request { wanted: &wanted, ..Request::default() };
    for name in ["depth", "agenda", "ratio", "beam:8"] {
        let mut planner = Planner::new(name.parse::<Policy>()?.load()?);
        let certificate = planner.plan(&graph.data(), &request)?.certificate;
        println!("{name:14} {:4} batches, bound {}", certificate.batches, certificate.bound);
    }
    let certificate = Planner::new(Box::new(LongestChain)).plan(&graph.data(), &request)?.certificate;
    println!("{:14} {:4} batches, bound {}", "longest-chain", certificate.batches, certificate.bound);

    // The schedule does not change any bit.
    let mut custom = Session::new(&module, Device::Cpu)?.with_schedule(Box::new(LongestChain));
    let mut auto = session;
    let (custom, auto) = (custom.run(&graph, &roots)?, auto.run(&graph, &roots)?);
    let same = roots.iter().all(|&root| custom[root].words() == auto[root].words());
    println!("same bits as with auto: {same}");
    Ok(())
}
