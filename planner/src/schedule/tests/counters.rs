//! The counters of the front against their definitions, and parts against the whole.

use super::super::batches::Spare;
use super::super::bound::{longest_paths, paths_below};
use super::super::front::{Fired, Front};
use super::super::part::Part;
use super::super::ratio::{best_ratio, replay};
use super::super::solve::Steps;
use super::generate::{Graph, Random};
use super::*;

/// All jobs above each job, itself left out.
fn ancestors(graph: &Graph) -> Vec<Vec<bool>> {
    let mut above: Vec<Vec<bool>> = Vec::new();
    for job in 0..graph.ty.len() {
        let mut own = vec![false; graph.ty.len()];
        for &operand in graph.problem().operands(job) {
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
        let graph = Graph::any(seed);
        let above = ancestors(&graph);
        let (mut part, mut front, mut fired) = (Part::default(), Front::default(), Fired::default());
        part.whole(&graph.problem());
        part.link();
        part.track();
        let mut done = vec![false; part.len()];
        let mut random = Random(seed);
        front.reset(&part, &mut fired);
        loop {
            fired.batch.iter().chain(&fired.alone).for_each(|&job| done[job as usize] = true);
            for ty in 0..graph.types {
                let open = |job: &usize| part.ty[*job] == ty && !done[*job];
                let held = |&job: &usize| (0..part.len()).any(|v| above[job][v] && open(&v));
                let waits = |&job: &usize| part.operands(job).iter().any(|&v| !done[v as usize]);
                let sources = (0..part.len()).filter(open).filter(|job| !held(job)).count();
                let ready = (0..part.len()).filter(open).filter(|job| !waits(job)).count();
                assert_eq!(front.ready.count(ty) as usize, ready, "ready of type {ty}, seed {seed}");
                if part.slot_of[ty as usize] == u32::MAX {
                    assert!(front.sources[ty as usize] as usize >= sources, "type {ty}, seed {seed}");
                } else {
                    assert_eq!(
                        front.sources[ty as usize] as usize, sources,
                        "sources of type {ty}, seed {seed}"
                    );
                }
            }
            assert_eq!(front.left as usize, done.iter().filter(|&&done| !done).count(), "seed {seed}");
            let ready: Vec<u32> = (0..graph.types).filter(|&ty| front.ready.count(ty) > 0).collect();
            if ready.is_empty() {
                break;
            }
            let ty = ready[random.below(ready.len() as u64) as usize];
            front.fire(&part, ty, &mut fired);
        }
        assert_eq!(front.left, 0, "seed {seed}: jobs are left though nothing is ready");
    }
}

/// The most jobs of `ty` on any path, alone jobs left out, straight from the definition.
fn longest(graph: &Graph, ty: u32) -> u32 {
    let mut most = vec![0u32; graph.ty.len()];
    for job in 0..graph.ty.len() {
        let before = graph.problem().operands(job).iter().map(|&v| most[v as usize]).max().unwrap_or(0);
        let own = graph.ty[job] == ty && !graph.alone.contains(&(job as u32));
        most[job] = before + u32::from(own);
    }
    most.into_iter().max().unwrap_or(0)
}

#[test]
fn bound_counts_the_longest_path_of_every_type() {
    let mut scratch = Scratch::default();
    for seed in 0..cases(300) {
        let graph = Graph::any(seed);
        let bound = path_sum_bound(&graph.problem(), &mut scratch);
        let expected: Vec<u32> = (0..graph.types).map(|ty| longest(&graph, ty)).collect();
        assert_eq!(bound.per_type, expected, "seed {seed}");
        assert_eq!(bound.alone as usize, graph.alone.len(), "seed {seed}");
        assert_eq!(bound.total, expected.iter().sum::<u32>() + bound.alone, "seed {seed}");
    }
}

#[test]
fn path_counts_agree_in_both_directions() {
    for seed in 0..cases(100) {
        let graph = Graph::any(seed);
        let (mut part, mut lanes, mut below) = (Part::default(), Vec::new(), Vec::new());
        let (mut up, mut down) = (Vec::new(), Vec::new());
        part.whole(&graph.problem());
        part.link();
        longest_paths(&part, &mut lanes, &mut up);
        paths_below(&part, &mut lanes, &mut down, &mut below);
        assert_eq!(up, down, "seed {seed}");
        for (ty, &most) in up.iter().enumerate() {
            let own = (0..part.len()).filter(|&job| part.ty[job] as usize == ty);
            assert_eq!(own.map(|job| below[job]).max().unwrap_or(0), most, "seed {seed}");
        }
    }
}

#[test]
fn a_sequence_for_the_mirror_image_read_backwards_runs_the_original() {
    for seed in 0..cases(200) {
        let graph = Graph::any(seed);
        let (mut part, mut mirror) = (Part::default(), Part::default());
        let (mut front, mut fired, mut steps) = (Front::default(), Fired::default(), Steps::default());
        part.whole(&graph.problem());
        part.link();
        part.track();
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
        let batches = Batches::collect(&steps.of, steps.count, None, Why::Rule, &mut Spare::default());
        assert_eq!(check(&graph.problem(), &batches), Ok(()), "seed {seed}");
    }
}
