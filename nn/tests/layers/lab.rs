//! Shared parts of the tests: a module with random weights, evaluation by the reference interpreter,
//! and linear algebra for formulas.

use autobatch_ir::hash::split_mix;
use autobatch_ir::{Graph, Module, ModuleBuilder, Value, Weights};
use autobatch_oracle::reference::{Noise, forward};
use std::sync::Arc;

/// A module with random parameters, including biases and gains.
pub(crate) struct Lab {
    pub(crate) module: Arc<Module>,
    pub(crate) weights: Weights,
}

impl Lab {
    pub(crate) fn new(declare: impl FnOnce(&mut ModuleBuilder)) -> Self {
        Self::with(|m| declare(m)).0
    }

    /// As `new`, and returns the result of the declaration.
    pub(crate) fn with<L>(declare: impl FnOnce(&mut ModuleBuilder) -> L) -> (Self, L) {
        let mut m = ModuleBuilder::new("lab");
        let layer = declare(&mut m);
        let module = m.build().unwrap();
        let mut weights = Weights::init(&module, 1);
        for (number, decl) in module.params.iter().enumerate() {
            let numbers = row(1000 + number as u64, decl.ty.shape.elements());
            weights.set_by_name(&decl.name, &numbers).unwrap();
        }
        (Self { module, weights }, layer)
    }

    pub(crate) fn param(&self, name: &str) -> Vec<f64> {
        wide(self.weights.by_name(name).unwrap())
    }

    /// The emitted values in f64.
    pub(crate) fn eval(&self, emit: impl for<'g> FnOnce(&'g Graph) -> Vec<Value<'g>>) -> Vec<Vec<f64>> {
        let g = Graph::new(&self.module);
        g.instance(3);
        let emitted: Vec<_> = emit(&g).into_iter().map(|v| v.id()).collect();
        let data = g.finish().unwrap();
        let run = forward::<f64>(&data, &self.weights, Noise::Off).unwrap();
        emitted.into_iter().map(|id| run.floats(id.unwrap()).unwrap().to_vec()).collect()
    }

    /// The bits of the emitted values.
    pub(crate) fn bits(
        &self,
        noise: Noise,
        emit: impl for<'g> FnOnce(&'g Graph) -> Vec<Value<'g>>,
    ) -> Vec<Vec<u32>> {
        let g = Graph::new(&self.module);
        g.instance(3);
        let emitted: Vec<_> = emit(&g).into_iter().map(|v| v.id()).collect();
        let data = g.finish().unwrap();
        let run = forward::<f32>(&data, &self.weights, noise).unwrap();
        let bits = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect();
        emitted.into_iter().map(|id| bits(run.floats(id.unwrap()).unwrap())).collect()
    }
}

/// Reproducible numbers in `-1..1` by SplitMix64.
pub(crate) fn row(seed: u64, width: usize) -> Vec<f32> {
    let mut state = seed;
    (0..width).map(|_| (split_mix(&mut state) >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
}

pub(crate) fn rows(seed: u64, count: usize, width: usize) -> Vec<Vec<f32>> {
    (0..count).map(|number| row(seed + 7919 * number as u64, width)).collect()
}

pub(crate) fn inputs<'g>(g: &'g Graph, rows: &[Vec<f32>]) -> Vec<Value<'g>> {
    rows.iter().map(|row| g.input(row)).collect()
}

pub(crate) fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&x| f64::from(x)).collect()
}

/// `x · w`, where `w` has one row per input.
pub(crate) fn product(x: &[f64], w: &[f64]) -> Vec<f64> {
    let width = w.len() / x.len();
    assert_eq!(width * x.len(), w.len());
    (0..width).map(|j| x.iter().enumerate().map(|(k, x)| x * w[k * width + j]).sum()).collect()
}

pub(crate) fn affine(x: &[f64], w: &[f64], b: &[f64]) -> Vec<f64> {
    add(&product(x, w), b)
}

pub(crate) fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
}

pub(crate) fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    zip(a, b, |a, b| a + b)
}

pub(crate) fn mul(a: &[f64], b: &[f64]) -> Vec<f64> {
    zip(a, b, |a, b| a * b)
}

pub(crate) fn map(a: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    a.iter().map(|&a| f(a)).collect()
}

pub(crate) fn sigmoid(a: &[f64]) -> Vec<f64> {
    map(a, |x| 1.0 / (1.0 + (-x).exp()))
}

pub(crate) fn tanh(a: &[f64]) -> Vec<f64> {
    map(a, f64::tanh)
}

/// `a` and `b` concatenated.
pub(crate) fn join(a: &[f64], b: &[f64]) -> Vec<f64> {
    [a, b].concat()
}

pub(crate) fn normed(a: &[f64]) -> Vec<f64> {
    let n = a.len() as f64;
    let mean = a.iter().sum::<f64>() / n;
    let variance = a.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    map(a, |x| (x - mean) / (variance + 1e-5).sqrt())
}

/// Compares with a tolerance for attributes such as 1e-5, which are stored as f32.
#[track_caller]
pub(crate) fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (place, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs() / expected.abs().max(1.0);
        assert!(error < 1e-9, "element {place}: expected {expected}, found {found}");
    }
}
