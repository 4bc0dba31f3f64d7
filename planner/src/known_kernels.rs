//! Which kernels a plan has already.

use autobatch_ir::plan::Kernel;
use std::collections::HashMap;
use std::sync::Arc;

/// The numbers of kernels. A plan has few: those are compared one by one, which costs less than a hash of each. Where there are
/// many they are hashed.
#[derive(Debug, Default)]
pub(crate) struct KnownKernels {
    /// Empty, or all kernels of the plan.
    numbers: HashMap<Arc<Kernel>, u32>,
}

impl KnownKernels {
    const FEW: usize = 32;

    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
    }

    /// The number of a kernel among those of a plan, to which it is added if it is new.
    pub(crate) fn number(&mut self, kernels: &mut Vec<Arc<Kernel>>, kernel: Arc<Kernel>) -> u32 {
        let next = kernels.len() as u32;
        let known = if kernels.len() <= Self::FEW {
            kernels
                .iter()
                .zip(0..)
                .find(|(known, _)| Arc::ptr_eq(known, &kernel) || ***known == *kernel)
                .map(|(_, number)| number)
        } else {
            if self.numbers.is_empty() {
                // Where kernels are equal, the first counts.
                self.numbers.extend(kernels.iter().cloned().zip(0..next).rev());
            }
            self.numbers.get(&kernel).copied()
        };
        known.unwrap_or_else(|| {
            if !self.numbers.is_empty() {
                self.numbers.insert(Arc::clone(&kernel), next);
            }
            kernels.push(kernel);
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_one_number_each_however_many_there_are() {
        let named = |name: usize| {
            let (name, none) = (format!("k{name}"), Vec::new());
            let (params, stages, results) = (Vec::new(), Vec::new(), Vec::new());
            Arc::new(Kernel {
                name,
                ports: 0,
                params,
                regs: none,
                stages,
                results,
                source: false,
                roles: None,
            })
        };
        let (mut known, mut kernels) = (KnownKernels::default(), Vec::new());
        for _ in 0..2 {
            for name in 0..3 * KnownKernels::FEW {
                assert_eq!(known.number(&mut kernels, named(name)), name as u32);
            }
        }
        assert_eq!(kernels.len(), 3 * KnownKernels::FEW);
    }
}
