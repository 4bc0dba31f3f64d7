//! Straight lines of elementwise instructions over whole arrays: what updates of stores are made of.
//!
//! A [`Line`] is a kernel one element wide, made ready for runs of elements: every value of it is a
//! *slot* of as many floats as are computed at once, few enough that all slots stay in the first
//! cache while the arrays stream through. Slots are shared by values that do not live together. The
//! last value of a result is written where it belongs at once, if nothing reads what was there any
//! more; results that are left are copied when the run is done.
//!
//! Sums of products and flushed numbers are found and computed in one pass ([`fused`]).
//!
//! **Bits.** Elements are independent, and each instruction is that of [`elementwise`](super::elementwise).

use super::elementwise::{Elements, ElementsMut, run};
use super::fused::{self, Fused};
use super::isa::Isa;
use super::memory::Aligned;
use autobatch_ir::graph::{Binary, Compare, Unary};
use autobatch_ir::plan::{Code, Kernel, RegKind, Source, Stage, View};
use autobatch_ir::types::DType;
use std::collections::HashMap;

/// Elements computed at once, 8 KiB a slot: fewer are spent on telling instructions where they read, more
/// leave the first cache. Against 512 an Adam update takes 0.76 of the time.
const RUN: usize = 2048;
/// The most operands of an instruction.
const OPERANDS: usize = 4;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Port(u32),
    Const(u32),
    Slot(u32),
    Target(u32),
}

/// What an instruction computes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Plain(Code, DType),
    Fused(Fused),
}

#[derive(Clone, Debug)]
struct LineInstr {
    what: What,
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
                unsafe {
                    match instr.what {
                        What::Plain(code, dtype) => {
                            run(isa, code, dtype, (1, len), &inputs[..instr.arity], out);
                        }
                        What::Fused(fused) => fused::run(isa, fused, len, &inputs, out),
                    }
                }
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
    what: What,
    inputs: Vec<Home>,
    /// Whether another value computes it on its way.
    fused_away: bool,
}

impl Value {
    const fn new(what: What, inputs: Vec<Home>) -> Self {
        Self { what, inputs, fused_away: false }
    }
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
                self.values.push(Value::new(What::Plain(instr.code, instr.dtype), inputs));
                if let Some(view) = instr.store {
                    self.stored.insert((view.reg, view.start), Home::Slot(first + number as u32));
                }
            }
        }
    }

    /// The instruction with this code that computes a value, if nothing else reads it.
    fn only_use(&self, uses: &[u32], home: Home, what: Code) -> Option<usize> {
        let Home::Slot(slot) = home else { return None };
        let value = &self.values[slot as usize];
        let is_it = uses[slot as usize] == 1 && value.what == What::Plain(what, DType::F32);
        is_it.then_some(slot as usize)
    }

    /// Joins sums of products and flushes: bits stay, because every rounding does.
    fn fuse(&mut self, results: &[Home]) {
        let mut uses = vec![0u32; self.values.len()];
        let inputs = self.values.iter().flat_map(|value| &value.inputs);
        for input in inputs.chain(results) {
            if let Home::Slot(slot) = *input {
                uses[slot as usize] += 1;
            }
        }
        const MUL: Code = Code::Binary(Binary::Mul);
        for number in 0..self.values.len() {
            let (what, inputs) = (self.values[number].what, self.values[number].inputs.clone());
            match (what, &*inputs) {
                (What::Plain(Code::Binary(Binary::Add), DType::F32), &[a, b]) => {
                    let products = [a, b].map(|term| self.only_use(&uses, term, MUL));
                    let (fused, inputs) = match products {
                        [Some(p), Some(q)] => {
                            let both = [p, q].map(|at| self.take(at)).concat();
                            (Fused::TwoProducts(None), both)
                        }
                        [Some(p), None] => (Fused::ProductAndTerm(None), [self.take(p), vec![b]].concat()),
                        [None, Some(q)] => (Fused::ProductAndTerm(None), [self.take(q), vec![a]].concat()),
                        [None, None] => continue,
                    };
                    self.values[number] = Value::new(What::Fused(fused), inputs);
                }
                (What::Plain(Code::Select, DType::F32), &[condition, zero, x]) => {
                    self.fuse_flush(number, (condition, zero, x), &mut uses);
                }
                _ => {}
            }
        }
    }

    /// `select(|x| < limit, 0, x)`
    fn fuse_flush(&mut self, number: usize, (condition, zero, x): (Home, Home, Home), uses: &mut [u32]) {
        let Some(less) = self.only_use(uses, condition, Code::Compare(Compare::Lt)) else { return };
        let &[size, limit] = &*self.values[less].inputs else { return };
        let Some(abs) = self.only_use(uses, size, Code::Unary(Unary::Abs)) else { return };
        let (Home::Const(zero), Home::Const(limit)) = (zero, limit) else { return };
        let (zero, limit) = (self.constants[zero as usize], self.constants[limit as usize]);
        if zero.to_bits() != 0 || self.values[abs].inputs != [x] {
            return;
        }
        self.values[less].fused_away = true;
        self.values[abs].fused_away = true;
        let mut fused = Value::new(What::Fused(Fused::Flush(limit)), vec![x]);
        // The number itself was read by this and by its magnitude.
        if let Home::Slot(slot) = x {
            let sum = slot as usize;
            uses[sum] -= 1;
            let flushed = match self.values[sum].what {
                What::Fused(Fused::ProductAndTerm(None)) => Some(Fused::ProductAndTerm(Some(limit))),
                What::Fused(Fused::TwoProducts(None)) => Some(Fused::TwoProducts(Some(limit))),
                What::Fused(_) | What::Plain(..) => None,
            };
            if let (Some(flushed), 1) = (flushed, uses[sum]) {
                fused = Value::new(What::Fused(flushed), self.take(sum));
            }
        }
        self.values[number] = fused;
    }

    /// The operands of a value that another one computes on its way.
    fn take(&mut self, value: usize) -> Vec<Home> {
        self.values[value].fused_away = true;
        self.values[value].inputs.clone()
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
                let aside = Value::new(What::Plain(Code::Copy, DType::F32), vec![*result]);
                *result = Home::Slot(self.values.len() as u32);
                self.values.push(aside);
            }
        }
        self.fuse(&results);
        let count = self.values.len();
        // The last instruction that reads each value, and the last that reads each target's old elements.
        let mut last_use: Vec<usize> = (0..count).collect();
        let mut last_read = vec![None; results.len()];
        for (number, value) in self.values.iter().enumerate().filter(|(_, value)| !value.fused_away) {
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
            Home::Slot(slot) => homes[slot as usize].expect("every value that is read got a home"),
            other => other,
        };
        let live = self.values.iter().enumerate().filter(|(_, value)| !value.fused_away);
        let instrs = live.map(|(number, value)| {
            let mut inputs = [Home::Const(0); OPERANDS];
            inputs.iter_mut().zip(&value.inputs).for_each(|(slot, &input)| *slot = home(input));
            if value.inputs.len() < OPERANDS {
                let filler = inputs[0];
                inputs[value.inputs.len()..].fill(filler);
            }
            LineInstr {
                what: value.what,
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
        if homes[number].is_none() && !values[number].fused_away {
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
