//! Builds fused kernels: fuses instructions and assigns a location to each value.
//!
//! Sums of products and flushed numbers become one instruction. Values with disjoint lifetimes share slots. A result
//! goes directly to its target if no later instruction reads the old elements; other results are copied at the end.

use super::FusedKernel;
use super::instr::{FusedOp, Instr};
use crate::kernels::isa::Isa;
use autobatch_ir::graph::{Binary, Compare, Unary};
use autobatch_ir::plan::{Code, Kernel, RegId, RegKind, Source, Stage, View};
use autobatch_ir::types::DType;
use std::collections::HashMap;

const MUL: Code = Code::Binary(Binary::Mul);

/// The location of a value. Before [`share_slots`], the slot of a value is the number of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueLocation {
    Port(u32),
    Const(u32),
    Slot(u32),
    Target(u32),
}

impl FusedKernel {
    /// Builds a kernel for an instruction set. `aliases[port]` is the target whose array the port reads, if any.
    ///
    /// The kernel satisfies rule P32: its values have one element, and it has no parameter ports.
    pub(crate) fn new(isa: Isa, kernel: &Kernel, aliases: &[Option<u32>]) -> Self {
        let mut builder = Builder {
            kernel,
            aliases,
            values: Vec::new(),
            stored: HashMap::new(),
            constants: Vec::new(),
            results: Vec::new(),
        };
        builder.read_stages();
        builder.results = kernel.results.iter().map(|&view| builder.view(view)).collect();
        builder.save_overwritten_results();
        builder.fuse();
        builder.emit(isa)
    }
}

/// An instruction and the locations that it reads.
struct Value {
    op: FusedOp,
    inputs: Vec<ValueLocation>,
    /// True if another instruction computes this value on the way to its own.
    fused_away: bool,
}

impl Value {
    const fn new(op: FusedOp, inputs: Vec<ValueLocation>) -> Self {
        Self { op, inputs, fused_away: false }
    }
}

struct Builder<'a> {
    kernel: &'a Kernel,
    aliases: &'a [Option<u32>],
    values: Vec<Value>,
    /// The locations of the stored elements of registers.
    stored: HashMap<(RegId, u32), ValueLocation>,
    constants: Vec<f32>,
    results: Vec<ValueLocation>,
}

