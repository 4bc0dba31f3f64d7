//! Error bounds of every op on a device, against the bits of the definition.

use crate::common::{exact, executor, inferring, inputs_of};
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::ParamId;
use autobatch_ir::module::ModuleBuilder;
use autobatch_ir::{Value, Weights};
use autobatch_oracle::reference;
use autobatch_runtime_wgpu::{Arithmetic, Executor, Options};
use autobatch_testing::op_table::{self, Evaluate, Kind};
use std::cell::RefCell;

/// Elementwise functions, the range of their operands, and their errors in units in the last place, native and exact.
/// The native ones hold for a device that rounds every product twice and divides through a reciprocal, as software
/// Vulkan does.
type Row = (&'static str, f32, u32, u32, for<'g> fn(Value<'g>) -> Value<'g>);

const ROWS: [Row; 17] = [
    ("exp", 80.0, 3, 1, |x| x.exp()),
    ("log", 1e6, 3, 1, |x| x.abs().log()),
    ("sqrt", 1e6, 1, 0, |x| x.abs().sqrt()),
    ("rsqrt", 1e6, 3, 0, |x| x.abs().rsqrt()),
    ("recip", 1e6, 1, 0, |x| x.recip()),
    ("tanh", 12.0, 4, 1, |x| x.tanh()),
    ("sigmoid", 80.0, 4, 2, |x| x.sigmoid()),
    ("gelu above 0", 9.0, 8, 4, |x| x.abs().gelu()),
    ("silu", 40.0, 5, 3, |x| x.silu()),
    ("softplus", 40.0, 4, 2, |x| x.softplus()),
    ("erf", 5.0, 4, 1, |x| x.erf()),
    ("sin", 3000.0, 4, 4, |x| x.sin()),
    ("sin far out", 1e9, 4, 4, |x| x.sin()),
    ("cos", 3000.0, 4, 4, |x| x.cos()),
    ("square", 1e6, 0, 0, |x| x.square()),
    ("relu", 10.0, 0, 0, |x| x.relu()),
    ("sign", 10.0, 0, 0, |x| x.sign()),
];

/// The number of `f32` values between two.
fn apart(a: f32, b: f32) -> u32 {
    let order = |x: f32| {
        let bits = x.to_bits() as i32;
        if bits < 0 { i32::MIN.wrapping_sub(bits) } else { bits }
    };
    // Devices may flush denormals.
    let tiny = |x: f32| x.abs() < 2.0 * f32::MIN_POSITIVE;
    if (tiny(a) && tiny(b)) || (a.is_nan() && b.is_nan()) { 0 } else { order(a).abs_diff(order(b)) }
}

fn worst(executor: &mut Executor, (_, range, _, _, function): Row) -> (u32, f32) {
    let module = ModuleBuilder::new("one").build().expect("sound");
    let graph = Graph::new(&module);
    graph.instance(1);
    let inputs: Vec<f32> = (0..2000)
        .map(|i| {
            let share = (i as f32 - 999.5) / 1000.0;
            // One half is spread evenly, the other half towards zero.
            if i % 2 == 0 { share * range } else { share * share * share * range }
        })
        .collect();
    let value = function(graph.input(&inputs));
    let wanted = [value.id().expect("sound")];
    let graph = graph.finish().expect("sound");
    let weights = Weights::init(&graph.module, 0);
    let plan = inferring(&graph, &wanted);
    executor.execute(&plan, &weights, inputs_of(&graph, false)).expect("executes");
    let run = reference::forward::<f32>(&graph, &weights, reference::Noise::Off).expect("sound");
    let expected = run.floats(wanted[0]).expect("floats");
    let found = executor.output(plan.outputs.len() - 1);
    let off = found.iter().zip(expected).zip(&inputs).map(|((&a, &b), &x)| (apart(a, b), x));
    off.fold((0, 0.0), |worst, this| if this.0 > worst.0 { this } else { worst })
}

fn within(options: Options, allowed: fn(&Row) -> u32) {
    let Some(mut executor) = executor(options) else { return };
    let mut off = Vec::new();
    for row in ROWS {
        let (units, at) = worst(&mut executor, row);
        if units > allowed(&row) {
            off.push(format!("{}: {units} units at {at}, expected {} at most", row.0, allowed(&row)));
        }
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
}

#[test]
fn elementwise_functions_are_within_their_bounds_with_native_arithmetic() {
    within(Options { arithmetic: Arithmetic::Native, ..Options::default() }, |row| row.2);
}

#[test]
fn elementwise_functions_are_within_their_bounds_with_exact_arithmetic() {
    within(exact(), |row| row.3);
}

#[test]
fn nan_targets_give_nan_losses() {
    for options in [Options::default(), exact()] {
        let Some(mut executor) = executor(options) else { return };
        let graph = Graph::new(&ModuleBuilder::new("losses").build().expect("sound"));
        graph.instance(1);
        let (x, target) = (graph.input(&[0.5, -1.0, 2.0]), graph.input(&[0.25, f32::NAN, 0.0]));
        for (name, loss) in [("entropy", x.cross_entropy_with(target)), ("divergence", x.kl_div(target))] {
            graph.output(name, loss);
        }
        let graph = graph.finish().expect("sound");
        let plan = inferring(&graph, &[]);
        executor
            .execute(&plan, &Weights::init(&graph.module, 0), inputs_of(&graph, false))
            .expect("executes");
        for (number, output) in plan.outputs.iter().enumerate() {
            assert!(executor.output(number)[0].is_nan(), "{}: {:?}", output.key, executor.output(number));
        }
    }
}

struct OnGpu(RefCell<Executor>);

impl Evaluate for OnGpu {
    fn run(&self, graph: &GraphData, params: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let mut weights = Weights::init(&graph.module, 0);
        for (number, values) in params.iter().enumerate() {
            let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
            weights.get_mut(ParamId::new(number)).copy_from_slice(&values);
        }
        let plan = inferring(graph, &[]);
        let mut executor = self.0.borrow_mut();
        executor.execute(&plan, &weights, inputs_of(graph, false)).expect("executes");
        let number = |word: f32, float: bool, signed: bool| match (float, signed) {
            (true, _) => f64::from(word),
            (false, true) => f64::from(word.to_bits() as i32),
            (false, false) => f64::from(word.to_bits()),
        };
        let output = |(at, output): (usize, &autobatch_ir::plan::PlanOutput)| {
            let dtype = plan.field(output.field).ty.dtype;
            let (float, signed) = (dtype == autobatch_ir::DType::F32, dtype == autobatch_ir::DType::I32);
            executor.output(at).iter().map(|&word| number(word, float, signed)).collect()
        };
        plan.outputs.iter().enumerate().map(output).collect()
    }
}

#[test]
fn every_op_gives_the_values_of_its_table_entry() {
    let Some(executor) = executor(Options::default()) else { return };
    let executor = OnGpu(RefCell::new(executor));
    let check = |&kind: &Kind| op_table::check_numbers(kind, &executor, 2e-5).err();
    let failures: Vec<String> = Kind::ALL.iter().filter_map(check).collect();
    assert!(failures.is_empty(), "{} entries fail:\n{}", failures.len(), failures.join("\n"));
}
