//! Makes lines of kernels: which instructions there are, and where their values live.
//!
//! Sums of products and flushed numbers become one instruction. Slots are shared by values that do not
//! live together. The last value of a result is written where it belongs at once, if nothing reads what
//! was there any more; results that are left are copied at the end.

use super::Line;
use super::instr::{Instr, What};
use crate::kernels::isa::Isa;
use autobatch_ir::graph::{Binary, Compare, Unary};
use autobatch_ir::plan::{Code, Kernel, RegKind, Source, Stage, View};
use autobatch_ir::types::DType;
use std::collections::HashMap;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Port(u32),
    Const(u32),
    Slot(u32),
    Target(u32),
}

impl Line {
    /// Makes a kernel ready for an instruction set. `aliases[port]` is the target that the port reads, if
    /// it reads one.
    ///
    /// The kernel is one that rule P32 allows: lines of one element, without parameter ports.
    pub(crate) fn new(isa: Isa, kernel: &Kernel, aliases: &[Option<u32>]) -> Self {
        let mut builder = Builder::new(kernel);
        builder.values();
        builder.finish(isa, aliases)
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
        let known = self.constants.iter().position(|constant| constant.to_bits() == bits);
        let number = known.unwrap_or_else(|| {
            self.constants.push(f32::from_bits(bits));
            self.constants.len() - 1
        });
        Home::Const(number as u32)
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
                    self.values[number] = match products {
                        [Some(p), Some(q)] => {
                            let both = [p, q].map(|at| self.take(at)).concat();
                            Value::new(What::TwoProducts(None), both)
                        }
                        [Some(p), None] => self.product_and_term(&uses, p, b),
                        [None, Some(q)] => self.product_and_term(&uses, q, a),
                        [None, None] => continue,
                    };
                }
                (What::Plain(Code::Binary(Binary::Sub), DType::F32), &[a, b]) => {
                    let Some(quotient) = self.only_use(&uses, b, Code::Binary(Binary::Div)) else { continue };
                    let &[product, divisor] = &*self.values[quotient].inputs else { continue };
                    let Some(product) = self.only_use(&uses, product, MUL) else { continue };
                    self.take(quotient);
                    let inputs = [vec![a], self.take(product), vec![divisor]].concat();
                    self.values[number] = Value::new(What::LessQuotient, inputs);
                }
                (What::Plain(Code::Select, DType::F32), &[condition, zero, x]) => {
                    self.fuse_flush(number, (condition, zero, x), &mut uses);
                }
                _ => {}
            }
        }
    }

    /// A product and a term, which may be that of a root.
    fn product_and_term(&mut self, uses: &[u32], product: usize, term: Home) -> Value {
        let factors = self.take(product);
        let root = |factor: Home| self.only_use(uses, factor, Code::Unary(Unary::Sqrt));
        match [root(factors[0]), root(factors[1])] {
            [Some(root), _] => {
                Value::new(What::RootProductAndTerm, [self.take(root), vec![factors[1], term]].concat())
            }
            [None, Some(root)] => {
                Value::new(What::RootProductAndTerm, [self.take(root), vec![factors[0], term]].concat())
            }
            [None, None] => Value::new(What::ProductAndTerm(None), [factors, vec![term]].concat()),
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
        let mut fused = Value::new(What::Flush(limit), vec![x]);
        // The number itself was read by this and by its magnitude.
        if let Home::Slot(slot) = x {
            let sum = slot as usize;
            uses[sum] -= 1;
            let flushed = match self.values[sum].what {
                What::ProductAndTerm(None) => Some(What::ProductAndTerm(Some(limit))),
                What::TwoProducts(None) => Some(What::TwoProducts(Some(limit))),
                _ => None,
            };
            if let (Some(flushed), 1) = (flushed, uses[sum]) {
                fused = Value::new(flushed, self.take(sum));
            }
        }
        self.values[number] = fused;
    }

    /// The operands of a value that another one computes on its way.
    fn take(&mut self, value: usize) -> Vec<Home> {
        self.values[value].fused_away = true;
        self.values[value].inputs.clone()
    }

    fn finish(mut self, isa: Isa, aliases: &[Option<u32>]) -> Line {
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
        // Places by number: slots, constants, ports, targets.
        let (constants, ports) = (self.constants.len() as u32, aliases.len() as u32);
        let place = |at: Home| match home(at) {
            Home::Slot(slot) => slot,
            Home::Const(number) => slots + number,
            Home::Port(port) => slots + constants + port,
            Home::Target(target) => slots + constants + ports + target,
        };
        let live = self.values.iter().enumerate().filter(|(_, value)| !value.fused_away);
        let mut instrs: Vec<Instr> = Vec::with_capacity(count + copies.len());
        for (number, value) in live {
            let inputs: Vec<u32> = value.inputs.iter().map(|&input| place(input)).collect();
            instrs.push(Instr::new(isa, value.what, &inputs, place(Home::Slot(number as u32))));
        }
        let copy = What::Plain(Code::Copy, DType::F32);
        let copies = copies
            .into_iter()
            .map(|(from, target)| Instr::new(isa, copy, &[place(from)], place(Home::Target(target))));
        instrs.extend(copies);
        Line {
            instrs,
            slots: slots as usize,
            ports: aliases.len(),
            targets: results.len(),
            constants: self.constants,
        }
    }
}

/// Gives every value that has no home a slot; how many there are.
fn share_slots(values: &[Value], last_use: &[usize], homes: &mut [Option<Home>]) -> u32 {
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
    slots
}
