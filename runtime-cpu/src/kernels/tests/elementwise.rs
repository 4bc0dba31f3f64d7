//! Tests of elementwise instructions: every instruction set gives the bits of the portable variant.

use super::sizes;
use crate::kernels::Isa;
use crate::kernels::elementwise::{Elements, ElementsMut, run};
use autobatch_ir::graph::{Binary, Compare, Unary};
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::Code;
use autobatch_ir::plan::row_ops::has_slope;
use autobatch_ir::types::DType;

fn execute(isa: Isa, code: Code, sources: &[&[f32]], width: usize, rows: usize) -> Vec<u32> {
    let mut out = vec![0.0f32; rows * (width + 3)];
    let elements: Vec<Elements> = sources
        .iter()
        .map(|s| Elements { base: s.as_ptr(), stride: s.len() / rows, single: s.len() == rows && width > 1 })
        .collect();
    let to = ElementsMut { base: out.as_mut_ptr(), stride: width + 3 };
    // SAFETY: the operands have `rows` rows and the result is larger than they are.
    unsafe { run(isa, code, DType::F32, rows, width, &elements, to) };
    out.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn every_instruction_set_gives_the_bits_of_the_portable_variant() {
    let mut codes: Vec<Code> = Unary::ALL.iter().map(|&u| Code::Unary(u)).collect();
    codes.extend(Unary::ALL.iter().filter(|&&u| has_slope(u)).map(|&u| Code::Slope(u)));
    codes.extend(Binary::ALL.iter().map(|&b| Code::Binary(b)));
    codes.extend(Compare::ALL.iter().map(|&c| Code::Compare(c)));
    codes.extend([
        Code::LeakyRelu(0.1.into()),
        Code::Elu(1.5.into()),
        Code::Clamp((-1.0).into(), 0.5.into()),
    ]);
    for width in sizes([1, 5, 16, 37, 64], 3) {
        let rows = 3;
        let x: Vec<f32> = (0..rows * width).map(|i| (i as f32 * 0.37 - 9.0).sin() * 8.0).collect();
        let y: Vec<f32> = (0..rows * width).map(|i| (i as f32 * 0.11).cos() * 3.0).collect();
        let s: Vec<f32> = y[..rows].to_vec();
        for &code in &codes {
            for operands in [[&x[..], &y], [&x, &s], [&s, &y], [&s, &s]] {
                let expected = execute(Isa::Scalar, code, &operands, width, rows);
                for isa in Isa::available() {
                    let found = execute(isa, code, &operands, width, rows);
                    let same = |(&a, &b): (&u32, &u32)| same_bits(f32::from_bits(a), f32::from_bits(b));
                    assert!(found.iter().zip(&expected).all(same), "{code:?} {isa:?} {width}");
                }
            }
        }
    }
}

#[test]
fn elements_between_rows_are_not_written() {
    let x = [1.0f32; 14];
    let out = execute(Isa::best(), Code::Unary(Unary::Neg), &[&x], 7, 2);
    assert_eq!(out[7..10], [0, 0, 0]);
    assert_eq!(out[10], (-1.0f32).to_bits());
}
