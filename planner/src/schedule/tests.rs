//! Tests of internals: the counters of the front and the safe rule against their definitions, and mirrored parts.

use super::bound::{longest_paths, paths_below};
use super::front::{Fired, Front};
use super::operand_lists::{JobOperand, OperandLists};
use super::part::Part;
use super::ratio::{best_ratio, replay, safe_type};
use super::scratch::Steps;
use super::*;
use crate::Jobs;
use crate::ids::{JobId, LocalJob, LocalType, TypeIndex};
use crate::lists::{by_key, group};
use autobatch_ir::{Graph, INDEX, Init, ModuleBuilder, f32};
use autobatch_testing::exhaustive::shortest_order;
use autobatch_testing::job_graphs::{JobGraph, Random};
use autobatch_testing::trials::trials;
use bytemuck::TransparentWrapper;

/// Number of cases: `usual`, or ten times as many in long runs.
fn cases(usual: u64) -> u64 {
    trials(usual, usual * 10)
}

/// The checked problem of a generated graph.
fn problem(graph: &JobGraph) -> Problem<'_> {
    let JobGraph { types, ty, alone, start, operands } = graph;
    let [alone, operands] = [alone, operands].map(|jobs| JobId::wrap_slice(jobs));
    Problem::new(*types, TypeIndex::wrap_slice(ty), alone, start, operands)
        .expect("generated problems follow the rules")
}

/// The linked and tracked whole of a problem as one part.
fn whole(graph: &JobGraph) -> Part {
    let mut part = Part::default();
    part.whole(&problem(graph));
    part.link();
    part.track();
    part
}

/// All jobs above each job, without the job itself.
fn ancestors(graph: &JobGraph) -> Vec<Vec<bool>> {
    let mut above: Vec<Vec<bool>> = Vec::new();
    for job in 0..graph.ty.len() {
        let mut own = vec![false; graph.ty.len()];
        for &operand in graph.operands_of(job) {
            own[operand as usize] = true;
            own.iter_mut().zip(&above[operand as usize]).for_each(|(own, &other)| *own |= other);
        }
        above.push(own);
    }
    above
}

#[test]
fn source_and_ready_counts_match_their_definitions_in_every_state() {
    for seed in 0..cases(200) {
        let graph = JobGraph::any(seed);
        let above = ancestors(&graph);
        let (part, mut front, mut fired) = (whole(&graph), Front::default(), Fired::default());
        let mut done = vec![false; part.len()];
        let mut random = Random(seed);
        front.reset(&part, &mut fired);
        loop {
            fired.batch.iter().chain(&fired.alone).for_each(|&job| done[job.index()] = true);
            for ty in part.type_ids() {
                let open = |job: &LocalJob| part.ty[job.index()] == ty && !done[job.index()];
                let held = |&job: &LocalJob| part.ids().any(|v| above[job.index()][v.index()] && open(&v));
                let waits = |&job: &LocalJob| part.operands(job).iter().any(|v| !done[v.index()]);
                let sources = part.ids().filter(open).filter(|job| !held(job)).count();
                let ready = part.ids().filter(open).filter(|job| !waits(job)).count();
                assert_eq!(front.ready.count(ty) as usize, ready, "ready of type {ty}, seed {seed}");
                if part.slot_of[ty.index()] == u32::MAX {
                    assert!(front.sources[ty.index()] as usize >= sources, "type {ty}, seed {seed}");
                } else {
                    assert_eq!(
                        front.sources[ty.index()] as usize,
                        sources,
                        "sources of type {ty}, seed {seed}"
                    );
                }
            }
            assert_eq!(front.left as usize, done.iter().filter(|&&done| !done).count(), "seed {seed}");
            let ready: Vec<LocalType> = part.type_ids().filter(|&ty| front.ready.count(ty) > 0).collect();
            if ready.is_empty() {
                break;
            }
            let ty = ready[random.below(ready.len() as u64) as usize];
            front.fire(&part, ty, &mut fired);
        }
        assert_eq!(front.left, 0, "seed {seed}: unfinished jobs, but none is ready");
    }
}

