//! The bits of every function equal the constants in this file. No other test compares two architectures.

use crate::Random;
use crate::folds::all_folds;
use crate::vector::{inputs, many_arguments, unary_functions};
use autobatch_ir::hash::hash_bytes;

/// A hash of some numbers. All NaN hash alike.
fn seal(numbers: impl Iterator<Item = f32>) -> u64 {
    let word = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    hash_bytes(&numbers.flat_map(|x| word(x).to_le_bytes()).collect::<Vec<u8>>())
}

const UNARY: [(&str, u64); 21] = [
    ("exp", 0x0c05_6c6f_46bd_dd1c),
    ("expm1", 0x40ba_19f5_343c_5187),
    ("log", 0x1cb5_7e5b_1feb_5199),
    ("log1p_of_unit", 0xec30_2ecf_3d9d_89d3),
    ("tanh", 0x5e51_88e7_17ba_fa41),
    ("sigmoid", 0x7696_927e_f2dd_c66d),
    ("silu", 0x2690_a08a_6b8c_0e21),
    ("softplus", 0xd59a_32e4_d913_d68f),
    ("erf", 0x5175_6355_4f10_13fc),
    ("normal_cdf", 0x2138_ee04_22c1_28c4),
    ("gelu", 0x24f4_24ee_8ae7_d138),
    ("sin", 0x63c1_0a4f_a05d_3bfb),
    ("cos", 0x1d48_6f14_52f6_a4ef),
    ("sqrt", 0xa241_1843_4b3b_4bc4),
    ("rsqrt", 0x6cfa_1ea5_d7c8_ad7a),
    ("recip", 0x85b9_4559_c69f_edf8),
    ("square", 0xcda3_fddd_b75c_09b8),
    ("sign", 0x4f7b_2c23_3ca2_046a),
    ("relu", 0x3afe_eb7b_a6bd_c997),
    ("neg", 0x99ca_0f68_c0d2_fad8),
    ("abs", 0xe36c_293b_40dc_ba9e),
];

const OF_SEVERAL_ARGUMENTS: [u64; 8] = [
    0x8068_236a_7fe4_033b,
    0x9971_5758_25be_7599,
    0x6f76_6169_add6_aa13,
    0x9fb7_df41_9df5_bd3f,
    0x94d7_459c_573d_fcf9,
    0x3a0b_9a23_a15e_489b,
    0x9dfc_d56d_1f7e_7371,
    0x87e8_6d1b_2a62_74b8,
];

const FOLDS: [u64; 9] = [
    0xb31f_efc0_fbe5_b600,
    0x3b13_d9b9_1eda_b2cd,
    0x5668_e22e_01b0_a587,
    0x05b6_423d_62b1_4803,
    0x299d_60d0_8ede_51cc,
    0x36e6_069a_b97d_019f,
    0xa1db_f2ca_951b_f259,
    0x1a1e_d4d0_9be2_888f,
    0x8c80_81ed_9c56_66cd,
];

#[test]
fn functions_of_one_argument_have_these_bits_on_every_machine() {
    let inputs = inputs();
    let found = unary_functions().into_iter().map(|function| {
        let results = inputs.iter().step_by(16).map(|&x| (function.plain)(x));
        (function.name, seal(results))
    });
    assert_eq!(found.collect::<Vec<_>>(), UNARY);
}

#[test]
fn functions_of_several_arguments_have_these_bits_on_every_machine() {
    let inputs: Vec<f32> = inputs().into_iter().step_by(1013).collect();
    let mut results = vec![];
    for &a in &inputs {
        results.extend(inputs.iter().step_by(9).map(|&b| many_arguments(a, b)));
    }
    let found = std::array::from_fn(|which| seal(results.iter().map(|result| result[which])));
    assert_eq!(found, OF_SEVERAL_ARGUMENTS);
}

#[test]
fn folds_have_these_bits_on_every_machine() {
    let mut random = Random(31);
    let mut results = vec![];
    for length in 1..150 {
        let mut out = vec![0.0; length];
        results.push(all_folds(&random.row(length, 10.0), &mut out));
    }
    let found = std::array::from_fn(|which| seal(results.iter().map(|result| result[which])));
    assert_eq!(found, FOLDS);
}
