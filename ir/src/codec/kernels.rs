//! The binary format of kernels: one stream of words for all of them.
//!
//! A view takes three words, a type five. Ops and codes have attributes, so a blob of their own
//! stores them in sequence.

use super::tables::{read_type, type_words};
use super::{Blob, FORMAT, LoadError, Text, Words};
use crate::plan::{
    Code, Instr, Kernel, ListSource, Part, PortRole, ProdInit, Reg, RegKind, ResultRole, Roles, Source,
    Stage, View,
};
use crate::types::{DType, Type};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
pub(super) struct RawKernels<'a> {
    /// The names, concatenated.
    #[serde(borrow)]
    text: Blob<'a>,
    /// The kernels in sequence, then their number.
    words: Blob<'a>,
    /// The ops of stages and the codes of instructions.
    ops: Blob<'a>,
}

/// Encodes kernels.
#[derive(Default)]
pub(super) struct KernelWriter {
    count: u32,
    text: String,
    words: Vec<u32>,
    ops: Vec<u8>,
}

impl KernelWriter {
    pub(super) fn finish(mut self) -> RawKernels<'static> {
        self.words.push(self.count);
        RawKernels {
            text: Blob(self.text.into_bytes().into()),
            words: Blob::words(&self.words),
            ops: Blob(self.ops.into()),
        }
    }

    pub(super) fn push(&mut self, kernel: &Kernel) {
        let Kernel { name, ports, params, regs, stages, results, source, roles } = kernel;
        self.count += 1;
        self.text.push_str(name);
        self.words.extend([name.len() as u32, *ports, u32::from(*source)]);
        self.count(params.len());
        params.iter().for_each(|ty| self.ty(*ty));
        self.count(regs.len());
        for Reg { kind, ty } in regs {
            self.words.extend(match kind {
                RegKind::Port => [0, 0],
                RegKind::Param(param) => [1, *param],
                RegKind::Const(bits) => [2, *bits],
                RegKind::Temp => [3, 0],
                RegKind::Edges => [4, 0],
            });
            self.ty(*ty);
        }
        self.count(stages.len());
        stages.iter().for_each(|stage| self.stage(stage));
        self.views(results);
        self.words.push(u32::from(roles.is_some()));
        if let Some(Roles { ports, results }) = roles {
            self.count(ports.len());
            self.words.extend(ports.iter().flat_map(|&role| port_words(role)));
            self.count(results.len());
            self.words.extend(results.iter().flat_map(|&role| result_words(role)));
        }
    }

    fn count(&mut self, count: usize) {
        self.words.push(count as u32);
    }

    fn ty(&mut self, ty: Type) {
        self.words.extend(type_words(ty));
    }

    fn view(&mut self, View { reg, start, width }: View) {
        self.words.extend([reg, start, width]);
    }

    fn views(&mut self, views: &[View]) {
        self.count(views.len());
        views.iter().for_each(|view| self.view(*view));
    }

    fn op(&mut self, op: impl Serialize) {
        bincode::serde::encode_into_std_write(op, &mut self.ops, FORMAT)
            .expect("ops are plain and a vector takes all of them");
    }

    fn stage(&mut self, stage: &Stage) {
        match stage {
            Stage::Prod { dst, rows, init, parts } => {
                self.words.push(0);
                self.view(*dst);
                self.words.push(*rows);
                match init {
                    ProdInit::Zero => self.words.push(0),
                    ProdInit::Bias(param) => self.words.extend([1, *param]),
                    ProdInit::View(view) => {
                        self.words.push(2);
                        self.view(*view);
                    }
                }
                self.count(parts.len());
                for Part { source, param, row, col, transposed } in parts {
                    self.view(*source);
                    self.words.extend([*param, *row, *col, u32::from(*transposed)]);
                }
            }
            Stage::Map { width, code } => {
                self.words.extend([1, *width]);
                self.count(code.len());
                code.iter().for_each(|instr| self.instr(instr));
            }
            Stage::Row { op, sources, dsts } => {
                self.words.push(2);
                self.op(op);
                self.count(sources.len());
                for (view, ty) in sources {
                    self.view(*view);
                    self.ty(*ty);
                }
                self.views(dsts);
            }
            Stage::Seg { op, query, lists, elements, dst } => {
                self.words.push(3);
                self.op(op);
                self.optional(*query);
                self.count(lists.len());
                for list in lists {
                    match list {
                        ListSource::Port(reg) => self.words.extend([0, *reg]),
                        ListSource::Views(views) => {
                            self.words.push(1);
                            self.views(views);
                        }
                    }
                }
                self.count(elements.len());
                elements.iter().for_each(|ty| self.ty(*ty));
                self.view(*dst);
            }
            Stage::SegGrad { op, query, lists, elements, dy, query_dst, dsts } => {
                self.words.push(5);
                self.op(op);
                self.optional(*query);
                self.count(lists.len());
                self.words.extend(lists);
                self.count(elements.len());
                elements.iter().for_each(|ty| self.ty(*ty));
                self.view(*dy);
                self.optional(*query_dst);
                self.count(dsts.len());
                self.words.extend(dsts.iter().flat_map(|dst| [u32::from(dst.is_some()), dst.unwrap_or(0)]));
            }
            Stage::Lookup { param, index, dst } => {
                self.words.extend([4, *param]);
                self.view(*index);
                self.view(*dst);
            }
        }
    }

    fn optional(&mut self, view: Option<View>) {
        self.words.push(u32::from(view.is_some()));
        view.into_iter().for_each(|view| self.view(view));
    }

    fn instr(&mut self, Instr { code, dtype, sources, store }: &Instr) {
        self.op(code);
        self.words.push(*dtype as u32);
        self.count(sources.len());
        for source in sources {
            match *source {
                Source::Local(local) => self.words.extend([0, local]),
                Source::View(view) => {
                    self.words.push(1);
                    self.view(view);
                }
                Source::Scalar(view) => {
                    self.words.push(2);
                    self.view(view);
                }
                Source::Const(bits) => self.words.extend([3, bits]),
            }
        }
        self.optional(*store);
    }
}