impl Builder<'_> {
    fn constant(&mut self, bits: u32) -> ValueLocation {
        let known = self.constants.iter().position(|constant| constant.to_bits() == bits);
        let number = known.unwrap_or_else(|| {
            self.constants.push(f32::from_bits(bits));
            self.constants.len() - 1
        });
        ValueLocation::Const(number as u32)
    }

    fn view(&mut self, view: View) -> ValueLocation {
        match self.kernel.regs[view.reg.index()].kind {
            RegKind::Port => ValueLocation::Port(view.reg.0),
            RegKind::Const(bits) => self.constant(bits),
            RegKind::Param(_) | RegKind::Temp | RegKind::Edges => self.stored[&(view.reg, view.start)],
        }
    }

    /// The target whose old elements an input reads.
    fn aliased_target(&self, input: ValueLocation) -> Option<u32> {
        match input {
            ValueLocation::Port(port) => self.aliases.get(port as usize).copied().flatten(),
            _ => None,
        }
    }

    /// Makes one value per instruction, in order.
    fn read_stages(&mut self) {
        for stage in &self.kernel.stages {
            let Stage::Map { code, .. } = stage else {
                unreachable!("kernels of updates are elementwise (rule P32)")
            };
            let first = self.values.len() as u32;
            for (number, instr) in code.iter().enumerate() {
                let inputs = instr.sources.iter().map(|source| match *source {
                    Source::Local(local) => ValueLocation::Slot(first + local),
                    Source::View(view) | Source::Scalar(view) => self.view(view),
                    Source::Const(bits) => self.constant(bits),
                });
                let inputs = inputs.collect();
                self.values.push(Value::new(FusedOp::Plain(instr.code, instr.dtype), inputs));
                if let Some(view) = instr.store {
                    self.stored.insert((view.reg, view.start), ValueLocation::Slot(first + number as u32));
                }
            }
        }
    }

    /// Copies each result that is the old content of another target, because that target is overwritten.
    fn save_overwritten_results(&mut self) {
        for target in 0..self.results.len() {
            let result = self.results[target];
            if self.aliased_target(result).is_some_and(|other| other as usize != target) {
                self.results[target] = ValueLocation::Slot(self.values.len() as u32);
                self.values.push(Value::new(FusedOp::COPY, vec![result]));
            }
        }
    }

    /// The number of the value at a location, if its instruction is `code` and it has no other reader.
    fn only_use(&self, uses: &[u32], location: ValueLocation, code: Code) -> Option<usize> {
        let ValueLocation::Slot(slot) = location else { return None };
        let value = &self.values[slot as usize];
        let matches = uses[slot as usize] == 1 && value.op == FusedOp::Plain(code, DType::F32);
        matches.then_some(slot as usize)
    }

    /// Fuses sums of products, quotients and flushes. Every rounding stays, so the bits stay.
    fn fuse(&mut self) {
        let mut uses = vec![0u32; self.values.len()];
        for input in self.values.iter().flat_map(|value| &value.inputs).chain(&self.results) {
            if let ValueLocation::Slot(slot) = *input {
                uses[slot as usize] += 1;
            }
        }
        for number in 0..self.values.len() {
            let FusedOp::Plain(code, DType::F32) = self.values[number].op else { continue };
            let fused = match (code, &*self.values[number].inputs.clone()) {
                (Code::Binary(Binary::Add), &[a, b]) => self.fuse_sum(&uses, a, b),
                (Code::Binary(Binary::Sub), &[a, b]) => self.fuse_quotient(&uses, a, b),
                (Code::Select, &[condition, zero, x]) => self.fuse_flush(&mut uses, condition, zero, x),
                _ => None,
            };
            if let Some(fused) = fused {
                self.values[number] = fused;
            }
        }
    }

    /// `a + b`, where one or both are products.
    fn fuse_sum(&mut self, uses: &[u32], a: ValueLocation, b: ValueLocation) -> Option<Value> {
        match [a, b].map(|term| self.only_use(uses, term, MUL)) {
            [Some(p), Some(q)] => {
                let factors = [self.take(p), self.take(q)].concat();
                Some(Value::new(FusedOp::TwoProducts(None), factors))
            }
            [Some(p), None] => Some(self.product_and_term(uses, p, b)),
            [None, Some(q)] => Some(self.product_and_term(uses, q, a)),
            [None, None] => None,
        }
    }

    /// A product plus a term. A factor of the product may be a root.
    fn product_and_term(&mut self, uses: &[u32], product: usize, term: ValueLocation) -> Value {
        let factors = self.take(product);
        for (factor, other) in [(factors[0], factors[1]), (factors[1], factors[0])] {
            if let Some(root) = self.only_use(uses, factor, Code::Unary(Unary::Sqrt)) {
                return Value::new(
                    FusedOp::RootProductAndTerm,
                    [self.take(root), vec![other, term]].concat(),
                );
            }
        }
        Value::new(FusedOp::ProductAndTerm(None), [factors, vec![term]].concat())
    }

    /// `a - quotient`, where the numerator of the quotient is a product.
    fn fuse_quotient(&mut self, uses: &[u32], a: ValueLocation, quotient: ValueLocation) -> Option<Value> {
        let quotient = self.only_use(uses, quotient, Code::Binary(Binary::Div))?;
        let &[product, divisor] = &*self.values[quotient].inputs else { return None };
        let product = self.only_use(uses, product, MUL)?;
        self.take(quotient);
        let inputs = [vec![a], self.take(product), vec![divisor]].concat();
        Some(Value::new(FusedOp::LessQuotient, inputs))
    }

    /// `select(|x| < limit, 0, x)`.
    fn fuse_flush(
        &mut self,
        uses: &mut [u32],
        condition: ValueLocation,
        zero: ValueLocation,
        x: ValueLocation,
    ) -> Option<Value> {
        let less = self.only_use(uses, condition, Code::Compare(Compare::Lt))?;
        let &[size, limit] = &*self.values[less].inputs else { return None };
        let abs = self.only_use(uses, size, Code::Unary(Unary::Abs))?;
        let (ValueLocation::Const(zero), ValueLocation::Const(limit)) = (zero, limit) else { return None };
        let (zero, limit) = (self.constants[zero as usize], self.constants[limit as usize]);
        if zero.to_bits() != 0 || self.values[abs].inputs != [x] {
            return None;
        }
        self.values[less].fused_away = true;
        self.values[abs].fused_away = true;
        // `x` had two readers here: this instruction and its magnitude.
        if let ValueLocation::Slot(slot) = x {
            let sum = slot as usize;
            uses[sum] -= 1;
            let flushed = match self.values[sum].op {
                FusedOp::ProductAndTerm(None) => Some(FusedOp::ProductAndTerm(Some(limit))),
                FusedOp::TwoProducts(None) => Some(FusedOp::TwoProducts(Some(limit))),
                _ => None,
            };
            if let (Some(flushed), 1) = (flushed, uses[sum]) {
                return Some(Value::new(flushed, self.take(sum)));
            }
        }
        Some(Value::new(FusedOp::Flush(limit), vec![x]))
    }

    /// Marks a value as fused into another one, and returns its inputs.
    fn take(&mut self, value: usize) -> Vec<ValueLocation> {
        self.values[value].fused_away = true;
        self.values[value].inputs.clone()
    }

    /// Assigns locations and writes the instructions.
    fn emit(self, isa: Isa) -> FusedKernel {
        let mut last_use = self.last_uses();
        let (mut locations, copies) = self.place_results(&mut last_use);
        let slots = share_slots(&self.values, &last_use, &mut locations);
        let (constants, ports) = (self.constants.len() as u32, self.aliases.len() as u32);
        let operand = |location: ValueLocation| {
            let location = match location {
                ValueLocation::Slot(value) => {
                    locations[value as usize].expect("every value that is read has a location")
                }
                other => other,
            };
            match location {
                ValueLocation::Slot(slot) => slot,
                ValueLocation::Const(number) => slots + number,
                ValueLocation::Port(port) => slots + constants + port,
                ValueLocation::Target(target) => slots + constants + ports + target,
            }
        };
        let mut instrs: Vec<Instr> = Vec::with_capacity(self.values.len() + copies.len());
        for (number, value) in self.live_values() {
            let inputs: Vec<u32> = value.inputs.iter().map(|&input| operand(input)).collect();
            let output = operand(ValueLocation::Slot(number as u32));
            instrs.push(Instr::new(isa, value.op, &inputs, output));
        }
        for (from, target) in copies {
            let output = operand(ValueLocation::Target(target));
            instrs.push(Instr::new(isa, FusedOp::COPY, &[operand(from)], output));
        }
        FusedKernel {
            instrs,
            slots: slots as usize,
            ports: self.aliases.len(),
            targets: self.results.len(),
            constants: self.constants,
        }
    }

    fn live_values(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.values.iter().enumerate().filter(|(_, value)| !value.fused_away)
    }

    /// The last instruction that reads each value; the value itself if there is none.
    fn last_uses(&self) -> Vec<usize> {
        let mut last_use: Vec<usize> = (0..self.values.len()).collect();
        for (number, value) in self.live_values() {
            for input in &value.inputs {
                if let ValueLocation::Slot(slot) = *input {
                    last_use[slot as usize] = number;
                }
            }
        }
        last_use
    }

    /// Places results in their targets where possible. Returns the locations and the copies of the other results.
    fn place_results(
        &self,
        last_use: &mut [usize],
    ) -> (Vec<Option<ValueLocation>>, Vec<(ValueLocation, u32)>) {
        // The last instruction that reads the old elements of each target.
        let mut last_read = vec![None; self.results.len()];
        for (number, value) in self.live_values() {
            for target in value.inputs.iter().filter_map(|&input| self.aliased_target(input)) {
                last_read[target as usize] = Some(number);
            }
        }
        let mut locations = vec![None; self.values.len()];
        let mut copies = Vec::new();
        for (target, &result) in (0u32..).zip(&self.results) {
            let ValueLocation::Slot(slot) = result else {
                copies.push((result, target));
                continue;
            };
            let slot = slot as usize;
            if locations[slot].is_none() && last_read[target as usize].is_none_or(|read| read <= slot) {
                locations[slot] = Some(ValueLocation::Target(target));
            } else {
                copies.push((result, target));
            }
            last_use[slot] = self.values.len();
        }
        (locations, copies)
    }
}

/// Assigns a slot to every value without a location. Returns the number of slots.
fn share_slots(values: &[Value], last_use: &[usize], locations: &mut [Option<ValueLocation>]) -> u32 {
    let (mut slots, mut free): (u32, Vec<u32>) = (0, Vec::new());
    let mut in_use: Vec<(u32, usize)> = Vec::new();
    for number in 0..values.len() {
        // An instruction may write the slot that it reads: both are the same elements.
        in_use.retain(|&(slot, last)| {
            if last <= number {
                free.push(slot);
            }
            last > number
        });
        if locations[number].is_none() && !values[number].fused_away {
            let slot = free.pop().unwrap_or_else(|| {
                slots += 1;
                slots - 1
            });
            locations[number] = Some(ValueLocation::Slot(slot));
            in_use.push((slot, last_use[number]));
        }
    }
    slots
}
