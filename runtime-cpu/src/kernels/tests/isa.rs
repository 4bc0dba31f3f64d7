//! Tests of the selection of an instruction set.

use crate::kernels::{Isa, IsaError};

#[test]
fn an_unknown_name_is_rejected_with_the_available_names() {
    let error = Isa::forced("sse9").unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("unknown instruction set `sse9`: expected one of scalar"), "{text}");
    assert!(text.contains(Isa::best().name()), "{text}");
}

#[test]
fn only_available_instruction_sets_are_accepted() {
    for isa in Isa::ALL {
        let expected = if Isa::available().contains(&isa) { Ok(isa) } else { Err(IsaError::Missing(isa)) };
        assert_eq!(Isa::forced(isa.name()), expected);
    }
    assert!(Isa::ALL.iter().any(|isa| !isa.is_available()), "no machine has both NEON and AVX2");
}

/// A test run for one instruction set must not silently use another one.
#[test]
fn the_instruction_set_of_the_environment_is_available() {
    let chosen = Isa::detect().unwrap_or_else(|error| panic!("{error}"));
    assert!(Isa::available().contains(&chosen));
}

#[test]
fn the_best_instruction_set_is_the_last_available_one() {
    assert_eq!(Some(&Isa::best()), Isa::available().last());
}