impl RawKernels<'_> {
    pub(super) fn read(&self) -> Result<Vec<Arc<Kernel>>, LoadError> {
        let words = self.words.reader("kernels")?;
        let mut reader = KernelReader { text: Text::new(&self.text)?, words, ops: &self.ops.0 };
        let mut kernels = Vec::new();
        while reader.words.len() > 1 {
            kernels.push(Arc::new(reader.kernel()?));
        }
        if reader.words.next()? as usize != kernels.len() || !reader.ops.is_empty() {
            return Err(LoadError::malformed("the number of kernels differs from their count"));
        }
        reader.text.end()?;
        Ok(kernels)
    }
}

fn port_words(role: PortRole) -> [u32; 2] {
    match role {
        PortRole::Operand(number) => [0, number],
        PortRole::Result(number) => [1, number],
        PortRole::Saved(number) => [2, number],
        PortRole::Gradient(number) => [3, number],
        PortRole::Contributions => [4, 0],
    }
}

fn result_words(role: ResultRole) -> [u32; 3] {
    match role {
        ResultRole::Contribution { operand, number } => [0, operand, number],
        ResultRole::Part => [1, 0, 0],
        ResultRole::Gradient => [2, 0, 0],
        ResultRole::Seed => [3, 0, 0],
    }
}

struct KernelReader<'a> {
    text: Text<'a>,
    words: Words<'a>,
    ops: &'a [u8],
}

