//! The binary format of kernels: one stream of words for all of them.

use super::record::{Coded, Reader, Writer, coded};
use super::{Blob, LoadError, Text};
use crate::plan::{
    Instr, Kernel, ListSource, PortRole, ProdInit, ProductPart, Reg, RegId, RegKind, ResultRole, Roles,
    Source, Stage, View,
};
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

impl RawKernels<'_> {
    pub(super) fn of(kernels: &[Arc<Kernel>]) -> Self {
        let mut text = String::new();
        let mut to = Writer { text: &mut text, words: Vec::new(), ops: Vec::new() };
        kernels.iter().for_each(|kernel| kernel.write(&mut to));
        to.words.push(kernels.len() as u32);
        let (words, ops) = (Blob::words(&to.words), Blob::bytes(to.ops));
        Self { text: Blob::bytes(text.into_bytes()), words, ops }
    }

    pub(super) fn read(&self) -> Result<Vec<Arc<Kernel>>, LoadError> {
        let (mut text, words) = (Text::new(&self.text)?, self.words.reader("kernels")?);
        let mut from = Reader { text: &mut text, words, ops: &self.ops.0 };
        let mut kernels = Vec::new();
        while from.words.len() > 1 {
            kernels.push(Arc::new(Kernel::read(&mut from)?));
        }
        if from.words.next()? as usize != kernels.len() || !from.ops.is_empty() {
            return Err(LoadError::malformed("the number of kernels differs from their count"));
        }
        text.end()?;
        Ok(kernels)
    }
}

coded! { struct Kernel, 7 words: name, ports, source, params, regs, stages, results, roles }
coded! { enum Option<Roles>, 1 words: 0 = None; 1 = Some(roles); }
coded! { struct Roles, 2 words: ports, results }
coded! { enum PortRole, 2 words:
    0 = Operand(number); 1 = Result(number); 2 = Saved(number); 3 = Gradient(number); 4 = Contributions;
    5 = Arriving; 6 = Item(number); 7 = Readers(number);
}
coded! { enum ResultRole, 3 words:
    0 = Contribution { operand, number }; 1 = Part; 2 = Gradient; 3 = Seed;
}
coded! { struct Reg, 7 words: kind, ty }
coded! { enum RegKind, 2 words: 0 = Port; 1 = Param(param); 2 = Const(bits); 3 = Temp; 4 = Edges; }
coded! { struct View, 3 words: reg, start, width }
coded! { enum Option<View>, 1 words: 0 = None; 1 = Some(view); }

// The shortest stages, a lookup and an empty map, have at least three words. Number 5 was a gradient of a fold without a query;
// files with it are refused.
coded! { enum Stage, 3 words:
    0 = Prod { dst, rows, init, parts };
    1 = Map { width, code };
    2 = Row { op, sources, dsts };
    3 = Seg { op, query, lists, elements, dst };
    4 = Lookup { param, index, dst };
    6 = AttendGrad { op, query, keys, values, dy, dst, reader };
    7 = AttendPull { op, key, value, readers, key_dst, value_dst };
    8 = LabelLoss { param, x, label, dst, log_sum, slope };
    9 = MeanGrad { list, dy, dst };
    10 = SegGrad { op, query, lists, elements, dy, dsts };
}
coded! { enum ProdInit, 1 words: 0 = Zero; 1 = Bias(param); 2 = View(view); }
coded! { struct ProductPart, 7 words: source, param, row, col, transposed }
coded! { struct Instr, 3 words: code, dtype, sources, store }
coded! { enum Source, 2 words: 0 = Local(local); 1 = View(view); 2 = Scalar(view); 3 = Const(bits); }
coded! { enum ListSource, 2 words: 0 = Port(reg); 1 = Views(views); }
coded! { enum Option<RegId>, 2 words: 0 = None; 1 = Some(reg); }
