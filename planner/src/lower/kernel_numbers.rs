//! Numbers of the kernels of a plan: equal kernels have one number.

use autobatch_ir::plan::Kernel;
use std::collections::HashMap;
use std::sync::Arc;

/// Finds kernels of a plan. Most plans have few kernels: comparing each costs less than hashing each. Plans with many kernels use
/// a hash map.
#[derive(Debug, Default)]
pub(super) struct KernelNumbers {
    /// Empty, or all kernels of the plan.
    numbers: HashMap<Arc<Kernel>, u32>,
}

impl KernelNumbers {
    /// The largest number of kernels that are compared one by one.
    const MAX_COMPARED: usize = 32;

    pub(super) fn clear(&mut self) {
        self.numbers.clear();
    }

    /// The number of a kernel among those of a plan. A new kernel is added to the plan.
    pub(super) fn number(&mut self, kernels: &mut Vec<Arc<Kernel>>, kernel: &Arc<Kernel>) -> u32 {
        let next = kernels.len() as u32;
        let known = if kernels.len() <= Self::MAX_COMPARED {
            kernels
                .iter()
                .zip(0..)
                .find(|(known, _)| Arc::ptr_eq(known, kernel) || ***known == **kernel)
                .map(|(_, number)| number)
        } else {
            if self.numbers.is_empty() {
                // The reverse order keeps the first of equal kernels.
                self.numbers.extend(kernels.iter().cloned().zip(0..next).rev());
            }
            self.numbers.get(kernel).copied()
        };
        known.unwrap_or_else(|| {
            if !self.numbers.is_empty() {
                self.numbers.insert(Arc::clone(kernel), next);
            }
            kernels.push(Arc::clone(kernel));
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