impl KernelReader<'_> {
    fn kernel(&mut self) -> Result<Kernel, LoadError> {
        let [name, ports, source] = self.words.array()?;
        let name = self.text.take(name)?;
        let source = self.flag(source)?;
        let params = self.many(5, Self::ty)?;
        let regs = self.many(7, Self::reg)?;
        // The shortest stages, a lookup and an empty map, have at least three words.
        let stages = self.many(3, Self::stage)?;
        let results = self.views()?;
        let declares = self.words.next()?;
        let roles = match self.flag(declares)? {
            true => Some(Roles {
                ports: self.many(2, Self::port_role)?,
                results: self.many(3, Self::result_role)?,
            }),
            false => None,
        };
        Ok(Kernel { name, ports, params, regs, stages, results, source, roles })
    }

    fn port_role(&mut self) -> Result<PortRole, LoadError> {
        let [kind, number] = self.words.array()?;
        match (kind, number) {
            (0, _) => Ok(PortRole::Operand(number)),
            (1, _) => Ok(PortRole::Result(number)),
            (2, _) => Ok(PortRole::Saved(number)),
            (3, _) => Ok(PortRole::Gradient(number)),
            (4, 0) => Ok(PortRole::Contributions),
            _ => Err(self.words.refused(kind)),
        }
    }

    fn result_role(&mut self) -> Result<ResultRole, LoadError> {
        let [kind, operand, number] = self.words.array()?;
        match (kind, operand, number) {
            (0, ..) => Ok(ResultRole::Contribution { operand, number }),
            (1, 0, 0) => Ok(ResultRole::Part),
            (2, 0, 0) => Ok(ResultRole::Gradient),
            (3, 0, 0) => Ok(ResultRole::Seed),
            _ => Err(self.words.refused(kind)),
        }
    }

    /// Reads a count and then the items, each at least `size` words. Compares the count with the
    /// remaining words before it allocates memory.
    fn many<T>(
        &mut self,
        size: usize,
        read: impl Fn(&mut Self) -> Result<T, LoadError>,
    ) -> Result<Vec<T>, LoadError> {
        let count = self.words.next()? as usize;
        if count > self.words.len() / size {
            return Err(self.words.ended());
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(read(self)?);
        }
        Ok(items)
    }

    fn flag(&self, word: u32) -> Result<bool, LoadError> {
        match word {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.words.refused(word)),
        }
    }

    fn ty(&mut self) -> Result<Type, LoadError> {
        read_type(self.words.array()?)
    }

    fn reg(&mut self) -> Result<Reg, LoadError> {
        let kind = match self.words.array()? {
            [0, 0] => RegKind::Port,
            [1, param] => RegKind::Param(param),
            [2, bits] => RegKind::Const(bits),
            [3, 0] => RegKind::Temp,
            [4, 0] => RegKind::Edges,
            [kind, _] => return Err(self.words.refused(kind)),
        };
        Ok(Reg { kind, ty: self.ty()? })
    }

    fn view(&mut self) -> Result<View, LoadError> {
        let [reg, start, width] = self.words.array()?;
        Ok(View { reg, start, width })
    }

    fn views(&mut self) -> Result<Vec<View>, LoadError> {
        self.many(3, Self::view)
    }

    fn optional(&mut self) -> Result<Option<View>, LoadError> {
        let present = self.words.next()?;
        if self.flag(present)? { self.view().map(Some) } else { Ok(None) }
    }

    fn op<T: DeserializeOwned>(&mut self) -> Result<T, LoadError> {
        // An op takes a few dozen bytes; a forged one must not take more.
        let format = FORMAT.with_limit::<256>();
        let (op, used) = bincode::serde::decode_from_slice(self.ops, format)
            .map_err(|error| LoadError::malformed(format!("op: {error}")))?;
        self.ops = &self.ops[used..];
        Ok(op)
    }

    fn stage(&mut self) -> Result<Stage, LoadError> {
        Ok(match self.words.next()? {
            0 => {
                let (dst, rows) = (self.view()?, self.words.next()?);
                let init = match self.words.next()? {
                    0 => ProdInit::Zero,
                    1 => ProdInit::Bias(self.words.next()?),
                    2 => ProdInit::View(self.view()?),
                    word => return Err(self.words.refused(word)),
                };
                Stage::Prod { dst, rows, init, parts: self.many(7, Self::part)? }
            }
            1 => Stage::Map { width: self.words.next()?, code: self.many(3, Self::instr)? },
            2 => {
                let typed = |reader: &mut Self| Ok((reader.view()?, reader.ty()?));
                Stage::Row { op: self.op()?, sources: self.many(8, typed)?, dsts: self.views()? }
            }
            3 => Stage::Seg {
                op: self.op()?,
                query: self.optional()?,
                lists: self.many(2, Self::list)?,
                elements: self.many(5, Self::ty)?,
                dst: self.view()?,
            },
            4 => Stage::Lookup { param: self.words.next()?, index: self.view()?, dst: self.view()? },
            5 => Stage::SegGrad {
                op: self.op()?,
                query: self.optional()?,
                lists: self.many(1, |reader| reader.words.next())?,
                elements: self.many(5, Self::ty)?,
                dy: self.view()?,
                query_dst: self.optional()?,
                dsts: self.many(2, Self::edges)?,
            },
            word => return Err(self.words.refused(word)),
        })
    }

    fn edges(&mut self) -> Result<Option<u32>, LoadError> {
        match self.words.array()? {
            [0, 0] => Ok(None),
            [1, reg] => Ok(Some(reg)),
            [word, _] => Err(self.words.refused(word)),
        }
    }

    fn part(&mut self) -> Result<Part, LoadError> {
        let source = self.view()?;
        let [param, row, col, transposed] = self.words.array()?;
        Ok(Part { source, param, row, col, transposed: self.flag(transposed)? })
    }

    fn list(&mut self) -> Result<ListSource, LoadError> {
        match self.words.next()? {
            0 => Ok(ListSource::Port(self.words.next()?)),
            1 => Ok(ListSource::Views(self.views()?)),
            word => Err(self.words.refused(word)),
        }
    }

    fn instr(&mut self) -> Result<Instr, LoadError> {
        let code: Code = self.op()?;
        let dtype = self.words.next()?;
        let Some(&dtype) = DType::ALL.get(dtype as usize) else { return Err(self.words.refused(dtype)) };
        Ok(Instr { code, dtype, sources: self.many(2, Self::source)?, store: self.optional()? })
    }

    fn source(&mut self) -> Result<Source, LoadError> {
        Ok(match self.words.next()? {
            0 => Source::Local(self.words.next()?),
            1 => Source::View(self.view()?),
            2 => Source::Scalar(self.view()?),
            3 => Source::Const(self.words.next()?),
            word => return Err(self.words.refused(word)),
        })
    }
}
