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
    pub(super) const MAX_COMPARED: usize = 32;

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
