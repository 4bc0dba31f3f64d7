//! Slab memory respects its limit and does not grow with the length of a chain.

use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Limit, Limits, OverLimit, Plan, Verified};
use autobatch_ir::{Graph, INDEX, Init, Module, ModuleBuilder, Weights, f32};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs, RunError};
use std::sync::Arc;

/// A plan for the last states of `chains` chains of `steps` steps, and its bound words.
fn chains(chains: u32, steps: u32) -> (Arc<Module>, Verified<Plan>, Vec<u32>) {
    let h = 16;
    let mut m = ModuleBuilder::new("chain");
    let embed = m.table("embed", [50, h], Init::Uniform(0.1));
    let weight = m.param("w", [2 * h, h], Init::Glorot(1.0));
    let step = m.cell("step", [INDEX, f32([h])], |g, [word, h]| {
        [g.affine([embed.row(word), h], weight, None).tanh()]
    });
    let module = m.build().expect("the model is well typed");
    let graph = Graph::new(&module);
    let mut values = Vec::new();
    for key in 0..chains {
        graph.instance(u64::from(key));
        let mut state = graph.zeros([h]);
        for word in 0..steps {
            [state] = graph.call(step, ((key * 31 + word) % 50, state));
        }
        values.extend(state.id());
    }
    let data = graph.data();
    let mut planner = Planner::new(Policy::default().load().expect("no file"));
    let plan = planner.plan(&data, &Request { wanted: &values, ..Request::default() }).expect("a plan");
    let plan = plan.verify().expect("planners make verifiable plans");
    (Arc::clone(&module), plan, data.bindings.words.clone())
}

fn execute(
    executor: &mut Executor,
    (module, plan, words): &(Arc<Module>, Verified<Plan>, Vec<u32>),
) -> Result<(), RunError> {
    executor.execute(plan, &Weights::init(module, 1), Inputs { words, floats: &[], noise: Noise::Off })
}

#[test]
fn inference_memory_does_not_grow_with_the_length_of_a_chain() {
    // Miri runs shorter chains.
    let (count, lengths) = if cfg!(miri) { (2, [6, 30]) } else { (32, [100, 1000]) };
    let [short, long] = lengths.map(|steps| {
        let mut executor = Executor::new(1).expect("an instruction set");
        execute(&mut executor, &chains(count, steps)).expect("bindings fit");
        executor.slab_bytes()
    });
    assert!(long as f64 <= 1.05 * short as f64, "{long} bytes after {short}");
}

#[test]
fn a_plan_over_a_limit_is_rejected_before_it_runs() {
    let plan = chains(8, 4);
    let mut executor = Executor::new(1).expect("an instruction set");
    let footprint = executor.footprint(&plan.1);
    let needs = footprint.memory();
    executor.set_limits(Limits::of_memory(needs - 1));
    let error = execute(&mut executor, &plan).expect_err("a byte is missing");
    let RunError::Limit(over) = &error else { panic!("{error}") };
    assert_eq!(**over, OverLimit { footprint, limit: Limit::Memory(needs - 1) });
    let text = error.to_string();
    assert!(text.starts_with(&format!("executing the plan takes {needs} bytes of memory (")), "{text}");
    let remedy = format!("the memory limit is {}; plan a smaller minibatch, or raise the limit", needs - 1);
    assert!(text.ends_with(&remedy), "{text}");
    assert_eq!(executor.slab_bytes(), 0);
    executor.set_limits(Limits { memory: Some(needs), work: Some(footprint.work - 1) });
    let text = execute(&mut executor, &plan).expect_err("an operation is missing").to_string();
    assert!(text.contains(&format!("takes {} floating-point operations", footprint.work)), "{text}");
    executor.set_limits(Limits { memory: Some(needs), work: Some(footprint.work) });
    execute(&mut executor, &plan).expect("it fits");
    executor.set_limits(Limits::NONE);
    execute(&mut executor, &chains(64, 4)).expect("there is no limit");
}

#[test]
fn memory_of_earlier_plans_is_freed_to_respect_the_limit() {
    let (small, large) = (chains(2, 3), chains(if cfg!(miri) { 60 } else { 400 }, 3));
    let mut executor = Executor::new(1).expect("an instruction set");
    execute(&mut executor, &large).expect("bindings fit");
    let held = executor.slab_bytes();
    execute(&mut executor, &small).expect("bindings fit");
    assert_eq!(executor.slab_bytes(), held, "memory is reused for the next plan");
    executor.set_limits(Limits::of_memory(executor.footprint(&small.1).memory()));
    execute(&mut executor, &small).expect("it fits");
    // Buffers are rounded up to cache lines.
    assert!(executor.slab_bytes() < held / 10, "{} of {held}", executor.slab_bytes());
}
