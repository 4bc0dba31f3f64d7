//! Update kernels that no optimiser makes: results that are ports or constants, repeated results, and early results.

use crate::lab::{Given, Random};
use autobatch_ir::plan::UpdatePlan;
use autobatch_ir::{Init, Module, ModuleBuilder, ParamId, Weights};
use autobatch_oracle::naive;
use autobatch_runtime_cpu::Executor;
use autobatch_runtime_cpu::kernels::Isa;
use std::sync::Arc;

fn module(len: usize) -> Arc<Module> {
    let mut m = ModuleBuilder::new("fused");
    m.param("w", [len], Init::Uniform(1.0));
    m.build().expect("the module is well formed")
}

/// An update plan for one parameter with two states.
fn text(len: usize, kernel: &str, updates: &str) -> String {
    format!(
        "autobatch update 5 module \"fused\"\n\
         store @w param f32[{len}] store @w.a state @w f32[{len}] store @w.b state @w f32[{len}]\n\
         store @w.grad grad @w f32[{len}]\nbind floats 2\n{kernel}\n{updates}"
    )
}

/// Compares every instruction set with the naive executor.
#[track_caller]
fn check(kernel: &str, updates: &str) {
    for len in [1, 20, 700] {
        let text = text(len, kernel, updates);
        let plan = UpdatePlan::from_text(&text).unwrap_or_else(|error| panic!("{error}"));
        let plan = plan.verify().unwrap_or_else(|errors| panic!("{errors}"));
        let module = module(len);
        let mut random = Random(4);
        let first = Weights::init(&module, 1);
        let mut first_states = crate::lab::states_of(&module, &first, 2);
        for state in first_states.as_mut_slice() {
            *state.values_mut() = random.floats(len);
        }
        let given = Given { gradients: vec![random.floats(len)], sparse_rows: Vec::new() };
        let mut expected = vec![first.get(ParamId::new(0)).to_vec()];
        expected.extend(first_states.iter().map(|state| state.values().to_vec()));
        expected.push(given.gradients[0].clone());
        naive::update(&plan, &mut expected, &[0.5, -2.0], &[]).expect("everything fits");
        for isa in Isa::available() {
            let (mut weights, mut states) = (first.clone(), first_states.clone());
            let mut executor = Executor::with_isa(isa, 1);
            executor
                .update_with(&plan, &given, &mut weights, &mut states, &[0.5, -2.0])
                .expect("everything fits");
            assert_eq!(weights.get(ParamId::new(0)), expected[0], "@w of {len} on {isa}");
            for (state, expected) in states.iter().zip(&expected[1..]) {
                assert_eq!(state.values(), expected, "{} of {len} on {isa}", state.name());
            }
        }
    }
}

#[test]
fn stores_may_be_exchanged() {
    check("kernel k0 f (%0: f32, %1: f32) { return %1, %0 }", "update k0 -> @w.a @w.b <- @w.a @w.b");
    check(
        "kernel k0 f (%0: f32, %1: f32, %2: f32) { return %1, %2, %0 }",
        "update k0 -> @w @w.a @w.b <- @w @w.a @w.b",
    );
}

#[test]
fn a_result_does_not_overwrite_elements_that_are_read_later() {
    let kernel = "kernel k0 f (%0: f32, %1: f32, %2: f32) { temp %3: f32, %4: f32\n\
                  map 1 { t0 = add %0, %1 -> %3  t1 = mul %0, %1  t2 = sub t1, %2  t3 = mul t2, t0 -> %4 }\n\
                  return %3, %4 }";
    check(kernel, "update k0 -> @w @w.a <- @w @w.a x[1]");
    check(kernel, "update k0 -> @w.a @w <- @w @w.a x[1]");
    check(kernel, "update k0 -> @w.b @w <- @w @w @w.grad");
}

#[test]
fn a_value_may_be_written_to_several_stores() {
    let kernel = "kernel k0 f (%0: f32, %1: f32) { temp %2: f32 const %3: f32 = 0.25\n\
                  map 1 { t0 = mul %0, %1 -> %2 } return %2, %3, %2 }";
    check(kernel, "update k0 -> @w @w.a @w.b <- @w.a @w.grad");
    check("kernel k0 f (%0: f32) { return %0, %0 }", "update k0 -> @w @w.a <- x[0]");
    check("kernel k0 f (%0: f32) { return %0 }", "update k0 -> @w.b <- @w.b");
}

#[test]
fn slots_hold_truth_values_and_integers() {
    let kernel = "kernel k0 f (%0: f32, %1: f32) { temp %2: f32 , %3: i32\n\
                  map 1 { t0 = lt %0, %1  t1 = select t0, %0, %1  t2 = cast{to=i32} t1  t3 = add.i32 t2, 3 -> %3 }\n\
                  map 1 { t0 = cast{to=f32}.i32 %3  t1 = exp t0  t2 = add t1, %0 -> %2 }\n\
                  return %2 }";
    check(kernel, "update k0 -> @w.a <- @w.a x[0]");
}

#[test]
fn scalars_are_computed_from_norms_and_bound_floats() {
    let kernels = "kernel k0 f (%0: f32, %1: f32, %2: f32) { temp %3: f32, %4: f32\n\
                   map 1 { t0 = sqrt %0  t1 = mul t0, %1 -> %3  t2 = sub t1, %2 -> %4 } return %3, %4, %2 }\n\
                   kernel k1 g (%0: f32, %1: f32, %2: f32) { temp %3: f32\n\
                   map 1 { t0 = mul %0, %1  t1 = add t0, %2 -> %3 } return %3 }";
    let updates = "sumsq -> c0 <- @w.grad @w.a @w\nscalars k0 -> c1 c2 c3 <- c0 x[0] x[1]\n\
                   update k1 -> @w <- @w c1 c3\nsumsq -> c4 <- @w\nupdate k1 -> @w.b <- @w c2 c4";
    check(kernels, updates);
}
