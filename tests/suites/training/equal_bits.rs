//! Training has one result, however it is batched: equal bits of weights and moments over every policy, order of rows, number
//! of threads, instruction set and number of ranks.
//!
//! The instruction set is a choice of the process, so the test runs itself once for each. Two models train under settings that
//! contain each choice. `AUTOBATCH_TEST=long` trains five, at widths where kernels and threads split their work, and with the
//! best instruction set under all combinations.

use crate::shards::on_ranks;
use autobatch::ir::hash::hash_bytes;
use autobatch::planner::RowOrder;
use autobatch::prelude::*;
use autobatch::runtime_cpu::kernels::Isa;
use autobatch_models::catalogue::{self, OpenModel};
use autobatch_testing::cases::POLICIES;
use std::fmt;
use std::process::Command;
use std::sync::Arc;

const STEPS: u64 = 50;
/// The number of instances of a minibatch: more than shards, and no multiple of them.
const BATCH: usize = 11;
/// The variable that names the models for a child process, and the one that names its answer.
const MODELS: &str = "AUTOBATCH_TEST_CHILD_MODELS";
const ANSWER: &str = "AUTOBATCH_TEST_CHILD_ANSWER";

/// How a run of training is executed.
#[derive(Clone, Copy)]
struct Setting {
    policy: &'static str,
    rows: RowOrder,
    threads: usize,
    ranks: usize,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, rows, threads, ranks } = self;
        write!(f, "{policy}, {rows:?}, {threads} threads, {ranks} ranks")
    }
}

fn settings() -> Vec<Setting> {
    let mut all = Vec::new();
    for policy in POLICIES {
        for rows in [RowOrder::Batch, RowOrder::Propagated] {
            for threads in [1, 2] {
                all.extend((1..=4).map(|ranks| Setting { policy, rows, threads, ranks }));
            }
        }
    }
    match is_long() && Isa::detect() == Ok(Isa::best()) {
        true => all,
        // 11 has no common factor with the sizes of the choices, so the settings have each of them.
        false => all.into_iter().step_by(11).collect(),
    }
}

fn is_long() -> bool {
    std::env::var_os("AUTOBATCH_TEST").is_some_and(|tier| tier == "long")
}

/// Trains a model over eight shards and returns the hash of its losses, weights and moments.
fn trained(problem: &OpenModel, optimizer: &Optimizer, setting: Setting) -> u64 {
    let instances = problem.workload.instances();
    let hashes = on_ranks(setting.ranks, |rank| {
        let options = SessionOptions {
            policy: Some(setting.policy.parse().unwrap()),
            rows: setting.rows,
            threads: setting.threads,
            shared_work: Some(1),
            seed: 5,
            ..SessionOptions::default()
        };
        let weights = Arc::new(Weights::init(&problem.module, 5));
        let trainer = Trainer::with_options(&problem.module, optimizer.clone(), weights, options).unwrap();
        let mut trainer = trainer.shards(8);
        if setting.ranks > 1 {
            trainer = trainer.group(rank).unwrap();
        }
        let mut bytes = Vec::new();
        for number in 0..STEPS as usize {
            let items = (number * BATCH..(number + 1) * BATCH).map(|item| item % instances);
            let step = trainer.step(items, |g, item| problem.workload.loss(g, item)).unwrap();
            bytes.extend(step.losses.iter().flat_map(|loss| loss.to_le_bytes()));
        }
        for param in trainer.weights().iter() {
            bytes.extend(param.values().iter().flat_map(|x| x.to_le_bytes()));
        }
        for state in trainer.states().iter() {
            bytes.extend(state.values().iter().flat_map(|x| x.to_le_bytes()));
        }
        hash_bytes(&bytes)
    });
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{setting}: the ranks differ");
    hashes[0]
}

/// Opens a model, with an optimizer that has moments of both orders.
fn subject(name: &str) -> (OpenModel, Optimizer) {
    let options = catalogue::Options {
        seed: 2,
        count: Some(3 * BATCH + 2),
        batch: Some(BATCH),
        hidden: Some(match (is_long(), name) {
            (false, _) => 36,
            (true, "treelstm") => 150,
            (true, _) => 132,
        }),
        ..catalogue::Options::default()
    };
    let optimizer = Adam::new(1e-3).clip_norm(5.0);
    let optimizer = if name == "tagger" { optimizer.sparse_rows() } else { optimizer };
    (catalogue::open(name, &options).unwrap(), optimizer)
}

#[test]
fn the_child_trains_with_its_instruction_set() {
    let (Some(models), Some(answer)) = (std::env::var_os(MODELS), std::env::var_os(ANSWER)) else { return };
    let mut lines = String::new();
    for name in models.to_str().unwrap().split(' ') {
        let (problem, optimizer) = subject(name);
        for setting in settings() {
            lines += &format!("{name} {:016x} {setting}\n", trained(&problem, &optimizer, setting));
        }
    }
    std::fs::write(answer, lines).unwrap();
}

#[test]
fn training_has_one_result_however_it_is_batched() {
    // The transformer has attention and dropout, and the tagger updates the rows of a table that a minibatch reads.
    let models: &[&str] = match is_long() {
        true => &["treelstm", "tagger", "transformer", "translate", "similarity"],
        false => &["tagger", "transformer"],
    };
    let mut lines = Vec::new();
    for isa in Isa::available() {
        let answer = crate::model::file(&format!("equal-bits-{isa}.txt"));
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["equal_bits::the_child_trains_with_its_instruction_set", "--exact"])
            .envs([(MODELS, models.join(" ").as_str()), ("AUTOBATCH_CPU", isa.name())])
            .env(ANSWER, &answer)
            .output()
            .unwrap();
        assert!(child.status.success(), "{isa}: {}", String::from_utf8_lossy(&child.stdout));
        let found = std::fs::read_to_string(&answer).unwrap();
        lines.extend(found.lines().map(|line| format!("{line}, {isa}")));
    }
    for name in models {
        let of_model = |line: &&String| line.split(' ').next() == Some(*name);
        let hash = |line: &String| line.split(' ').nth(1).unwrap().to_owned();
        let own: Vec<&String> = lines.iter().filter(of_model).collect();
        assert!(own.len() >= settings().len(), "{name}: {} results", own.len());
        let first = hash(own[0]);
        let others: Vec<&&String> = own.iter().filter(|line| hash(line) != first).collect();
        assert!(others.is_empty(), "{}\nbut\n{others:#?}", own[0]);
    }
}
