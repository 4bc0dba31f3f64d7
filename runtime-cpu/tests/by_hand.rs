//! Plans written by hand use forms that the planner never makes. They match the naive executor bit for bit, or are rejected.

use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, StoreId, Stores, Verified};
use autobatch_ir::{Init, ModuleBuilder, Weights};
use autobatch_oracle::naive;
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{BindError, Executor, Inputs, RunError};
use std::cell::Cell;

/// A plan of one kernel with the given stages. It maps three rows of three bound floats to rows of four elements, with a
/// weight `@0` of 3 x 8 elements and a vector `@1` of eight.
fn plan(stages: &str, operand: &str) -> Verified<Plan> {
    let text = format!(
        "autobatch plan 5 module \"by hand\" structure 0x0 mode infer
        store @w param f32[3,8] store @b param f32[8]
        bind words 0 floats 12
        slab s0 value {{y: f32[4]}} x3
        kernel k0 @cell (%0: f32[3]) [@0: f32[3,8], @1: f32[8]] {{ temp %1: f32[4] {stages} return %1 }}
        wave 0 f0 k0[@w, @b] x3 -> s0.y[0..3] <- {operand} = n0 n1 n2
        output \"0\" s0.y[0] output \"1\" s0.y[1] output \"2\" s0.y[2]
        certificate batches 1 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 48 bytes"
    );
    Plan::from_text(text).expect("well written").verify().expect("sound")
}

/// Compares every instruction set, on one thread and on two, with the naive executor.
fn check(plan: &Verified<Plan>) {
    let mut m = ModuleBuilder::new("by hand");
    m.param("w", [3, 8], Init::Uniform(1.0));
    m.param("b", [8], Init::Uniform(1.0));
    let weights = Weights::init(&m.build().expect("sound"), 1);
    let floats: Vec<f32> = (0..12).map(|number| (number as f32 * 0.618).sin()).collect();
    let bound = Inputs { words: &[], floats: &floats, noise: Noise::Off };
    let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
    let expected = naive::execute(plan, &stores, &[], &floats, Noise::Off).expect("everything is bound");
    for (isa, threads) in Isa::available().into_iter().flat_map(|isa| [(isa, 1), (isa, 2)]) {
        let mut executor = Executor::with_isa(isa, threads);
        executor.set_shared_work(1);
        executor.execute(plan, &weights, bound).expect("everything is bound");
        for number in 0..3 {
            let found: Vec<u32> = executor.output(plan, number).iter().map(|x| x.to_bits()).collect();
            assert_eq!(Some(&found[..]), expected.output(number), "{isa} {threads}: row {number}");
        }
    }
}

#[test]
fn a_bias_begins_at_the_column_of_its_product() {
    check(&plan("prod %1 = @1 + %0 . @0[0..3]", "x[0..9 by 3]"));
    check(&plan("prod %1 = @1 + %0 . @0[0..3, 3..]", "x[0..9 by 3]"));
    check(&plan("prod %1 = @1 + %0[0..2] . @0[0..2, 4..] + %0[2] . @0[1..2, 4..]", "x[0..9 by 3]"));
}

#[test]
fn products_gather_bound_floats() {
    check(&plan("prod %1 = 0 + %0 . @0[0..3]", "x{9 0 4}"));
    check(&plan("prod %1 = 0 + %0[1..3] . @0[1..3]", "x{3 3 1}"));
}

#[test]
fn missing_parameters_are_rejected_by_name() {
    let plan = plan("prod %1 = 0 + %0 . @0[0..3]", "x[0..9 by 3]");
    let mut m = ModuleBuilder::new("another");
    m.param("w", [3, 8], Init::Uniform(1.0));
    let weights = Weights::init(&m.build().expect("sound"), 1);
    let bound = Inputs { words: &[], floats: &[0.0; 12], noise: Noise::Off };
    let error =
        Executor::with_isa(Isa::best(), 1).execute(&plan, &weights, bound).expect_err("there is no @b");
    let RunError::Input(BindError::Store { name, expected, found }) = error else { panic!("{error}") };
    assert_eq!((name.as_str(), expected, found), ("b", 8, 0));
}

/// Stores that return their values `left` times, and are empty afterwards.
struct Vanishing<'a> {
    weights: &'a Weights,
    left: Cell<u32>,
}

impl Stores for Vanishing<'_> {
    fn values(&self, store: StoreId) -> &[f32] {
        match self.left.get() {
            0 => &[],
            left => {
                self.left.set(left - 1);
                Stores::values(self.weights, store)
            }
        }
    }

    fn version(&self, _: StoreId) -> u64 {
        u64::from(self.left.get())
    }
}

#[test]
fn stores_that_shrink_between_reads_are_rejected() {
    let plan = plan("prod %1 = @1 + %0 . @0[0..3]", "x[0..9 by 3]");
    let mut m = ModuleBuilder::new("by hand");
    m.param("w", [3, 8], Init::Uniform(1.0));
    m.param("b", [8], Init::Uniform(1.0));
    let weights = Weights::init(&m.build().expect("sound"), 1);
    let bound = Inputs { words: &[], floats: &[0.5; 12], noise: Noise::Off };
    let mut executor = Executor::with_isa(Isa::best(), 1);
    let mut rejected = 0;
    for _ in 0..2 {
        // In the second round the plan is prepared already.
        for times in 0..8 {
            let stores = Vanishing { weights: &weights, left: Cell::new(times) };
            match executor.execute(&plan, &stores, bound) {
                Ok(()) => assert!(times >= 4, "both stores are read for the check and for use"),
                Err(RunError::Input(BindError::Store { .. })) => rejected += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(rejected >= 8, "{rejected}");
}

/// This number of registers of 2^29 floats exceeds the address space.
const TOO_MANY: usize = 70_000;

#[test]
fn kernels_with_oversized_registers_are_rejected() {
    let mut m = ModuleBuilder::new("by hand");
    m.param("w", [3, 8], Init::Uniform(1.0));
    m.param("b", [8], Init::Uniform(1.0));
    let weights = Weights::init(&m.build().expect("sound"), 1);
    let bound = Inputs { words: &[], floats: &[0.0; 12], noise: Noise::Off };
    let registers = |end: &str| {
        let all = (2..TOO_MANY + 2).map(|number| format!("%{number}: f32[536870912]{end}"));
        all.collect::<Vec<String>>().join(", ")
    };
    let stages = "prod %1 = 0 + %0 . @0[0..3]";
    for registers in [format!("temp {}", registers("")), format!("const {}", registers(" = 0.5"))] {
        let plan = plan(&format!("{registers} {stages}"), "x[0..9 by 3]");
        let error =
            Executor::with_isa(Isa::best(), 1).execute(&plan, &weights, bound).expect_err("too large");
        assert!(matches!(error, RunError::Tiles { bytes } if bytes >= (TOO_MANY as u64) << 31), "{error}");
    }
}
