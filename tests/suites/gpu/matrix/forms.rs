//! Products on matrix units in random models: every form that a product has, near what it is of whole numbers, alike
//! in pieces, and new whenever what it was made of is.

use super::{off, with_units};
use crate::batches::cells;
use crate::common::{bound, executor, inferring, training};
use autobatch::prelude::{Adam, Session, SessionOptions, Trainer};
use autobatch_ir::Weights;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::{ParamId, ValueId};
use autobatch_ir::module::{Init, ModuleBuilder, ParamKind};
use autobatch_ir::plan::{FieldId, Mode, Plan, StoreId, Verified};
use autobatch_ir::types::{DType, f32};
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_wgpu::compile::{Target, compile};
use autobatch_runtime_wgpu::module::{Blocks, Program, Squares};
use autobatch_runtime_wgpu::{Budget, Executor, Options, Terms};
use autobatch_testing::random::Rng;
use autobatch_testing::trials::trials;
use std::sync::Arc;

/// A model of cells with products of every form, on so many instances.
pub(super) struct Random {
    graph: GraphData,
    pub(super) plan: Verified<Plan>,
    /// That makes gradients as well.
    pub(super) learns: Verified<Plan>,
    weights: Weights,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let [a, b, c] = [(); 3].map(|()| rng.between(11, 40) as usize);
        let rows = rng.between(1, 3) as usize;
        let mut m = ModuleBuilder::new("random");
        let dtypes = [DType::F32, DType::F16, DType::BF16];
        let mut param = |name: &str, shape: &[usize]| {
            let dtype = rng.pick(&dtypes);
            m.param_stored_as(name, ParamKind::Param, dtype, shape, Init::Uniform(0.3))
        };
        let (gates, starts) = (param("gates", &[a + b, 3 * c]), param("starts", &[3 * c]));
        let (from, bias) = (param("from", &[a, c]), param("bias", &[c]));
        let (round, tied, onto) =
            (param("round", &[c, c]), param("tied", &[c, a]), param("onto", &[a + 5, c]));
        let gated = m.cell("gated", [f32([a]), f32([b])], |g, [x, y]| {
            let all = g.affine([x, y], gates, Some(starts));
            let [i, f, o] = [0, 1, 2].map(|k| all.slice_axis(0, c * k..c * k + c));
            [i.sigmoid() * f.tanh() + o]
        });
        let two = m.cell("two", [f32([a]), f32([c])], |g, [x, h]| {
            [(g.affine([x], from, Some(bias)) + g.affine([h], round, None)).tanh()]
        });
        let kept = m.cell("kept", [f32([a]), f32([c])], |_, [x, h]| {
            let product = x.affine_transposed(tied, Some(bias));
            [product.tanh() + h, product]
        });
        // Products of products: each waits for all three dispatches of the one before.
        let deep = m.cell("deep", [f32([a]), f32([c])], |g, [x, h]| {
            let first = g.affine([x], from, None).tanh();
            let second = g.affine([first], round, Some(bias));
            [g.affine([second.softmax()], round, None) + first * h, second]
        });
        let on = m.cell("on", [f32([a]), f32([c])], |g, [x, h]| [g.affine_onto(h, [x], onto, 3)]);
        let matrix = m.cell("matrix", [f32([rows, a])], |_, [x]| [x.affine(from, Some(bias)).tanh()]);
        let module = m.build().expect("sound");
        let g = Graph::new(&module);
        let mut wanted = Vec::new();
        let instances = rng.pick(&[1, 3, 9, 40]);
        for key in 0..instances {
            g.instance(key);
            let mut input = |width: usize| -> Vec<f32> { (0..width).map(|_| rng.small()).collect() };
            let (x, y) = (g.input(&input(a)), g.input(&input(b)));
            let [mut h] = g.call(gated, [x, y]);
            let [of_rows] = g.call(matrix, [g.input_shaped([rows, a], &input(rows * a))]);
            wanted.extend(of_rows.id());
            for _ in 0..rng.between(1, 4) {
                match rng.below(5) {
                    0 => [h] = g.call(two, [x, h]),
                    1 => [h] = g.call(on, [x, h]),
                    2 => h = g.affine_onto(h, [x], onto, 5).tanh(),
                    number => {
                        let [sum, product] = g.call(if number == 3 { kept } else { deep }, [x, h]);
                        wanted.extend(product.id());
                        h = sum.tanh();
                    }
                }
                wanted.extend(h.id());
            }
        }
        let graph = g.finish().expect("sound");
        let plan = inferring(&graph, &wanted);
        let losses: Vec<(ValueId, f32)> = wanted.iter().map(|&value| (value, 0.25)).collect();
        let learns = training(&graph, &losses);
        let weights = Weights::init(&module, seed);
        Self { graph, plan, learns, weights }
    }

    /// Outputs, then gradients.
    fn bits(&self, executor: &mut Executor, learns: bool) -> Vec<Vec<u32>> {
        let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect();
        let plan = if learns { &self.learns } else { &self.plan };
        executor.execute(plan, &self.weights, bound(&self.graph, learns)).expect("executes");
        let mut all: Vec<Vec<u32>> = (0..plan.outputs.len()).map(|at| bits(executor.output(at))).collect();
        for store in (0..plan.stores.len() as u32).map(StoreId) {
            all.extend(executor.gradient(store).expect("reads").map(|gradient| bits(&gradient)));
        }
        all
    }
}

