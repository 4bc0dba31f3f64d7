//! Optimiser states: flushed moments, averages, master copies and sparse rows. States can be saved and restored.

use crate::lab::{Lab, Random, every_rule, module};
use autobatch_ir::module::ParamKind;
use autobatch_ir::numeric::half;
use autobatch_ir::states::StatesError;
use autobatch_ir::{DType, Init, ModuleBuilder, ParamId};
use autobatch_nn::optim::{Adagrad, Adam, Optimize, Optimizer, RmsProp, Sgd};
use autobatch_runtime_cpu::Executor;

fn executor() -> Executor {
    Executor::new(1).expect("the machine has an instruction set")
}

#[test]
fn states_contain_no_subnormal_numbers() {
    for optimizer in every_rule() {
        let name = format!("{optimizer:?}");
        let mut lab = Lab::new(&module(), optimizer);
        let mut random = Random(3);
        let mut given = lab.gradients(&mut random);
        given.gradients.iter_mut().flatten().for_each(|g| *g *= 3e-19);
        lab.update(&mut executor(), &given, 1.0);
        given.gradients.iter_mut().for_each(|gradient| gradient.fill(0.0));
        // The next decay would make a moment subnormal.
        for state in lab.states.as_mut_slice() {
            state.values_mut().iter_mut().for_each(|x| *x = f32::MIN_POSITIVE);
        }
        for _ in 0..3 {
            lab.update(&mut executor(), &given, 1.0);
            let mut values = lab.states.iter().flat_map(|state| state.values());
            assert!(values.all(|x| *x == 0.0 || x.abs() >= f32::MIN_POSITIVE), "{name}");
        }
        let mut decaying = lab.states.iter().filter(|state| ["m", "v", "b", "c"].contains(&state.role()));
        assert!(decaying.all(|state| state.values().iter().all(|x| *x == 0.0)), "{name}");
    }
}

#[test]
fn an_average_follows_its_parameter_and_can_be_evaluated() {
    let module = module();
    let mut lab = Lab::new(&module, Sgd::new(0.1).average(0.9));
    let mut random = Random(5);
    let mut expected: Vec<Vec<f64>> =
        lab.weights.iter().map(|param| param.values().iter().map(|&x| f64::from(x)).collect()).collect();
    for _ in 0..20 {
        let given = lab.gradients(&mut random);
        lab.update(&mut executor(), &given, 1.0);
        for (average, param) in expected.iter_mut().zip(lab.weights.iter()) {
            average.iter_mut().zip(param.values()).for_each(|(a, &w)| *a = 0.9 * *a + 0.1 * f64::from(w));
        }
    }
    let averages = lab.states.averages(&lab.weights).expect("the optimiser has averages");
    for (found, expected) in averages.iter().zip(&expected) {
        let off = found.values().iter().zip(expected).map(|(&x, y)| (f64::from(x) - y).abs());
        assert!(off.fold(0.0, f64::max) < 1e-6);
    }
    assert_eq!(Lab::new(&module, Sgd::new(0.1)).states.averages(&lab.weights), None);
}

