//! The bits of an update do not depend on threads, instruction sets or array lengths.

use crate::lab::{Lab, Random, every_rule, module};
use autobatch_ir::{Init, ModuleBuilder};
use autobatch_nn::optim::{Adam, AdamW, Optimize};
use autobatch_runtime_cpu::Executor;
use autobatch_runtime_cpu::kernels::Isa;

#[test]
fn updates_match_the_naive_executor_for_all_threads_and_instruction_sets() {
    let mut m = ModuleBuilder::new("large");
    m.param("w", [233, 301], Init::Uniform(1.0));
    m.table("t", [200, 67], Init::Uniform(1.0));
    m.param("b", [513], Init::Uniform(1.0));
    let module = m.build().expect("the module is well formed");
    let optimizer = AdamW::new(0.01).clip_norm(1.0).average(0.99).sparse_rows();
    let mut random = Random(1);
    let lab = Lab::new(&module, optimizer);
    let mut given = lab.gradients(&mut random);
    given.sparse_rows = vec![None, Some((0..200).filter(|row| row % 7 < 4).collect())];
    // The lab compares each update with the naive executor.
    let mut naive = Lab::new(&module, lab.optimizer.clone());
    let mut executor = Executor::new(1).expect("the machine has an instruction set");
    (0..2).for_each(|_| naive.update(&mut executor, &given, 0.5));
    for isa in Isa::available() {
        for threads in [1, 2, 3] {
            let mut executor = Executor::with_isa(isa, threads);
            let mut lab = Lab::new(&module, lab.optimizer.clone());
            for _ in 0..2 {
                let floats = lab.next_floats(0.5);
                executor
                    .update_with(&lab.plan, &given, &mut lab.weights, &mut lab.states, &floats)
                    .expect("everything fits");
            }
            assert!(lab.weights == naive.weights && lab.states == naive.states, "{isa}, {threads} threads");
        }
    }
}

#[test]
fn arrays_of_every_length_are_updated_completely() {
    for len in [1, 2, 15, 16, 17, 127, 128, 129, 255, 256, 257, 1025] {
        let mut m = ModuleBuilder::new("lengths");
        m.param("w", [len], Init::Uniform(1.0));
        let mut lab =
            Lab::new(&m.build().expect("the module is well formed"), Adam::new(0.01).clip_norm(0.1));
        let given = lab.gradients(&mut Random(len as u64));
        let mut executor = Executor::new(1).expect("the machine has an instruction set");
        (0..3).for_each(|_| lab.update(&mut executor, &given, 1.0));
    }
}

#[test]
fn every_rule_matches_the_naive_executor_on_every_instruction_set() {
    for optimizer in every_rule() {
        for isa in Isa::available() {
            let mut lab = Lab::new(&module(), optimizer.clone());
            let mut executor = Executor::with_isa(isa, 1);
            let mut random = Random(5);
            for _ in 0..3 {
                let given = lab.gradients(&mut random);
                lab.update(&mut executor, &given, 0.5);
            }
        }
    }
}