#[test]
fn products_of_every_form_are_near_and_alike_in_pieces() {
    let Some(mut whole) = executor(Options::default()) else { return };
    for (terms, within) in [(Terms::Pairs, 1e-5), (Terms::Halves, 2e-2)] {
        let Some(mut units) = with_units(terms) else { return };
        let budget = Budget { scratch: Some(24 << 10), ..Budget::default() };
        let Some(mut small) = executor(Options { terms, budget, ..Options::default() }) else { return };
        let binding = Budget { binding: Some(256 << 10), bindings: Some(12), ..Budget::default() };
        let Some(mut narrow) = executor(Options { terms, budget: binding, ..Options::default() }) else {
            return;
        };
        for seed in 0..trials(8, 60) {
            let model = Random::new(seed);
            let found = model.bits(&mut units, false);
            let off = off(&found, &model.bits(&mut whole, false));
            assert!(off < within, "{terms:?}, seed {seed}: off by {off:e}");
            assert!(model.bits(&mut small, false) == found, "{terms:?}, seed {seed}: in pieces");
            assert!(model.bits(&mut narrow, false) == found, "{terms:?}, seed {seed}: in many bindings");
        }
    }
}

#[test]
fn an_executor_of_many_plans_executes_each_like_one_that_was_just_opened() {
    for terms in [Terms::Whole, Terms::Halves] {
        let found = match terms {
            Terms::Whole => executor(Options::default()),
            _ => with_units(terms),
        };
        let Some(mut executed) = found else { return };
        let mut anew = Executor::new(Options { terms, ..Options::default() }).expect("opens");
        let mut models: Vec<Random> = (20..24).map(Random::new).collect();
        let mut rng = Rng::new(5);
        let mut last = 0;
        for turn in 0..32 {
            let number = if rng.chance(60) { last } else { rng.below(4) as usize };
            last = number;
            let model = &mut models[number];
            match rng.below(8) {
                0 => {
                    let param = ParamId::new(rng.below(model.weights.len() as u32) as usize);
                    model.weights.get_mut(param).iter_mut().for_each(|x| *x *= -0.75);
                }
                1 => model.weights = Weights::init(&model.graph.module, turn),
                2 => model.graph.bindings.floats.iter_mut().for_each(|x| *x *= 0.875),
                3 => drop(executed.row(&model.plan, FieldId(0), 0).expect("reads")),
                4 if turn > 26 => executed.close(),
                _ => {}
            }
            // Words in place of halves from the first gradients on.
            let learns = turn > 15 && rng.chance(40);
            let found = model.bits(&mut executed, learns);
            anew.close();
            assert!(found == model.bits(&mut anew, learns), "{terms:?}, turn {turn}, model {number}");
        }
    }
}

/// What compiling is told where there are units of 8.
fn target(strict: bool) -> Target {
    Target { matrix: Some(Squares { size: 8, pairs: false }), strict, ..Target::LEAST }
}

/// The shapes of a plan's products on matrix units.
fn blocks(plan: &Verified<Plan>, strict: bool) -> Vec<Blocks> {
    let compiled = compile(plan, target(strict)).expect("fits");
    let of = |program: &Arc<Program>| match **program {
        Program::Matrix(blocks) => Some(blocks),
        _ => None,
    };
    compiled.programs.iter().filter_map(of).collect()
}

#[test]
fn gradients_of_values_are_made_of_whole_numbers() {
    let mut m = ModuleBuilder::new("values");
    let w = m.param("w", [32, 32], Init::Glorot(1.0));
    let cell = m.cell("cell", [f32([32])], |g, [x]| [g.affine([x], w, None).tanh().sum()]);
    let module = m.build().expect("sound");
    let g = Graph::new(&module);
    g.instance(0);
    let input: Vec<f32> = (0..32u8).map(|i| (f32::from(i) * 0.37).sin()).collect();
    let x = g.input(&input);
    let [loss] = g.call(cell, [x]);
    let [x, loss]: [ValueId; 2] = [x, loss].map(|value| value.id().expect("sound"));
    let graph = g.finish().expect("sound");
    let planned = |gradients: Option<Gradients<'_>>| {
        let mode = if gradients.is_some() { Mode::Train } else { Mode::Infer };
        let request = Request { wanted: &[loss], mode, gradients, ..Request::default() };
        Planner::default().plan(&graph, &request).expect("plans").verify().expect("verifies")
    };
    assert_eq!(blocks(&planned(None), false), [Blocks::of(8, 1)]);
    // Of no parameter: no store says that there are any.
    let gradients = Gradients { losses: &[(loss, 1e-9)], params: Some(&[]), values: &[x] };
    let plan = planned(Some(gradients));
    assert_eq!(blocks(&plan, false), []);
    let Some(mut units) = with_units(Terms::Halves) else { return };
    let Some(mut whole) = executor(Options::default()) else { return };
    let made = |executor: &mut Executor| {
        executor.execute(&plan, &Weights::init(&module, 3), bound(&graph, false)).expect("executes");
        executor.output(plan.outputs.len() - 1).to_vec()
    };
    let expected = made(&mut whole);
    assert!(expected.iter().all(|x| *x != 0.0), "{expected:?}");
    assert_eq!(made(&mut units), expected);
}

