//! Products of two instance values match the reference bit for bit on every instruction set.

use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::types::f32;
use autobatch_ir::{Graph, ModuleBuilder, Weights};
use autobatch_oracle::reference;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs};

/// Rows, inner size and columns around the bounds of register tiles and blocks of the chain.
const SIZES: &[(usize, usize, usize)] =
    &[(1, 1, 1), (1, 7, 33), (3, 5, 2), (6, 17, 16), (15, 40, 31), (29, 257, 64), (43, 12, 1)];

/// Numbers with full mantissas, which reveal a different order of additions.
fn floats(seed: usize, count: usize) -> Vec<f32> {
    (0..count).map(|i| (((seed * 7919 + i) as f32) * 0.618_034).sin()).collect()
}

#[test]
fn products_of_two_values_match_the_reference_bit_for_bit() {
    let mut seed = 0;
    let mut random = |count: usize| {
        seed += 1;
        floats(seed, count)
    };
    let sizes = if cfg!(miri) { &SIZES[..4] } else { SIZES };
    for &(rows, inner, columns) in sizes {
        let mut m = ModuleBuilder::new("values");
        // Products of transposes, of which one is a result besides and another is added to something.
        let ports = [[rows, inner], [inner, rows], [inner, columns], [columns, inner]].map(f32);
        let turned = m.cell("turned", ports, |_, [a, a_turned, b, b_turned]| {
            let (left, right) = (a_turned.t(), b_turned.t());
            let also_read = a.t();
            let both = also_read.t().matmul(right) + (also_read * 0.5).t().matmul(right);
            [left.matmul(b), a.matmul(right), left.matmul(right), right, both]
        });
        let module = m.build().expect("a sound module");
        let weights = Weights::init(&module, 1);
        let graph = Graph::new(&module);
        let common = random(inner * columns);
        let common = graph.input(&common).reshape([inner, columns]);
        let mut values = Vec::new();
        for key in 0..5 {
            graph.instance(key);
            let left = graph.input(&random(rows * inner)).reshape([rows, inner]);
            let right = graph.input(&random(inner * columns)).reshape([inner, columns]);
            let vector = graph.input(&random(inner));
            values.extend([left.matmul(right), left.matmul(common), left.matmul(vector)].map(|v| v.id()));
            let [left_turned, right_turned] = [left, right].map(|value| value.t());
            let made = graph.call(turned, [left, left_turned, right, right_turned]);
            values.extend(made.map(|value| value.id()));
        }
        graph.check().expect("the graph is well typed");
        let values: Vec<_> = values.into_iter().flatten().collect();
        let data = graph.data();
        let expected =
            reference::forward::<f32>(&data, &weights, reference::Noise::Off).expect("it evaluates");
        for policy in ["none", "auto"] {
            let policy: Policy = policy.parse().expect("a policy");
            let mut planner = Planner::new(policy.load().expect("no file"));
            let plan = planner.plan(&data, &Request { wanted: &values, ..Request::default() });
            let plan = plan.expect("a plan").verify().expect("planners make verifiable plans");
            let first = plan.outputs.len() - values.len();
            for isa in Isa::available() {
                let mut executor = Executor::with_isa(isa, 1);
                let bound =
                    Inputs { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off };
                executor.execute(&plan, &weights, bound).expect("bindings fit");
                for (number, &value) in values.iter().enumerate() {
                    let expected = expected.floats(value).expect("it was evaluated");
                    let found = executor.output(&plan, first + number);
                    let same = found.len() == expected.len()
                        && found.iter().zip(expected).all(|(&a, &b)| same_bits(a, b));
                    assert!(same, "{isa} {rows} {inner} {columns} {value}: {found:?}, expected {expected:?}");
                }
            }
        }
    }
}
