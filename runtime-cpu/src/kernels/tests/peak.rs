//! Tests of the measurement of the arithmetic peak.

use crate::kernels::{Isa, IsaError, peak_flops};

#[test]
fn the_peak_is_positive_on_every_available_instruction_set() {
    for isa in Isa::ALL {
        match peak_flops(isa) {
            Ok(peak) => assert!(peak > 0.0 && peak.is_finite(), "{isa}: {peak}"),
            Err(error) => assert_eq!(error, IsaError::Missing(isa)),
        }
    }
}