#[test]
fn one_cut_for_all_rows_is_one_on_matrix_units_too() {
    let planned = |instances: u32| {
        let (graph, wanted) = cells(instances, 32);
        inferring(&graph, &wanted)
    };
    let [few, many] = [1, 70].map(planned);
    assert_ne!(blocks(&few, false), blocks(&many, false));
    assert_eq!(blocks(&few, true), blocks(&many, true));
}

#[test]
fn terms_and_sums_keep_to_a_binding_beside_those_of_weights() {
    let (graph, wanted) = cells(600, 40);
    let plan = inferring(&graph, &wanted);
    let roomy = compile(&plan, target(false)).expect("fits");
    let binding = 64 << 10;
    let narrow = Target { binding, bindings: 64, ..target(false) };
    let compiled = compile(&plan, narrow).expect("is executed in pieces");
    assert!(compiled.dispatches.len() > roomy.dispatches.len());
    assert!(compiled.matrix.terms.max(compiled.matrix.sums) * 4 <= binding, "{:?}", compiled.matrix);
}

#[test]
fn what_is_not_finite_stays_so_and_touches_no_other_row() {
    for terms in [Terms::Pairs, Terms::Halves] {
        let Some(mut units) = with_units(terms) else { return };
        let mut m = ModuleBuilder::new("none");
        let w = m.param("w", [32, 32], Init::Glorot(1.0));
        let cell = m.cell("cell", [f32([32])], |g, [x]| [-g.affine([x], w, None)]);
        let module = m.build().expect("sound");
        let mut of = |x: f32| {
            let g = Graph::new(&module);
            for key in 0..20 {
                g.instance(key);
                let mut input = [0.5; 32];
                input[3] = if key == 9 { x } else { 0.25 };
                let [y] = g.call(cell, g.input(&input));
                g.output(&format!("y{key}"), y);
            }
            let graph = g.finish().expect("sound");
            let plan = inferring(&graph, &[]);
            assert_eq!(blocks(&plan, false), [Blocks::largest(8)]);
            units.execute(&plan, &Weights::init(&module, 3), bound(&graph, false)).expect("executes");
            (0..20).map(|at| units.output(at).to_vec()).collect::<Vec<_>>()
        };
        let usual = of(0.25);
        for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e38] {
            for (key, row) in of(x).iter().enumerate() {
                match key {
                    9 => assert!(row.iter().all(|y| y.is_finite() == x.is_finite()), "{terms}, {x}: {row:?}"),
                    _ => assert_eq!(*row, usual[key], "{terms}, {x}"),
                }
            }
        }
    }
}

#[test]
fn halves_of_weights_are_those_of_the_last_update() {
    if with_units(Terms::Halves).is_none() {
        return;
    }
    let mut m = ModuleBuilder::new("trained");
    let w = m.param("w", [24, 32], Init::Glorot(1.0));
    let v = m.param_stored_as("v", ParamKind::Param, DType::F16, [32, 16], Init::Glorot(1.0));
    let [first, second] = [("first", 24, w), ("second", 32, v)].map(|(name, width, weight)| {
        m.cell(name, [f32([width])], |g, [x]| [g.affine([x], weight, None).tanh()])
    });
    let module = m.build().expect("sound");
    let options = || SessionOptions {
        device: "gpu".parse().expect("a device"),
        terms: Terms::Halves,
        ..SessionOptions::default()
    };
    let mut trainer = Trainer::with_options(module.clone(), Adam::new(0.02), options(), 7).expect("opens");
    let batch: Vec<Vec<f32>> =
        (0..10u8).map(|n| (0..24u8).map(|i| (f32::from(i * n) * 0.37).sin()).collect()).collect();
    let mut before: Vec<Vec<f32>> = Vec::new();
    for turn in 0..4 {
        let predicted = |session: &mut Session| -> Vec<Vec<f32>> {
            let rows = session.predict(&batch, |g, x| {
                let [inner] = g.call(first, g.input(x));
                let [y] = g.call(second, inner);
                y
            });
            rows.expect("executes").into_iter().map(|row| row.into_vec()).collect()
        };
        let found = predicted(trainer.session());
        assert_ne!(found, before, "{turn}");
        let weights = Arc::clone(trainer.weights());
        let mut anew = Session::with_options(&module, weights, options()).expect("opens");
        assert_eq!(found, predicted(&mut anew), "{turn}");
        let loss = trainer.step(&batch, |g, x| {
            g.affine([g.affine([g.input(x)], w, None).tanh()], v, None).cross_entropy(3u32)
        });
        loss.expect("steps");
        before = found;
    }
}
