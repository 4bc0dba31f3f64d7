//! Tests of lowering.

use super::kernel_numbers::KernelNumbers;
use autobatch_ir::plan::Kernel;
use std::sync::Arc;

#[test]
fn equal_kernels_have_one_number() {
    let named = |name: usize| {
        let (name, regs) = (format!("k{name}"), Vec::new());
        let (params, stages, results) = (Vec::new(), Vec::new(), Vec::new());
        Arc::new(Kernel { name, ports: 0, params, regs, stages, results, source: false, roles: None })
    };
    let (mut numbers, mut kernels) = (KernelNumbers::default(), Vec::new());
    for _ in 0..2 {
        for name in 0..3 * KernelNumbers::MAX_COMPARED {
            assert_eq!(numbers.number(&mut kernels, &named(name)), name as u32);
        }
    }
    assert_eq!(kernels.len(), 3 * KernelNumbers::MAX_COMPARED);
}
