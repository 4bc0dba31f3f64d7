//! The reference, the naive executor and this executor agree on gradients that are not finite.

use autobatch_ir::Weights;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_oracle::naive;
use autobatch_oracle::reference;
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs};

#[test]
fn results_without_a_gradient_count_as_zero_gradients() {
    // In instance 0 no loss depends on the logarithm. Its slope at 0 is infinite, and 0 times infinity is NaN.
    let text = "autobatch graph 2\ncell @c(%x: f32[2]) { %t = tanh(%x) %l = log(%x) return %t, %l }\ngraph\n\
        instance 0:\n%x = input f32[2] (#[0, 2]) %t, %l = call @c(%x) %s = reduce{fold=sum over=all}(%t)\nloss \"a\" %s\n\
        instance 1:\n%y = input f32[2] (#[1, 2]) %u, %m = call @c(%y) %v = add(%u, %m) %w = reduce{fold=sum over=all}(%v)\n\
        loss \"b\" %w\n";
    let graph = autobatch_ir::GraphData::from_text(text).expect("sound");
    let [x, y] = [0, 4].map(ValueId::new);
    let losses: Vec<(ValueId, f32)> = graph.outputs.iter().map(|output| (output.value, 1.0)).collect();
    let weights = Weights::init(&graph.module, 1);
    let run = reference::forward::<f32>(&graph, &weights, Noise::Off).expect("sound");
    let reference = reference::reverse(&graph, &weights, &run, &losses).expect("sound");
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[x, y] });
    let request = Request { mode: Mode::Train, gradients, ..Request::default() };
    let plan = Planner::default().plan(&graph, &request).expect("differentiable").verify().expect("sound");
    let (words, floats) = (&graph.bindings.words[..], &graph.bindings.floats[..]);
    let naive = naive::execute(&plan, &Vec::<Vec<f32>>::new(), words, floats, Noise::Off).expect("in range");
    let mut executor = Executor::new(1).expect("opens");
    executor.execute(&plan, &weights, Inputs { words, floats, noise: Noise::Off }).expect("in range");
    for (output, value) in [(2, x), (3, y)] {
        let same = |a: f32, b: f32| a == b || a.is_nan() && b.is_nan();
        let expected = reference.value(value).expect("a loss depends on it");
        assert_eq!(expected[0].is_nan(), value == x);
        assert!(executor.output(&plan, output).iter().zip(expected).all(|(&a, &b)| same(a, b)));
        let naive = naive.output(output).expect("the output exists");
        assert!(naive.iter().zip(expected).all(|(&a, &b)| same(f32::from_bits(a), b)));
    }
}
