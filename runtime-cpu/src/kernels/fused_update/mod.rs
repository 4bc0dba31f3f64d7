//! Fused update kernels: elementwise kernels of stores, streamed over whole arrays.
//!
//! A [`FusedKernel`] is a kernel one element wide, compiled for an instruction set. Its intermediate values live in
//! *slots*, one block of floats each. A block is so short that all slots stay in the L1 cache and the processor
//! overlaps instructions. The arrays are read and written once, for any number of instructions.
//!
//! An instruction ([`instr`]) is a function and the numbers of its operands. A table maps operand numbers to pointers;
//! only the pointers of arrays advance from block to block. Constants and single elements are spread over a block
//! first, so all operands look alike. The elements after the last whole block are computed in copies.
//!
//! **Why a second elementwise engine.** [`elementwise`](super::elementwise) runs one instruction over strided rows, for
//! forward and reverse steps. An optimiser update has 10 to 30 instructions over flat arrays, and memory traffic decides.
//! `cargo run --release --example updates` measures nanoseconds per element on one AVX-512 core, by parameter size:
//!
//! | update | this module | without fusing instructions | all by `elementwise` |
//! |---|---|---|---|
//! | Adam, 200,000 | 0.79 | 2.88 (3.6x) | 5.81 (7.3x) |
//! | Adam, 5,000,000 (memory) | 2.24 | 4.22 (1.9x) | 6.91 (3.1x) |
//! | momentum, 200,000 | 0.42 | 0.91 (2.2x) | 2.16 (5.1x) |
//! | AdamW with averages, 5,000,000 | 2.44 | 6.19 (2.5x) | 12.00 (4.9x) |
//!
//! Blocks of 128 elements take 0.9 of the time of blocks of 64 or 256 (Adam, in cache): shorter blocks dispatch more
//! often, longer ones leave the processor's reorder window.
//!
//! **Bits.** Elements are independent, and each instruction computes what `ir::numeric::scalar` defines.

mod build;
mod instr;

use super::memory::{Aligned, prefetch};
use instr::{BLOCK, Instr};
use std::ops::Range;

/// A kernel one element wide, compiled to run over ranges of elements on one instruction set.
///
/// Operand numbers are ordered: slots, constants, ports, targets.
#[derive(Clone, Debug)]
pub(crate) struct FusedKernel {
    instrs: Vec<Instr>,
    constants: Vec<f32>,
    slots: usize,
    ports: usize,
    targets: usize,
}

/// The source of a port: an array, or a single element used for all elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) base: *const f32,
    pub(crate) single: bool,
}

/// Scratch space of fused kernels. Use one per thread. It grows, and its contents carry no meaning between runs.
#[derive(Default)]
pub(crate) struct FusedScratch {
    /// One block per operand.
    blocks: Aligned,
    table: Vec<*mut f32>,
}

// SAFETY: the vector of pointers is kept only for its capacity; every run clears it first.
unsafe impl Send for FusedScratch {}
// SAFETY: as above; nothing reads the pointers through a shared reference.
unsafe impl Sync for FusedScratch {}

impl FusedScratch {
    /// Grows to the needs of a kernel. The error is the number of bytes that could not be allocated.
    pub(crate) fn fit(&mut self, kernel: &FusedKernel) -> Result<(), u64> {
        let floats = kernel.operands() * BLOCK;
        self.blocks.fit(floats).ok_or(4 * floats as u64)?;
        self.table.clear();
        self.table.reserve(kernel.operands());
        Ok(())
    }
}

impl FusedKernel {
    /// Elements that are computed together. Callers should cut arrays at multiples of it.
    pub(crate) const BLOCK: usize = BLOCK;

    fn operands(&self) -> usize {
        self.slots + self.constants.len() + self.ports + self.targets
    }

    /// Computes a range of elements of the arrays.
    ///
    /// # Safety
    /// The kernel's instruction set is available. There are as many ports and targets as the kernel has, and the
    /// scratch fits. Each port is readable and initialised up to the end of `elements`, or is one readable float if
    /// `single`. Each target is writable up to the end of `elements`, and no one else accesses it, except ports that
    /// are declared aliases of it; these begin where it begins.
    pub(crate) unsafe fn execute(
        &self,
        elements: Range<usize>,
        ports: &[Port],
        targets: &[*mut f32],
        scratch: &mut FusedScratch,
    ) {
        let FusedScratch { blocks, table } = scratch;
        let blocks = blocks.floats_mut()[..self.operands() * BLOCK].as_mut_ptr();
        let own = |operand: usize| blocks.wrapping_add(operand * BLOCK);
        table.clear();
        table.extend((0..self.operands()).map(own));
        let first_port = self.slots + self.constants.len();
        let first_target = first_port + self.ports;
        let singles = ports.iter().enumerate().filter(|(_, port)| port.single);
        // SAFETY: a single port is one readable element.
        let singles = singles.map(|(number, port)| (first_port + number, unsafe { *port.base }));
        let constants = self.constants.iter().enumerate().map(|(number, &x)| (self.slots + number, x));
        for (operand, x) in constants.chain(singles) {
            // SAFETY: every operand has a block in the scratch.
            unsafe { own(operand).cast::<[f32; BLOCK]>().write([x; BLOCK]) };
        }
        let streams = ports.iter().enumerate().filter(|(_, port)| !port.single);
        let streams = streams.map(|(number, port)| (first_port + number, port.base));
        let results = targets.iter().enumerate().map(|(number, &target)| (first_target + number, target));
        let begin = elements.start;
        streams.clone().for_each(|(operand, base)| table[operand] = base.wrapping_add(begin).cast_mut());
        results.clone().for_each(|(operand, base)| table[operand] = base.wrapping_add(begin));

        for _ in 0..elements.len() / BLOCK {
            // SAFETY: every operand has a whole block, in the arrays or in the scratch.
            unsafe { self.block(table) };
            let step = |at: &mut *mut f32| *at = at.wrapping_add(BLOCK);
            table[first_target..].iter_mut().for_each(step);
            streams.clone().for_each(|(operand, _)| {
                step(&mut table[operand]);
                prefetch_block(table[operand].wrapping_add(BLOCK));
            });
        }

        let rest = elements.len() % BLOCK;
        if rest == 0 {
            return;
        }
        let begin = elements.end - rest;
        // SAFETY: `rest` elements of each array are left, and they fit the blocks of the scratch. All are read before
        // any is written.
        unsafe {
            for (operand, base) in streams {
                table[operand] = own(operand);
                own(operand).copy_from_nonoverlapping(base.wrapping_add(begin), rest);
            }
            results.clone().for_each(|(operand, _)| table[operand] = own(operand));
            self.block(table);
            for (operand, base) in results {
                own(operand).copy_to_nonoverlapping(base.wrapping_add(begin), rest);
            }
        }
    }

    /// Computes one block.
    ///
    /// # Safety
    /// Every operand of the table has a block, initialised unless it is a target. Instruction set and aliases are as
    /// [`execute`](Self::execute) requires.
    unsafe fn block(&self, table: &[*mut f32]) {
        for instr in &self.instrs {
            // SAFETY: as for this function; the operand numbers of the kernel index this table.
            unsafe { (instr.function)(instr, table.as_ptr()) };
        }
    }
}

/// Prefetches a block, which may lie outside of every allocation.
#[inline(always)]
fn prefetch_block(block: *const f32) {
    for line in 0..BLOCK / 16 {
        prefetch(block.wrapping_add(16 * line));
    }
}