#[test]
fn a_parameter_of_sixteen_bits_is_its_rounded_master_copy() {
    let mut m = ModuleBuilder::new("halves");
    m.param_stored_as("h", ParamKind::Param, DType::F16, [9, 7], Init::Uniform(1.0));
    m.param_stored_as("g", ParamKind::Table, DType::BF16, [5, 3], Init::Uniform(1.0));
    m.param("w", [4], Init::Uniform(1.0));
    let module = m.build().expect("the module is well formed");
    let mut lab = Lab::new(&module, Adam::new(1e-3).average(0.99));
    let names: Vec<&str> = lab.states.iter().map(|state| state.name()).collect();
    let all = ["master", "m", "v", "average"];
    let expected: Vec<String> =
        ["h", "g"].iter().flat_map(|of| all.map(|role| format!("{of}.{role}"))).collect();
    assert_eq!(names[..8], expected.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(names[8..], ["w.m", "w.v", "w.average"]);
    let mut random = Random(8);
    let first = lab.states.get("g.master").expect("the parameter has a master copy").values().to_vec();
    for _ in 0..5 {
        let given = lab.gradients(&mut random);
        lab.update(&mut executor(), &given, 1.0);
    }
    let rounds: [fn(f32) -> f32; 2] =
        [|x| half::f16_to_f32(half::f32_to_f16(x)), |x| half::bf16_to_f32(half::f32_to_bf16(x))];
    for (number, (name, round)) in ["h.master", "g.master"].into_iter().zip(rounds).enumerate() {
        let master = lab.states.get(name).expect("the parameter has a master copy").values();
        let rounded: Vec<f32> = master.iter().map(|&x| round(x)).collect();
        assert_eq!(lab.weights.get(ParamId::new(number)), rounded, "{name}");
        assert!(master.iter().zip(&rounded).any(|(x, y)| x != y), "{name} has more precision");
    }
    let moved = lab.states.get("g.master").expect("the parameter has a master copy").values();
    assert!(first.iter().zip(moved).all(|(a, b)| a != b), "steps below the resolution add up");
}

#[test]
fn rows_without_gradient_stay_unchanged() {
    let module = module();
    let mut lab = Lab::new(&module, Adam::new(0.1).weight_decay(0.1).average(0.9).sparse_rows());
    let table = ParamId::new(2);
    let mut random = Random(9);
    let given = lab.gradients(&mut random);
    lab.update(&mut executor(), &given, 1.0);
    let before = (lab.weights.clone(), lab.states.clone());
    let mut given = lab.gradients(&mut random);
    given.sparse_rows = vec![None, None, Some(vec![1, 2, 3, 10])];
    lab.update(&mut executor(), &given, 1.0);
    let changed = |old: &[f32], new: &[f32]| -> Vec<usize> {
        let rows = old.chunks(6).zip(new.chunks(6)).enumerate();
        rows.filter(|(_, (old, new))| old != new).map(|(row, _)| row).collect()
    };
    assert_eq!(changed(before.0.get(table), lab.weights.get(table)), [1, 2, 3, 10]);
    for state in ["t.m", "t.v", "t.average"] {
        let [old, new] =
            [&before.1, &lab.states].map(|states| states.get(state).expect("the state exists").values());
        assert_eq!(changed(old, new), [1, 2, 3, 10], "{state}");
    }
    assert!(before.0.get(ParamId::new(0)).iter().zip(lab.weights.get(ParamId::new(0))).all(|(a, b)| a != b));
    let unchanged = (lab.weights.clone(), lab.states.clone());
    given.sparse_rows = vec![None, None, Some(vec![])];
    lab.update(&mut executor(), &given, 1.0);
    assert_eq!(unchanged.0.get(table), lab.weights.get(table));
    given.sparse_rows = Vec::new();
    lab.update(&mut executor(), &given, 1.0);
    assert_eq!(
        changed(unchanged.0.get(table), lab.weights.get(table)).len(),
        11,
        "a dense gradient changes all rows"
    );
}

#[test]
fn rules_without_momentum_give_equal_results_for_sparse_and_all_rows() {
    let module = module();
    for rule in [Optimizer::from(Sgd::new(0.1)), Optimizer::from(Adagrad::new(0.1))] {
        let mut all = Lab::new(&module, rule.clone());
        let mut some = Lab::new(&module, rule.sparse_rows());
        let mut random = Random(10);
        for round in 0..5 {
            let mut given = all.gradients(&mut random);
            let rows: Vec<u32> = (0..11).filter(|row| (row + round) % 3 == 0).collect();
            for (row, gradient) in given.gradients[2].chunks_mut(6).enumerate() {
                if !rows.contains(&(row as u32)) {
                    gradient.fill(0.0);
                }
            }
            given.sparse_rows = vec![None, None, Some(rows)];
            all.update(&mut executor(), &given, 1.0);
            some.update(&mut executor(), &given, 1.0);
        }
        assert_eq!(all.weights, some.weights);
        assert_eq!(all.states, some.states);
    }
}

#[test]
fn training_continues_bit_for_bit_from_saved_states() {
    let module = module();
    let mut whole = Lab::new(&module, RmsProp::new(0.01).momentum(0.9).clip_norm(1.0));
    let mut random = Random(12);
    for _ in 0..3 {
        let given = whole.gradients(&mut random);
        whole.update(&mut executor(), &given, 1.0);
    }
    let saved: Vec<(String, Vec<f32>)> =
        whole.states.iter().map(|state| (state.name().to_owned(), state.values().to_vec())).collect();
    let mut again = Lab::new(&module, RmsProp::new(0.01).momentum(0.9).clip_norm(1.0));
    again.weights = whole.weights.clone();
    for (name, values) in &saved {
        again.states.set(name, values).expect("equal optimisers have equal states");
    }
    again.states.set_updates(whole.states.updates());
    let given = whole.gradients(&mut random);
    whole.update(&mut executor(), &given, 1.0);
    again.update(&mut executor(), &given, 1.0);
    assert_eq!((whole.weights, &whole.states), (again.weights, &again.states));
    let rejected = again.states.set("w.m", &[0.0]).unwrap_err();
    assert_eq!(rejected, StatesError::Unknown("w.m".to_owned()));
    let rejected = again.states.set("b.s", &[0.0]).unwrap_err();
    assert_eq!(rejected.to_string(), "b.s: expected 5 values, found 1; give one for each element");
}
