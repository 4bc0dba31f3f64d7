//! Measures elementwise instructions, row ops and folds over lists in cache, in 10^9 elements per second, on each instruction set.
//!
//! `cargo run --release -p autobatch-runtime-cpu --example elements`
#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch_ir::graph::{Binary, Op, Unary};
use autobatch_ir::plan::Code;
use autobatch_ir::types::{DType, INDEX, Shape, Type};
use autobatch_runtime_cpu::kernels::elementwise::{Elements, ElementsMut, run};
use autobatch_runtime_cpu::kernels::{Isa, lists, rowwise};
use std::hint::black_box;
use std::time::Instant;

fn report(name: &str, isa: Isa, elements: usize, mut execute: impl FnMut()) {
    let mut best = f64::INFINITY;
    let calls = if isa == Isa::Scalar { 1 } else { 16 };
    for _ in 0..if isa == Isa::Scalar { 5 } else { 100 } {
        let start = Instant::now();
        (0..calls).for_each(|_| execute());
        best = best.min(start.elapsed().as_secs_f64() / f64::from(calls));
    }
    println!("{:7} {name:28} {:7.3}", isa.name(), elements as f64 / best * 1e-9);
}

fn maps(isa: Isa) {
    let x: Vec<f32> = (0..40 * 500).map(|i| (i as f32 * 0.37).sin() * 4.0).collect();
    let mut y = vec![0f32; 40 * 500];
    let codes = [
        ("exp", Code::Unary(Unary::Exp)),
        ("tanh", Code::Unary(Unary::Tanh)),
        ("sigmoid", Code::Unary(Unary::Sigmoid)),
        ("mul", Code::Binary(Binary::Mul)),
        ("add", Code::Binary(Binary::Add)),
    ];
    for (name, code) in codes {
        for (rows, width, stride) in
            [(1, 4096, 4096), (40, 100, 500), (40, 100, 100), (100, 8, 40), (100, 5, 5)]
        {
            let from = Elements { base: x.as_ptr(), stride, single: false };
            report(&format!("{name} {width} of {stride}"), isa, rows * width, || {
                let to = ElementsMut { base: black_box(y.as_mut_ptr()), stride: width };
                // SAFETY: the buffers of 40 rows of 500 hold all operands and results; the instruction set is available.
                unsafe { run(isa, code, DType::F32, rows, width, &[from, from], to) };
            });
        }
    }
}

fn row_ops(isa: Isa) {
    let x: Vec<f32> = (0..40 * 500).map(|i| (i as f32 * 0.37).sin() * 4.0).collect();
    let labels: Vec<f32> = (0..40).map(|i| f32::from_bits(i % 5)).collect();
    let mut y = vec![0f32; 40 * 500];
    for width in [5, 9, 17, 40, 100, 500] {
        let ty = Type::new(DType::F32, Shape::new(&[width as u32]).expect("a shape"));
        let from = (Elements { base: x.as_ptr(), stride: width, single: false }, ty);
        let label = (Elements { base: labels.as_ptr(), stride: 1, single: false }, INDEX);
        for (op, out) in [
            (Op::Softmax, width),
            (Op::LogSoftmax, width),
            (Op::LogSumExp, 1),
            (Op::PickNegLogSoftmax, 1),
            (Op::Dot, 1),
        ] {
            let second = if op == Op::Dot { from } else { label };
            let sources = if out == width { vec![from] } else { vec![from, second] };
            report(&format!("{} {width}", op.spelling()), isa, 40 * width, || {
                let rows = ElementsMut { base: black_box(y.as_mut_ptr()), stride: out };
                let to = rowwise::RowResult { rows, width: out };
                // SAFETY: the buffers of 40 rows of 500 hold all operands and results; the instruction set is available.
                black_box(unsafe { rowwise::run(isa, op, 40, &sources, to) });
            });
        }
    }
}

fn folds(isa: Isa) {
    let x: Vec<f32> = (0..40 * 100).map(|i| (i as f32 * 0.37).sin()).collect();
    let items: Vec<&[f32]> = x.chunks(100).collect();
    let scores: Vec<&[f32]> = x[..40].chunks(1).collect();
    let (mut out, mut weights) = ([0f32; 100], Vec::new());
    let wide = Op::WeightedSum { softmax: true };
    let cases = [
        ("attend 40 of 100", Op::Attend { scale: 0.1.into() }, &items),
        ("softmax sum, scores of 1", wide, &scores),
        ("softmax sum, scores of 100", wide, &items),
        ("sum of 40", Op::ListFold(autobatch_ir::graph::ListFold::Sum), &items),
    ];
    for (name, op, first) in cases {
        report(name, isa, x.len(), || {
            // SAFETY: the instruction set is available.
            unsafe { lists::kernel(isa)(op, items[0], [first, &items], black_box(&mut out), &mut weights) };
        });
    }
}

fn main() {
    for isa in Isa::available() {
        maps(isa);
        row_ops(isa);
        folds(isa);
    }
}
