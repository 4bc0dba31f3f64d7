//! Units: what of a kernel is one dispatch, or three of them on matrix units.
//!
//! A unit is a stage, or a line of elementwise instructions together with the products before it whose
//! results it takes column by column: those are computed where the line reads them, in the registers of one
//! thread, and reach memory only if something else wants them too.

use crate::module::MOST_GROUPS;
use autobatch_ir::plan::{Kernel, ListSource, ProdInit, Source, Stage, View};

/// Readers of a register up to which its products are looked at.
const MOST_READERS: usize = 256;

/// What is one dispatch, unless matrix units multiply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A stage of its own.
    Stage(usize),
    /// Products, and the line that is their tail.
    Fused {
        /// The products, in order.
        products: Vec<Fused>,
        /// The line.
        tail: usize,
    },
    /// Products on matrix units, which are three dispatches.
    OnMatrix {
        /// The products, in order.
        products: Vec<Fused>,
        /// The line that takes their sums, if one does.
        tail: Option<usize>,
    },
}

impl Unit {
    /// Its products; one that no line takes is its own tail.
    pub(super) fn products(&self, kernel: &Kernel) -> Vec<Fused> {
        match self {
            Self::Fused { products, .. } | Self::OnMatrix { products, .. } => products.clone(),
            Self::Stage(stage) => Fused::alone(kernel, *stage).into_iter().collect(),
        }
    }

    /// The line that takes its products' sums.
    pub(super) fn tail(&self) -> Option<usize> {
        match self {
            Self::Stage(_) => None,
            Self::Fused { tail, .. } => Some(*tail),
            Self::OnMatrix { tail, .. } => *tail,
        }
    }

    /// How many dispatches it is, one after another.
    pub(super) const fn depth(&self) -> u32 {
        match self {
            Self::Stage(_) | Self::Fused { .. } => 1,
            Self::OnMatrix { .. } => 3,
        }
    }

    /// Its stages, in order.
    pub(super) fn stages<'k>(&self, kernel: &'k Kernel) -> Vec<&'k Stage> {
        let numbers: Vec<usize> = match self {
            Self::Stage(stage) => vec![*stage],
            Self::Fused { products, .. } | Self::OnMatrix { products, .. } => {
                products.iter().map(|product| product.stage).chain(self.tail()).collect()
            }
        };
        numbers.into_iter().map(|number| &kernel.stages[number]).collect()
    }
}

/// A product whose sums a tail takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fused {
    /// The stage.
    pub(super) stage: usize,
    /// The groups of columns that the tail reads, each as wide as the tail.
    pub(super) groups: Vec<View>,
    /// Whether others read the result, so that it must be in memory as well.
    pub(super) kept: bool,
}

impl Fused {
    /// A product that no line takes: its tail keeps the sum. Nothing for other stages.
    pub(super) fn alone(kernel: &Kernel, stage: usize) -> Option<Self> {
        match &kernel.stages[stage] {
            Stage::Prod { dst, .. } => Some(Self { stage, groups: vec![*dst], kept: true }),
            _ => None,
        }
    }
}

/// The units of a kernel, in an order in which they may be executed.
pub(super) fn units(kernel: &Kernel) -> Vec<Unit> {
    let mut tails: Vec<Vec<Fused>> = vec![Vec::new(); kernel.stages.len()];
    let mut alone = vec![true; kernel.stages.len()];
    let readers = readers(kernel);
    for (number, alone) in alone.iter_mut().enumerate() {
        let Some((tail, fused)) = fused(kernel, number, &readers) else { continue };
        let taken: usize = tails[tail].iter().map(|other| other.groups.len()).sum();
        let alike = |other: &Fused| rows(kernel, other.stage) == rows(kernel, number);
        if taken + fused.groups.len() <= MOST_GROUPS && tails[tail].iter().all(alike) {
            *alone = false;
            tails[tail].push(fused);
        }
    }
    let mut units = Vec::with_capacity(kernel.stages.len());
    for (number, products) in tails.into_iter().enumerate().filter(|&(number, _)| alone[number]) {
        units.push(match products.is_empty() {
            true => Unit::Stage(number),
            false => Unit::Fused { products, tail: number },
        });
    }
    units
}

/// Rows of a product's value.
fn rows(kernel: &Kernel, stage: usize) -> u32 {
    match kernel.stages[stage] {
        Stage::Prod { rows, .. } => rows,
        _ => 1,
    }
}

/// The stage that results count as: it is behind all others.
const RESULT: usize = usize::MAX;

/// A view that a stage or a result reads.
struct Read {
    stage: usize,
    view: View,
    /// Whether a line takes one element of it for all of its own.
    is_scalar: bool,
}

