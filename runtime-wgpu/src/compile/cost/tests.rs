//! Tests of costs.

use super::*;

#[test]
fn segments_beside_each_other_wait_together() {
    let long = Cost { threads: 64, work: 100, bytes: 8, waits: 50 };
    let wide = Cost { threads: 640, work: 1, bytes: 80, waits: 5 };
    let both = long.beside(wide);
    assert_eq!(both, Cost { threads: 704, work: 101, bytes: 88, waits: 50 });
    assert_eq!(both.beside(Cost::default()), both);
    assert_eq!(wide.part(10), Cost { threads: 64, work: 0, bytes: 8, waits: 5 });
}

#[test]
fn generated_code_counts_instructions_functions_and_words() {
    let text = "    let p0 = row_of(1u, lane);\n    let t0 = op_tanh(ldf(p0 + element));\n    stf(p0 + element, t0);\n";
    let found = Generated::of(&Program::Map(text.to_owned()));
    assert_eq!(found, Generated { instructions: 3 + EXPONENTIAL, words: 1 });
}
