//! Straight lines of elementwise instructions over whole arrays: what updates of stores are made of.
//!
//! A [`Line`] is a kernel one element wide, made ready for runs of elements: every value of it is a
//! *slot* of as many floats as are computed at once, few enough that all slots stay in the first
//! cache while the arrays stream through. Slots are shared by values that do not live together. The
//! last value of a result is written where it belongs at once, if nothing reads what was there any
//! more; results that are left are copied when the run is done.
//!
//! **Bits.** Elements are independent, and each instruction is that of [`elementwise`](super::elementwise).

use super::elementwise::{Elements, ElementsMut, run};
use super::isa::Isa;
use super::memory::Aligned;
use autobatch_ir::plan::{Code, Kernel, RegKind, Source, Stage, View};
use autobatch_ir::types::DType;
use std::collections::HashMap;

/// Elements computed at once: 2 KiB a slot.
const RUN: usize = 512;
/// The most operands of an instruction.
const OPERANDS: usize = 3;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Port(u32),
    Const(u32),
    Slot(u32),
    Target(u32),
}

#[derive(Clone, Debug)]
struct LineInstr {
    code: Code,
    dtype: DType,
    inputs: [Home; OPERANDS],
    arity: usize,
    output: Home,
}

/// A kernel one element wide, ready for runs of elements.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    instrs: Vec<LineInstr>,
    constants: Vec<f32>,
    slots: usize,
    /// Results that must be copied to their targets: where they are, and the target.
    copies: Vec<(Home, u32)>,
}

/// What a port reads while a line is played: an array, or one element for all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) base: *const f32,
    pub(crate) single: bool,
}

impl Line {
    /// Makes a kernel ready. `aliases[port]` is the target that the port reads, if it reads one.
    ///
    /// The kernel is one that rule P32 allows: lines of one element, without parameter ports.
    pub(crate) fn new(kernel: &Kernel, aliases: &[Option<u32>]) -> Self {
        let mut builder = Builder::new(kernel);
        builder.values();
        builder.finish(aliases)
    }

    /// Floats of scratch that a play needs.
    pub(crate) fn scratch(&self) -> usize {
        self.slots.max(1) * RUN
    }

    /// Plays `count` elements.
    ///
    /// # Safety
    /// `isa` is available. Each port is `count` readable, initialised floats or, where `single`, one;
    /// each target is `count` writable floats that nobody else touches, apart from ports that are said
    /// to be aliases of it when the line was made, which begin where it begins. `scratch` has room.
    pub(crate) unsafe fn play(
        &self,
        isa: Isa,
        count: usize,
        ports: &[Port],
        targets: &[*mut f32],
        scratch: &mut Aligned,
    ) {
        let scratch = scratch.floats_mut().as_mut_ptr();
        for first in (0..count).step_by(RUN) {
            let len = RUN.min(count - first);
            let input = |home: Home| match home {
                Home::Port(port) => {
                    let Port { base, single } = ports[port as usize];
                    Elements { base: base.wrapping_add(if single { 0 } else { first }), stride: len, single }
                }
                Home::Const(at) => {
                    let base = self.constants.as_ptr().wrapping_add(at as usize);
                    Elements { base, stride: 0, single: true }
                }
                Home::Slot(slot) => {
                    let base = scratch.wrapping_add(slot as usize * RUN);
                    Elements { base, stride: len, single: false }
                }
                Home::Target(target) => Elements {
                    base: targets[target as usize].wrapping_add(first),
                    stride: len,
                    single: false,
                },
            };
            for instr in &self.instrs {
                let inputs = instr.inputs.map(input);
                let out = ElementsMut { base: input(instr.output).base.cast_mut(), stride: len };
                // SAFETY: inputs and output are ports, slots and targets, which the caller vouches for; an
                // output overlaps an input only where both are the same elements.
                unsafe { run(isa, instr.code, instr.dtype, (1, len), &inputs[..instr.arity], out) };
            }
            for &(home, target) in &self.copies {
                let out = ElementsMut { base: targets[target as usize].wrapping_add(first), stride: len };
                // SAFETY: as above.
                unsafe { run(isa, Code::Copy, DType::F32, (1, len), &[input(home)], out) };
            }
        }
    }
}

struct Value {
    code: Code,
    dtype: DType,
    inputs: Vec<Home>,
}

/// While a line is made, a slot is the number of the instruction that computes it.
struct Builder<'a> {
    kernel: &'a Kernel,
    values: Vec<Value>,
    /// What elements of registers hold.
    stored: HashMap<(u32, u32), Home>,
    constants: Vec<f32>,
}