#[test]
fn path_counts_agree_in_both_directions() {
    for seed in 0..cases(100) {
        let graph = JobGraph::any(seed);
        let (part, mut lanes, mut below) = (whole(&graph), Vec::new(), Vec::new());
        let (mut up, mut down) = (Vec::new(), Vec::new());
        longest_paths(&part, &mut lanes, &mut up);
        paths_below(&part, &mut lanes, &mut down, &mut below);
        assert_eq!(up, down, "seed {seed}");
        for (ty, &most) in part.type_ids().zip(&up) {
            let own = part.ids().filter(|job| part.ty[job.index()] == ty);
            assert_eq!(own.map(|job| below[job.index()]).max().unwrap_or(0), most, "seed {seed}");
        }
    }
}

#[test]
fn a_reversed_sequence_of_the_mirror_image_runs_the_original() {
    for seed in 0..cases(200) {
        let graph = JobGraph::any(seed);
        let (part, mut mirror) = (whole(&graph), Part::default());
        let (mut front, mut fired, mut steps) = (Front::default(), Fired::default(), Steps::default());
        mirror.mirror(&part);
        front.reset(&mirror, &mut fired);
        let mut sequence = Vec::new();
        while let Some(ty) = best_ratio(&front) {
            front.fire(&mirror, ty, &mut fired);
            sequence.push(ty);
        }
        sequence.reverse();
        replay(&part, &mut front, &mut fired, &sequence, &mut steps);
        assert_eq!(front.left, 0, "seed {seed}");
        assert!(steps.count as usize <= sequence.len() + graph.alone.len(), "seed {seed}");
        let (mut start, mut items) = (Vec::new(), Vec::new());
        group(
            steps.count as usize,
            by_key(steps.of.iter().map(|&step| step as usize)),
            &mut start,
            &mut items,
        );
        let batches = Batches { start, items, bound: None, why: StopReason::Rule };
        assert_eq!(check(&problem(&graph), &batches), Ok(()), "seed {seed}");
    }
}

/// The graph without its finished jobs.
fn rest(graph: &JobGraph, done: &[bool]) -> JobGraph {
    let mut left = JobGraph::new(graph.types);
    let mut number = vec![0; graph.ty.len()];
    for job in (0..graph.ty.len()).filter(|&job| !done[job]) {
        let operands = graph.operands_of(job);
        let left_operands: Vec<u32> =
            operands.iter().filter(|&&v| !done[v as usize]).map(|&v| number[v as usize]).collect();
        number[job] = left.add(graph.ty[job], &left_operands);
    }
    left
}

#[test]
fn a_type_with_ratio_one_begins_an_optimal_order() {
    let mut decisions = 0;
    for seed in 0..cases(1000) {
        let mut random = Random(seed);
        let (jobs, types) = (1 + random.below(14), 1 + random.below(4) as u32);
        let graph = JobGraph::random(jobs, types, &mut random);
        let (part, mut front, mut fired) = (whole(&graph), Front::default(), Fired::default());
        front.reset(&part, &mut fired);
        let mut done = vec![false; part.len()];
        while let Some(ty) = safe_type(&front) {
            let before = shortest_order(&rest(&graph, &done)).len();
            front.fire(&part, ty, &mut fired);
            fired.batch.iter().for_each(|&job| done[job.index()] = true);
            let after = shortest_order(&rest(&graph, &done)).len();
            assert_eq!(before, after + 1, "seed {seed}: a step of type {ty} loses a batch\n{graph:?}");
            decisions += 1;
        }
    }
    assert!(decisions > 1000, "only {decisions} safe decisions");
}

