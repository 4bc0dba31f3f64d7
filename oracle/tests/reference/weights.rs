//! Initial values of parameters, storage types and versions.

use autobatch_ir::module::ParamKind;
use autobatch_ir::weights::WeightsError;
use autobatch_ir::{DType, Init, ModuleBuilder, Weights};
use std::sync::Arc;

fn of(init: Init, shape: [usize; 2]) -> Vec<f32> {
    let mut m = ModuleBuilder::new("one");
    let p = m.param("p", shape, init);
    Weights::init(&m.build().unwrap(), 1).get(p.id().unwrap()).to_vec()
}

fn moments(values: &[f32]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
    (mean, values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n)
}

#[test]
fn every_initialiser_has_its_distribution() {
    assert_eq!(of(Init::Constant(2.5), [2, 2]), [2.5; 4]);
    assert_eq!(of(Init::Values(Arc::from([1.0, 2.0])), [1, 2]), [1.0, 2.0]);
    let glorot = (6.0f64 / 300.0).sqrt();
    let cases = [
        (Init::Uniform(0.5), 0.25 / 3.0, Some(0.5)),
        (Init::Glorot(2.0), 4.0 * glorot * glorot / 3.0, Some(2.0 * glorot)),
        (Init::Normal(0.3), 0.09, None),
        (Init::He, 2.0 / 100.0, None),
    ];
    for (init, variance, limit) in cases {
        let values = of(init.clone(), [100, 200]);
        let (mean, found) = moments(&values);
        assert!(mean.abs() < 0.03 * variance.sqrt(), "{init:?}: mean {mean}");
        assert!((found / variance - 1.0).abs() < 0.05, "{init:?}: variance {found}, expected {variance}");
        let top = values.iter().fold(0.0, |top: f64, &x| top.max(f64::from(x).abs()));
        assert!(limit.is_none_or(|limit| top <= limit && top > 0.99 * limit), "{init:?}: {top}");
        // A normal sample of 20000 exceeds three deviations, but practically never six.
        let reach = top / variance.sqrt();
        assert!(limit.is_some() || (3.0..6.0).contains(&reach), "{init:?}: reaches {reach} deviations");
    }
}

#[test]
fn saxes_matrices_have_orthonormal_rows_or_columns() {
    for (rows, columns) in [(5, 12), (12, 5), (7, 7), (1, 9)] {
        let values = of(Init::Saxe(2.0), [rows, columns]);
        let at = |i: usize, j: usize| {
            f64::from(if rows <= columns { values[i * columns + j] } else { values[j * columns + i] })
        };
        let (count, length) = (rows.min(columns), rows.max(columns));
        for i in 0..count {
            for j in 0..count {
                let dot: f64 = (0..length).map(|k| at(i, k) * at(j, k)).sum();
                let expected = if i == j { 4.0 } else { 0.0 };
                assert!((dot - expected).abs() < 1e-5, "{rows}x{columns}: {i} {j}: {dot}");
            }
        }
    }
}

#[test]
fn initial_values_depend_on_seed_and_name_but_not_on_order() {
    let build = |names: &[&str], seed| {
        let mut m = ModuleBuilder::new("order");
        for name in names {
            let _ = m.param(name, [4, 3], Init::Normal(1.0));
        }
        Weights::init(&m.build().unwrap(), seed)
    };
    let (one, two) = (build(&["a", "b"], 1), build(&["b", "c", "a"], 1));
    assert_eq!(one.by_name("a"), two.by_name("a"));
    assert_eq!(one.by_name("b"), two.by_name("b"));
    assert_ne!(one.by_name("a"), one.by_name("b"));
    assert_ne!(one.by_name("a"), build(&["a"], 2).by_name("a"));
    assert_eq!(one, build(&["a", "b"], 1));
    assert_eq!(one.by_name("z"), Err(WeightsError::Unknown("z".to_owned())));
}

#[test]
fn half_precision_parameters_hold_representable_values() {
    let mut m = ModuleBuilder::new("half");
    let ids = [DType::F16, DType::BF16].map(|dtype| {
        m.param_stored_as(dtype.spelling(), ParamKind::Param, dtype, [3], Init::Constant(0.1)).id().unwrap()
    });
    let mut weights = Weights::init(&m.build().unwrap(), 0);
    assert_eq!(weights.get(ids[0]), [0.099_975_586; 3]);
    assert_eq!(weights.get(ids[1]), [0.100_097_656; 3]);
    weights.get_mut(ids[0])[1] = 1.000_1;
    weights.set(ids[1], &[1.001, 2.0, 3.0]).unwrap();
    assert_eq!(weights.get(ids[0])[1], 1.0);
    assert_eq!(weights.get(ids[1]), [1.0, 2.0, 3.0]);
    let refused = WeightsError::Length { name: "f16".to_owned(), expected: 3, found: 1 };
    assert_eq!(weights.set(ids[0], &[1.0]), Err(refused));
}

#[test]
fn every_mutable_access_creates_a_new_version() {
    let mut m = ModuleBuilder::new("versions");
    let [a, b] = ["a", "b"].map(|name| m.param(name, [2], Init::ZEROS).id().unwrap());
    let mut weights = Weights::init(&m.build().unwrap(), 0);
    let mut copy = weights.clone();
    assert_eq!(weights.version(a), copy.version(a));
    let before = [weights.version(a), weights.version(b)];
    weights.get_mut(a)[0] = 1.0;
    copy.set_by_name("a", &[2.0, 0.0]).unwrap();
    assert_ne!(weights.version(a), before[0]);
    assert_ne!(weights.version(a), copy.version(a));
    assert_eq!(weights.version(b), before[1]);
    let after = weights.version(a);
    weights.set(a, &[1.0, 0.0]).unwrap();
    assert_ne!(weights.version(a), after);
}