impl<'a> Builder<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        Self { kernel, values: Vec::new(), stored: HashMap::new(), constants: Vec::new() }
    }

    fn constant(&mut self, bits: u32) -> Home {
        self.constants.push(f32::from_bits(bits));
        Home::Const(self.constants.len() as u32 - 1)
    }

    fn view(&mut self, view: View) -> Home {
        match self.kernel.regs[view.reg as usize].kind {
            RegKind::Port => Home::Port(view.reg),
            RegKind::Const(bits) => self.constant(bits),
            RegKind::Param(_) | RegKind::Temp | RegKind::Edges => self.stored[&(view.reg, view.start)],
        }
    }

    /// One value an instruction, in order.
    fn values(&mut self) {
        for stage in &self.kernel.stages {
            let Stage::Map { code, .. } = stage else {
                unreachable!("kernels of updates are lines (rule P32)")
            };
            let first = self.values.len() as u32;
            for (number, instr) in code.iter().enumerate() {
                let inputs = instr.sources.iter().map(|source| match *source {
                    Source::Local(local) => Home::Slot(first + local),
                    Source::View(view) | Source::Scalar(view) => self.view(view),
                    Source::Const(bits) => self.constant(bits),
                });
                let inputs = inputs.collect();
                self.values.push(Value { code: instr.code, dtype: instr.dtype, inputs });
                if let Some(view) = instr.store {
                    self.stored.insert((view.reg, view.start), Home::Slot(first + number as u32));
                }
            }
        }
    }

    fn finish(mut self, aliases: &[Option<u32>]) -> Line {
        let kernel = self.kernel;
        let mut results: Vec<Home> = kernel.results.iter().map(|&view| self.view(view)).collect();
        // A result that is what another target held is taken aside while it is there.
        for (target, result) in results.iter_mut().enumerate() {
            if let Home::Port(port) = *result
                && let Some(other) = aliases.get(port as usize).copied().flatten()
                && other as usize != target
            {
                let aside = Value { code: Code::Copy, dtype: DType::F32, inputs: vec![*result] };
                *result = Home::Slot(self.values.len() as u32);
                self.values.push(aside);
            }
        }
        let count = self.values.len();
        // The last instruction that reads each value, and the last that reads each target's old elements.
        let mut last_use: Vec<usize> = (0..count).collect();
        let mut last_read = vec![None; results.len()];
        for (number, value) in self.values.iter().enumerate() {
            for input in &value.inputs {
                match *input {
                    Home::Slot(slot) => last_use[slot as usize] = number,
                    Home::Port(port) => {
                        if let Some(target) = aliases.get(port as usize).copied().flatten() {
                            last_read[target as usize] = Some(number);
                        }
                    }
                    Home::Const(_) | Home::Target(_) => {}
                }
            }
        }
        let mut homes: Vec<Option<Home>> = vec![None; count];
        let mut copies = Vec::new();
        for (target, result) in results.iter().enumerate() {
            match *result {
                Home::Slot(slot) => {
                    let slot = slot as usize;
                    if homes[slot].is_none() && last_read[target].is_none_or(|read| read <= slot) {
                        homes[slot] = Some(Home::Target(target as u32));
                    } else {
                        copies.push((Home::Slot(slot as u32), target as u32));
                    }
                    last_use[slot] = count;
                }
                other => copies.push((other, target as u32)),
            }
        }
        let slots = share_slots(&self.values, &last_use, &mut homes);
        let home = |home: Home| match home {
            Home::Slot(slot) => homes[slot as usize].expect("every value got a home"),
            other => other,
        };
        let instrs = self.values.iter().enumerate().map(|(number, value)| {
            let mut inputs = [Home::Const(0); OPERANDS];
            inputs.iter_mut().zip(&value.inputs).for_each(|(slot, &input)| *slot = home(input));
            if value.inputs.len() < OPERANDS {
                let filler = inputs[0];
                inputs[value.inputs.len()..].fill(filler);
            }
            LineInstr {
                code: value.code,
                dtype: value.dtype,
                inputs,
                arity: value.inputs.len(),
                output: home(Home::Slot(number as u32)),
            }
        });
        Line {
            instrs: instrs.collect(),
            slots,
            copies: copies.into_iter().map(|(from, target)| (home(from), target)).collect(),
            constants: self.constants,
        }
    }
}

/// Gives every value that has no home a slot; how many there are.
fn share_slots(values: &[Value], last_use: &[usize], homes: &mut [Option<Home>]) -> usize {
    let (mut slots, mut free): (u32, Vec<u32>) = (0, Vec::new());
    let mut in_use: Vec<(u32, usize)> = Vec::new();
    for number in 0..values.len() {
        // An instruction may write where it reads: both are the same elements.
        in_use.retain(|&(slot, last)| {
            if last <= number {
                free.push(slot);
            }
            last > number
        });
        if homes[number].is_none() {
            let slot = free.pop().unwrap_or_else(|| {
                slots += 1;
                slots - 1
            });
            homes[number] = Some(Home::Slot(slot));
            in_use.push((slot, last_use[number]));
        }
    }
    slots as usize
}
