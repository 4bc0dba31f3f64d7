//! One lane of a kernel: its registers and the execution of its stages.

use super::RunError;
use super::error::zeros;
use autobatch_ir::numeric::label_loss;
use autobatch_ir::numeric::product::{self, prod_chain};
use autobatch_ir::plan::row_ops::{
    Noise, Scratch, attend_grad, attend_pull, map_element, mean_grad, row_op, seg_grad, seg_op,
};
use autobatch_ir::plan::{
    Instr, Kernel, ListSource, ProdInit, ProductPart, RegId, RegKind, Source, Stage, View,
};
use autobatch_ir::types::Type;

/// The registers of a lane, end to end in one buffer. The values of lists lie in buffers of their own.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    words: Vec<u32>,
    starts: Vec<usize>,
    lists: Vec<Vec<Vec<u32>>>,
    /// For each register of edges its values, side by side; empty for other registers.
    edges: Vec<Vec<f32>>,
}

/// The inputs of a kernel besides its ports.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) params: &'a [&'a [f32]],
    pub(crate) noise: Noise,
}

impl Lane {
    /// Allocates the registers of a kernel.
    pub(crate) fn fit(&mut self, kernel: &Kernel) -> Result<(), RunError> {
        self.starts.clear();
        let mut total = 0usize;
        for reg in &kernel.regs {
            self.starts.push(total);
            let elements = if reg.ty.is_list { 0 } else { reg.ty.shape.elements() };
            total = total.checked_add(elements).ok_or(RunError::Memory)?;
        }
        if total > self.words.len() {
            self.words = zeros(Some(total))?;
        }
        self.lists.clear();
        self.lists.resize(kernel.ports as usize, Vec::new());
        self.edges.clear();
        self.edges.resize(kernel.regs.len(), Vec::new());
        Ok(())
    }

    pub(crate) fn set_port(&mut self, port: usize, words: &[u32]) {
        let start = self.starts[port];
        self.words[start..start + words.len()].copy_from_slice(words);
    }