#[test]
fn names_match_the_version_in_fsm_tables() {
    let mut m = ModuleBuilder::new("names");
    let table = m.table("table", [5, 2], Init::ZEROS);
    let weight = m.param("weight", [2, 2], Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |_, [word]| [table.row(word)]);
    let job = m.cell("node", [f32(2), f32(2)], |g, [a, b]| [(g.affine([a], weight, None) + b).tanh()]);
    let g = Graph::new(&m.build().expect("the model is well typed"));
    let [a] = g.call(leaf, 3);
    let [b] = g.call(job, [a, a.relu()]);
    g.output("loss", b.cross_entropy(1));
    let graph = g.finish().expect("the graph is well typed");
    let names: Vec<String> = Jobs::new(&graph, &[]).names.iter().map(|name| format!("{name:016x}")).collect();
    // If these change, older tables of `fsm` no longer match: increment `NAMES` and update the names here.
    assert_eq!(names, ["78852b2254ed7130", "03c49f750ca227fd", "c523d1c359b884a4", "ac400cedbf7708c8"]);
}

/// A graph whose jobs read growing and whole lists of earlier jobs, and the same with lists named by number.
fn with_lists(seed: u64) -> (JobGraph, Vec<u32>, Vec<JobOperand>, OperandLists) {
    let mut random = Random(seed);
    // Above 64 types, the type graph takes more than a word.
    let types = if seed.is_multiple_of(5) { 70 } else { 1 + random.below(6) as u32 };
    let mut graph = JobGraph::new(types);
    let (mut start, mut operands, mut lists) = (vec![0], Vec::new(), OperandLists::default());
    // Each list with the jobs that it stands for.
    let mut known: Vec<(JobOperand, Vec<u32>)> = Vec::new();
    let operand_of = |job: u32| JobOperand::job(JobId(job));
    for job in 0..2 + random.below(40) as u32 {
        let mut own = Vec::new();
        for _ in 0..random.below(3) {
            match random.below(3) {
                0 if !known.is_empty() => {
                    let (name, jobs) = &known[random.below(known.len() as u64) as usize];
                    operands.push(*name);
                    own.extend_from_slice(jobs);
                }
                _ if job > 0 => {
                    let other = random.below(job.into()) as u32;
                    operands.push(operand_of(other));
                    own.push(other);
                }
                _ => {}
            }
        }
        start.push(operands.len() as u32);
        graph.add(random.below(types.into()) as u32, &own);
        match random.below(4) {
            0 => {
                let jobs: Vec<u32> = (0..=job).filter(|_| random.below(3) == 0).collect();
                known.push((lists.push(jobs.iter().copied().map(operand_of)), jobs));
            }
            1 if !known.is_empty() => {
                let (name, mut jobs) = known[random.below(known.len() as u64) as usize].clone();
                jobs.push(job);
                known.push((lists.push([name, operand_of(job)].into_iter()), jobs));
            }
            _ => {}
        }
    }
    graph.mark_alone(8, &mut random);
    (graph, start, operands, lists)
}

#[test]
fn named_lists_give_the_batches_of_operands_written_out() {
    let policies: [Box<dyn Schedule>; 5] = [
        Box::new(Unbatched),
        Box::new(Depth),
        Box::new(Agenda::default()),
        Box::new(Ratio),
        Box::new(Beam::default()),
    ];
    let mut named = 0;
    for seed in 0..cases(400) {
        let (graph, start, operands, lists) = with_lists(seed);
        named += usize::from(graph.operands.len() > operands.len());
        let all = problem(&graph);
        let (ty, alone) = (TypeIndex::wrap_slice(&graph.ty), JobId::wrap_slice(&graph.alone));
        let short = Problem::trusted(graph.types, ty, alone, &start, &operands, &lists);
        for job in all.jobs() {
            let written_out: Vec<u32> = short.operands(job).map(|operand| operand.0).collect();
            assert_eq!(written_out, graph.operands_of(job.index()), "seed {seed}");
        }
        assert_eq!(short.operand_count(), all.operand_count(), "seed {seed}");
        for policy in &policies {
            let [expected, found] =
                [all, short].map(|problem| policy.schedule(&problem, &mut Scratch::default()));
            assert_eq!(found, expected, "{} at seed {seed}", policy.name());
        }
    }
    assert!(named > 100, "only {named} problems have long lists");
}