/// Per register what reads any of it, in order.
fn readers(kernel: &Kernel) -> Vec<Vec<Read>> {
    let mut of: Vec<Vec<Read>> = kernel.regs.iter().map(|_| Vec::new()).collect();
    let mut note = |stage, view: View, is_scalar| of[view.reg as usize].push(Read { stage, view, is_scalar });
    for (number, stage) in kernel.stages.iter().enumerate() {
        if let Stage::Map { code, .. } = stage {
            for source in code.iter().flat_map(|instr| &instr.sources) {
                match *source {
                    Source::View(view) => note(number, view, false),
                    Source::Scalar(view) => note(number, view, true),
                    Source::Local(_) | Source::Const(_) => {}
                }
            }
        } else {
            reads(stage).into_iter().for_each(|view| note(number, view, false));
        }
    }
    kernel.results.iter().for_each(|&view| note(RESULT, view, false));
    of
}

/// The line that a product may be fused into, and how. A product of a register that is read very often stays alone.
fn fused(kernel: &Kernel, number: usize, readers: &[Vec<Read>]) -> Option<(usize, Fused)> {
    let Stage::Prod { dst, rows, .. } = &kernel.stages[number] else { return None };
    let readers = readers[dst.reg as usize].as_slice();
    if readers.len() > MOST_READERS {
        return None;
    }
    let later = readers.iter().filter(|read| read.stage > number && overlap(read.view, *dst));
    let tail = later.clone().next()?.stage;
    let Stage::Map { width, .. } = kernel.stages.get(tail)? else { return None };
    let mut groups: Vec<View> = Vec::new();
    for &Read { view, is_scalar, .. } in later.clone().filter(|read| read.stage == tail) {
        // A matrix is taken row by row, as it is; of a vector any columns.
        if is_scalar || !inside(view, *dst) || (*rows > 1 && view != *dst) {
            return None;
        }
        if !groups.contains(&view) {
            groups.push(view);
        }
        if groups.len() > MOST_GROUPS {
            return None;
        }
    }
    let others: Vec<View> = later.filter(|read| read.stage > tail).map(|read| read.view).collect();
    let kept = !others.is_empty();
    if kept {
        // What others want must be among the groups, and no element twice.
        let apart = |(at, &a): (usize, &View)| groups[at + 1..].iter().all(|&b| !overlap(a, b));
        let there = |element: u32| {
            groups.iter().any(|group| (group.start..group.start + group.width).contains(&element))
        };
        let within = |view: &View| {
            let from = view.start.max(dst.start);
            let to = (view.start + view.width).min(dst.start + dst.width);
            (from..to).all(there)
        };
        if !groups.iter().enumerate().all(apart) || !others.iter().all(within) {
            return None;
        }
    }
    let wide = groups.iter().all(|group| group.width == *width);
    wide.then_some((tail, Fused { stage: number, groups, kept }))
}

fn overlap(a: View, b: View) -> bool {
    a.reg == b.reg && a.start < b.start + b.width && b.start < a.start + a.width
}

fn inside(inner: View, outer: View) -> bool {
    inner.start >= outer.start && inner.start + inner.width <= outer.start + outer.width
}

/// The views that a stage reads; list ports are operands and no views.
pub(super) fn reads(stage: &Stage) -> Vec<View> {
    match stage {
        Stage::Prod { init, parts, .. } => {
            let init = match init {
                ProdInit::View(view) => Some(*view),
                ProdInit::Zero | ProdInit::Bias(_) => None,
            };
            init.into_iter().chain(parts.iter().map(|part| part.source)).collect()
        }
        Stage::Map { code, .. } => {
            let view = |source: &Source| match source {
                Source::View(view) | Source::Scalar(view) => Some(*view),
                Source::Local(_) | Source::Const(_) => None,
            };
            code.iter().flat_map(|instr| &instr.sources).filter_map(view).collect()
        }
        Stage::Row { sources, .. } => sources.iter().map(|source| source.0).collect(),
        Stage::Seg { query, lists, .. } => {
            let views = |list: &ListSource| match list {
                ListSource::Port(_) => Vec::new(),
                ListSource::Views(views) => views.clone(),
            };
            query.iter().copied().chain(lists.iter().flat_map(views)).collect()
        }
        Stage::SegGrad { query, dy, .. } => query.iter().copied().chain([*dy]).collect(),
        Stage::Lookup { index, .. } => vec![*index],
    }
}