    pub(crate) fn set_list<'a>(&mut self, port: usize, items: impl Iterator<Item = &'a [u32]>) {
        self.lists[port] = items.map(<[u32]>::to_vec).collect();
    }

    pub(crate) fn view(&self, view: View) -> &[u32] {
        &self.words[self.starts[view.reg.index()] + view.start as usize..][..view.width as usize]
    }

    /// The values of a register of edges, side by side.
    pub(crate) fn edges(&self, reg: RegId) -> &[u32] {
        bytemuck::cast_slice(&self.edges[reg.index()])
    }

    fn floats(&self, view: View) -> &[f32] {
        bytemuck::cast_slice(self.view(view))
    }

    fn set(&mut self, view: View, words: &[u32]) {
        let start = self.starts[view.reg.index()] + view.start as usize;
        self.words[start..start + view.width as usize].copy_from_slice(words);
    }

    /// Executes all stages. Returns the first index out of range, with its limit. The ops clamp it to the last row.
    pub(crate) fn execute(&mut self, operands: Operands<'_>, scratch: &mut Scratch) -> Option<(u32, u32)> {
        let mut fault = None;
        for (number, reg) in operands.kernel.regs.iter().enumerate() {
            let whole = || operands.kernel.whole(RegId(number as u32));
            match reg.kind {
                RegKind::Port | RegKind::Temp | RegKind::Edges => {}
                RegKind::Const(bits) => self.set(whole(), &vec![bits; reg.ty.shape.elements()]),
                RegKind::Param(param) => {
                    self.set(whole(), bytemuck::cast_slice(operands.params[param.index()]));
                }
            }
        }
        for stage in &operands.kernel.stages {
            if let Some(limit) = operands.kernel.index_limit(stage) {
                let below = limit.list.map_or(limit.below, |port| self.lists[port.index()].len() as u32);
                let found = self.view(limit.view).iter().find(|&&index| index >= below);
                fault = fault.or(found.map(|&found| (found, below)));
            }
            match stage {
                Stage::Prod { dst, rows, init, parts } => {
                    let result = self.product(operands, *dst, *rows, *init, parts);
                    self.set(*dst, bytemuck::cast_slice(&result));
                }
                Stage::Map { width, code } => self.map(*width, code),
                Stage::Row { op, sources, dsts } => {
                    let mut results: Vec<Vec<u32>> =
                        dsts.iter().map(|dst| vec![0; dst.width as usize]).collect();
                    let sources: Vec<(&[u32], Type)> =
                        sources.iter().map(|&(view, ty)| (self.view(view), ty)).collect();
                    let mut slices: Vec<&mut [u32]> = results.iter_mut().map(Vec::as_mut_slice).collect();
                    row_op(*op, operands.noise, &sources, &mut slices);
                    dsts.iter().zip(&results).for_each(|(&dst, result)| self.set(dst, result));
                }
                Stage::Seg { op, query, lists, dst, .. } => {
                    let mut result = vec![0f32; dst.width as usize];
                    let lists: Vec<Vec<&[f32]>> = lists.iter().map(|list| self.list(list)).collect();
                    let lists: Vec<&[&[f32]]> = lists.iter().map(Vec::as_slice).collect();
                    let query = query.map_or(&[][..], |query| self.floats(query));
                    seg_op(*op, query, &lists, &mut result, scratch);
                    self.set(*dst, bytemuck::cast_slice(&result));
                }
                Stage::SegGrad { .. } => self.fold_gradient(stage),
                Stage::MeanGrad { list, dy, dst } => {
                    let mut made = vec![0f32; dst.width as usize];
                    mean_grad(self.lists[list.index()].len(), self.floats(*dy), &mut made);
                    self.set(*dst, bytemuck::cast_slice(&made));
                }
                Stage::AttendGrad { op, query, keys, values, dy, dst, reader } => {
                    let [keys, values] = [*keys, *values].map(|port| self.list(&ListSource::Port(port)));
                    let width = |view: &Option<View>| view.map_or(0, |view| view.width as usize);
                    let mut made = [vec![0f32; width(dst)], vec![0f32; width(reader)]];
                    let [dq, row] = &mut made;
                    attend_grad(*op, self.floats(*query), [&keys, &values], self.floats(*dy), [dq, row]);
                    self.set_wanted([*dst, *reader], made);
                }
                Stage::AttendPull { op, key, value, readers, key_dst, value_dst } => {
                    let readers = self.list(&ListSource::Port(*readers));
                    let dsts = [*key_dst, *value_dst];
                    let mut made = dsts.map(|view| vec![0f32; view.map_or(0, |view| view.width as usize)]);
                    let [dk, dv] = &mut made;
                    attend_pull(*op, self.floats(*key), self.floats(*value), &readers, [dk, dv]);
                    self.set_wanted(dsts, made);
                }
                Stage::LabelLoss { param, x, label, dst, log_sum, slope } => {
                    let rows = operands.params[param.index()];
                    let made = label_loss::label_loss(rows, self.floats(*x), self.view(*label)[0]);
                    self.set(*dst, &[made.loss.to_bits()]);
                    self.set_wanted([*log_sum, *slope], [vec![made.log_sum], made.slope]);
                }
                Stage::Lookup { param, index, dst } => {
                    let table = operands.params[param.index()];
                    let width = dst.width as usize;
                    let (index, last) = (self.view(*index)[0] as usize, table.len() / width - 1);
                    self.set(*dst, bytemuck::cast_slice(&table[index.min(last) * width..][..width]));
                }
            }
        }
        fault
    }

    fn fold_gradient(&mut self, stage: &Stage) {
        let Stage::SegGrad { op, query, lists, dy, dsts, elements } = stage else { return };
        let mut outs: Vec<Vec<f32>> = Vec::with_capacity(dsts.len());
        for ((dst, &list), element) in dsts.iter().zip(lists).zip(elements) {
            let values = dst.map_or(0, |_| self.lists[list.index()].len());
            outs.push(vec![0.0; values * element.shape.elements()]);
        }
        let lists: Vec<Vec<&[f32]>> = lists.iter().map(|&port| self.list(&ListSource::Port(port))).collect();
        let lists: Vec<&[&[f32]]> = lists.iter().map(Vec::as_slice).collect();
        let mut slices: Vec<&mut [f32]> = outs.iter_mut().map(Vec::as_mut_slice).collect();
        let query = query.map_or(&[][..], |query| self.floats(query));
        seg_grad(*op, query, &lists, self.floats(*dy), &mut slices);
        for (dst, out) in dsts.iter().zip(outs) {
            if let Some(reg) = dst {
                self.edges[reg.index()] = out;
            }
        }
    }

    fn set_wanted(&mut self, dsts: [Option<View>; 2], made: [Vec<f32>; 2]) {
        for (dst, made) in dsts.into_iter().zip(made) {
            if let Some(dst) = dst {
                self.set(dst, bytemuck::cast_slice(&made));
            }
        }
    }

    fn list(&self, list: &ListSource) -> Vec<&[f32]> {
        match list {
            ListSource::Port(port) => {
                self.lists[port.index()].iter().map(|words| bytemuck::cast_slice(words)).collect()
            }
            ListSource::Views(views) => views.iter().map(|&view| self.floats(view)).collect(),
        }
    }

    fn product(
        &self,
        operands: Operands<'_>,
        dst: View,
        rows: u32,
        init: ProdInit,
        parts: &[ProductPart],
    ) -> Vec<f32> {
        let columns = (dst.width / rows) as usize;
        let mut result = Vec::with_capacity(dst.width as usize);
        for (row, column) in (0..rows as usize).flat_map(|row| (0..columns).map(move |column| (row, column)))
        {
            let init = match init {
                ProdInit::Zero => 0.0,
                ProdInit::Bias(param) => operands.params[param.index()][parts[0].col as usize + column],
                ProdInit::View(view) => self.floats(view)[row * columns + column],
            };
            let parts: Vec<product::Part<'_, f32>> = parts
                .iter()
                .map(|part| {
                    let inner = (part.source.width / rows) as usize;
                    let x = &self.floats(part.source)[row * inner..][..inner];
                    let w = operands.params[part.param.index()];
                    let stored = operands.kernel.params[part.param.index()].shape.width();
                    let (first_row, column) = (part.row as usize, part.col as usize + column);
                    if part.transposed {
                        product::Part { x, w, first: column * stored + first_row, stride: 1 }
                    } else {
                        product::Part::column(x, w, stored, first_row, column)
                    }
                })
                .collect();
            result.push(prod_chain(init, &parts));
        }
        result
    }

    fn map(&mut self, width: u32, code: &[Instr]) {
        let mut locals: Vec<Vec<u32>> = Vec::with_capacity(code.len());
        for instr in code {
            let element = |element: usize| {
                let mut operands = [0; 3];
                for (operand, source) in operands.iter_mut().zip(&instr.sources) {
                    *operand = match source {
                        Source::Local(local) => locals[*local as usize][element],
                        Source::View(view) => self.view(*view)[element],
                        Source::Scalar(view) => self.view(*view)[0],
                        Source::Const(bits) => *bits,
                    };
                }
                map_element(instr.code, instr.dtype, operands)
            };
            let result: Vec<u32> = (0..width as usize).map(element).collect();
            locals.push(result);
        }
        for (instr, result) in code.iter().zip(&locals) {
            if let Some(store) = instr.store {
                self.set(store, result);
            }
        }
    }
}
