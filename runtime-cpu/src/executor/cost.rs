//! Estimates of the time of stages, so that threads share waves in equal parts: in floating-point operations of a product,
//! of which a core executes about 100 in a nanosecond.

use autobatch_ir::graph::{Op, Unary};
use autobatch_ir::plan::{Code, Kernel, ListSource, RegId, Stage};

/// An elementwise instruction, per element.
const SIMPLE: usize = 8;
/// An exponential or the like, per element.
const EXPONENTIAL: usize = 50;
/// A row op besides its elements, per row: a call, and chains that wait for their results.
const CALL: usize = 1500;

/// The cost of a kernel.
#[derive(Debug)]
pub(super) struct Cost {
    /// Per row.
    pub(super) row: usize,
    /// List ports, and per item of their lists.
    pub(super) items: Vec<(RegId, usize)>,
}

impl Cost {
    pub(super) fn of(kernel: &Kernel) -> Self {
        let mut cost = Self { row: 1, items: Vec::new() };
        kernel.stages.iter().for_each(|stage| cost.add(kernel, stage));
        cost
    }

    fn add(&mut self, kernel: &Kernel, stage: &Stage) {
        self.row += match stage {
            Stage::Prod { dst, rows, parts, .. } => {
                let k: usize = parts.iter().map(|part| part.source.width as usize).sum();
                2 * k / *rows as usize * dst.width as usize
            }
            Stage::Map { width, code } => {
                let of_all: usize = code.iter().map(|instr| of_code(instr.code)).sum();
                of_all * *width as usize
            }
            Stage::LabelLoss { param, slope, .. } => {
                let elements = kernel.params[param.index()].shape.elements();
                if slope.is_some() { 4 * elements } else { 2 * elements }
            }
            Stage::Row { op: Op::Matmul, sources, dsts } => {
                let inner = sources.first().map_or(0, |source| source.1.shape.width());
                2 * inner * dsts.first().map_or(0, |dst| dst.width as usize)
            }
            Stage::Row { op, sources, .. } => {
                let each = match op {
                    Op::Softmax
                    | Op::LogSoftmax
                    | Op::LogSumExp
                    | Op::PickNegLogSoftmax
                    | Op::CrossEntropy => 2 * EXPONENTIAL,
                    _ => 20,
                };
                CALL + sources.iter().map(|(view, _)| each * view.width as usize).sum::<usize>()
            }
            Stage::Seg { query, lists, dst, .. } => {
                let width = query.map_or(0, |query| query.width) + dst.width;
                let ports = lists.iter().filter_map(|list| match list {
                    ListSource::Port(port) => Some((*port, 2 * width as usize)),
                    ListSource::Views(_) => None,
                });
                self.items.extend(ports.take(1));
                10 * dst.width as usize
            }
            Stage::SegGrad { dy, lists, .. } => 40 * lists.len() * dy.width as usize,
            Stage::AttendGrad { query, keys, dy, .. } => {
                // Scores, slopes and the gradient of the query.
                self.items.push((*keys, 2 * (2 * query.width + dy.width) as usize));
                20 * (query.width + dy.width) as usize
            }
            Stage::AttendPull { key, value, readers, .. } => {
                self.items.push((*readers, 4 * (key.width + value.width) as usize));
                20 * (key.width + value.width) as usize
            }
            Stage::Lookup { dst, .. } | Stage::MeanGrad { dst, .. } => dst.width as usize,
        };
    }
}

fn of_code(code: Code) -> usize {
    match code {
        Code::Unary(Unary::Exp | Unary::Log | Unary::Tanh | Unary::Sigmoid | Unary::Gelu)
        | Code::Unary(Unary::Silu | Unary::Softplus | Unary::Sin | Unary::Cos | Unary::Erf)
        | Code::Elu(_) => EXPONENTIAL,
        _ => SIMPLE,
    }
}