/// The views that a stage writes; edges are read by results only.
pub(super) fn writes(stage: &Stage) -> Vec<View> {
    match stage {
        Stage::Prod { dst, .. } | Stage::Seg { dst, .. } | Stage::Lookup { dst, .. } => vec![*dst],
        Stage::Map { code, .. } => code.iter().filter_map(|instr| instr.store).collect(),
        Stage::Row { dsts, .. } => dsts.clone(),
        Stage::SegGrad { query_dst, .. } => query_dst.iter().copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::plan::Plan;
    use std::time::{Duration, Instant};

    /// The units of the first kernel of a text.
    fn of(kernel: &str) -> Vec<Unit> {
        let text = format!(
            "autobatch plan 2 module \"m\" structure 0x00000000000000000000000000000001 mode infer
             bind words 0 floats 0
             {kernel}
             certificate batches 0 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 0 bytes"
        );
        units(&Plan::from_text(&text).expect("parses").kernels[0])
    }

    fn columns(unit: &Unit) -> Vec<(Vec<u32>, bool)> {
        let Unit::Fused { products, .. } = unit else { return Vec::new() };
        let starts = |fused: &Fused| fused.groups.iter().map(|group| group.start).collect();
        products.iter().map(|fused| (starts(fused), fused.kept)).collect()
    }

    #[test]
    fn gates_of_one_product_are_groups_of_its_tail() {
        let units = of("kernel k0 @cell (%0: f32[2]) [@0: f32[2,6]] {
            temp %1: f32[6], %2: f32[2]
            prod %1 = 0 + %0 . @0[0..2]
            map 2 {
              t0 = sigmoid %1[4..6]
              t1 = mul t0, %1[0..2] -> %2
            }
            return %2
        }");
        assert_eq!(units.len(), 1);
        assert_eq!(columns(&units[0]), [(vec![4, 0], false)]);
    }

    #[test]
    fn a_product_that_others_read_is_kept() {
        let units = of("kernel k0 @cell (%0: f32[2]) [@0: f32[2,2]] {
            temp %1: f32[2], %2: f32[2]
            prod %1 = 0 + %0 . @0[0..2]
            map 2 {
              t0 = tanh %1 -> %2
            }
            return %2, %1
        }");
        assert_eq!(units.len(), 1);
        assert_eq!(columns(&units[0]), [(vec![0], true)]);
    }

    #[test]
    fn two_products_meet_in_one_tail_and_what_does_not_fit_stays_alone() {
        let units = of("kernel k0 @cell (%0: f32[2], %1: f32[2]) [@0: f32[2,2]] {
            temp %2: f32[2], %3: f32[2], %4: f32[2], %5: f32[2], %6: f32
            prod %2 = 0 + %0 . @0[0..2]
            prod %3 = 0 + %1 . @0[0..2]
            map 2 {
              t0 = add %2, %3 -> %4
            }
            prod %5 = 0 + %4 . @0[0..2]
            row %6 = reduce{fold=sum over=all} %5
            return %6
        }");
        assert_eq!(units.len(), 3, "{units:?}");
        assert_eq!(columns(&units[0]), [(vec![0], false), (vec![0], false)]);
        assert_eq!(units[1..], [Unit::Stage(3), Unit::Stage(4)]);
    }

    #[test]
    fn columns_that_the_tail_does_not_read_but_others_do_prevent_it() {
        let units = of("kernel k0 @cell (%0: f32[2]) [@0: f32[2,4]] {
            temp %1: f32[4], %2: f32[2]
            prod %1 = 0 + %0 . @0[0..2]
            map 2 {
              t0 = tanh %1[0..2] -> %2
            }
            return %2, %1
        }");
        assert_eq!(units, [Unit::Stage(0), Unit::Stage(1)]);
    }

    #[test]
    fn lines_of_very_many_products_are_found_without_looking_at_all_stages_for_each() {
        let many = 20_000;
        let temps = (1..=2 * many).map(|reg| format!("%{reg}: f32[2]"));
        let products = (1..=many).map(|reg| format!("prod %{reg} = 0 + %0 . @0[0..2]\n"));
        let lines = (1..=many).map(|reg| format!("map 2 {{\n t0 = tanh %{reg} -> %{}\n }}\n", many + reg));
        let start = Instant::now();
        let units = of(&format!(
            "kernel k0 @cell (%0: f32[2]) [@0: f32[2,2]] {{
            temp {}
            {}{}return %{}
            }}",
            temps.collect::<Vec<_>>().join(", "),
            products.collect::<String>(),
            lines.collect::<String>(),
            2 * many
        ));
        assert!(units.len() == many && units.iter().all(|unit| !columns(unit).is_empty()));
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }
}
