//! Straight lines of elementwise instructions over whole arrays: what updates of stores are made of.
//!
//! A [`Line`] is a kernel one element wide, made ready for an instruction set. Its values live in
//! *slots* of a block of floats; a block is so short that the slots stay in the first cache and the
//! processor overlaps instructions, and memory is read and written once whatever the line computes.
//! An instruction ([`instr`]) is a function and the numbers of the places that it reads and writes: a
//! table says where these are, and only those that stream move from block to block. Constants and
//! operands of one element are spread over a block first, so that all places look alike. What is left
//! behind the last whole block is executed on copies.
//!
//! An Adam update of arrays in cache takes 0.9 of the time with blocks of 128 that it takes with blocks of
//! 64 or 256, which are told too often or leave the processor's window.
//!
//! **Bits.** Elements are independent, and each instruction computes what `ir::numeric::scalar` says.

mod instr;
mod make;

use super::memory::Aligned;
use instr::{BLOCK, Instr};
use std::ops::Range;

/// A kernel one element wide, ready for runs of elements on one instruction set.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    instrs: Vec<Instr>,
    constants: Vec<f32>,
    slots: usize,
    ports: usize,
    targets: usize,
}

/// What a port reads while a line is executed: an array, or one element for all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) base: *const f32,
    pub(crate) single: bool,
}

/// Space in which lines are executed. Keep one for each thread: it grows, and holds nothing between runs.
#[derive(Default)]
pub(crate) struct LineScratch {
    /// A block for each place.
    blocks: Aligned,
    /// Where each place is: slots, constants, ports, targets.
    table: Vec<*mut f32>,
}

// SAFETY: the pointers are kept for their memory's sake only; every run begins with new ones.
unsafe impl Send for LineScratch {}
// SAFETY: as above; nothing reads them through a shared reference.
unsafe impl Sync for LineScratch {}

impl LineScratch {
    /// Grows to what a line needs; how many bytes could not be had.
    pub(crate) fn fit(&mut self, line: &Line) -> Result<(), u64> {
        let floats = line.places() * BLOCK;
        self.blocks.fit(floats).ok_or(4 * floats as u64)?;
        self.table.clear();
        self.table.reserve(line.places());
        Ok(())
    }
}

impl Line {
    /// Elements that are computed together: parts of arrays are best cut where a block ends.
    pub(crate) const BLOCK: usize = BLOCK;

    fn places(&self) -> usize {
        self.slots + self.constants.len() + self.ports + self.targets
    }

    /// Executes some elements of the arrays.
    ///
    /// # Safety
    /// The instruction set that the line was made for is available. There are as many ports and targets
    /// as the kernel has, and the scratch fits. Each port is readable, initialised floats up to the end
    /// of `elements` or, where `single`, one; each target is as many writable floats that nobody else
    /// touches, apart from ports that were said to be aliases of it when the line was made, which begin
    /// where it begins.
    pub(crate) unsafe fn execute(
        &self,
        elements: Range<usize>,
        ports: &[Port],
        targets: &[*mut f32],
        scratch: &mut LineScratch,
    ) {
        let LineScratch { blocks, table } = scratch;
        let blocks = blocks.floats_mut()[..self.places() * BLOCK].as_mut_ptr();
        let own = |place: usize| blocks.wrapping_add(place * BLOCK);
        table.clear();
        table.extend((0..self.places()).map(own));
        let first_port = self.slots + self.constants.len();
        let first_target = first_port + self.ports;
        let singles = ports.iter().enumerate().filter(|(_, port)| port.single);
        // SAFETY: a single port is one readable element.
        let singles = singles.map(|(number, port)| (first_port + number, unsafe { *port.base }));
        let constants = self.constants.iter().enumerate().map(|(number, &x)| (self.slots + number, x));
        for (place, x) in constants.chain(singles) {
            // SAFETY: every place has a block in the scratch.
            unsafe { own(place).cast::<[f32; BLOCK]>().write([x; BLOCK]) };
        }
        let streams = ports.iter().enumerate().filter(|(_, port)| !port.single);
        let streams = streams.map(|(number, port)| (first_port + number, port.base));
        let results = targets.iter().enumerate().map(|(number, &target)| (first_target + number, target));
        let begin = elements.start;
        streams.clone().for_each(|(place, base)| table[place] = base.wrapping_add(begin).cast_mut());
        results.clone().for_each(|(place, base)| table[place] = base.wrapping_add(begin));

        for _ in 0..elements.len() / BLOCK {
            // SAFETY: all places hold a block, by the caller's word or by the size of the scratch.
            unsafe { self.block(table) };
            let step = |at: &mut *mut f32| *at = at.wrapping_add(BLOCK);
            table[first_target..].iter_mut().for_each(step);
            streams.clone().for_each(|(place, _)| {
                step(&mut table[place]);
                prefetch(table[place].wrapping_add(BLOCK));
            });
        }

        let rest = elements.len() % BLOCK;
        if rest == 0 {
            return;
        }
        let begin = elements.end - rest;
        // SAFETY: `rest` elements of each array are left, and the places' own blocks have room for them;
        // all are read before any is written.
        unsafe {
            for (place, base) in streams {
                table[place] = own(place);
                own(place).copy_from_nonoverlapping(base.wrapping_add(begin), rest);
            }
            results.clone().for_each(|(place, _)| table[place] = own(place));
            self.block(table);
            for (place, base) in results {
                own(place).copy_to_nonoverlapping(base.wrapping_add(begin), rest);
            }
        }
    }

    /// Executes one block.
    ///
    /// # Safety
    /// Each place of the table has a block, initialised unless it is a target; instruction set and
    /// overlaps are as [`execute`](Self::execute) says.
    unsafe fn block(&self, table: &[*mut f32]) {
        for instr in &self.instrs {
            // SAFETY: as for this function; the line was made for places of this table.
            unsafe { (instr.execute)(instr, table.as_ptr()) };
        }
    }
}

/// Asks for a block, which may lie outside of every allocation.
#[inline(always)]
fn prefetch(block: *const f32) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in 0..BLOCK / 16 {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 machine has this, and it never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(block.wrapping_add(16 * line).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = block;
}
