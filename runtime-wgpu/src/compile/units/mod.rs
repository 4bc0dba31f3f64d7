//! Units: the parts of a kernel that are one dispatch each.
//!
//! A unit is a stage, or a line of elementwise instructions together with the products that it reads column by column.
//! The line is then the *epilogue* of the products: it takes their sums from the registers of a thread. The sums reach
//! memory only if another reader needs them.

use crate::module::MAX_GROUPS;
use autobatch_ir::plan::{Kernel, Source, Stage, View};

/// Products of a register with more readers than this are not fused, which bounds the search.
const MAX_READERS: usize = 256;

/// A part of a kernel that is one dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Stage(usize),
    /// Products with an epilogue.
    Fused {
        products: Vec<Fused>,
        epilogue: usize,
    },
}

impl Unit {
    /// Its products. A single product stores its sums itself.
    pub(super) fn products(&self, kernel: &Kernel) -> Vec<Fused> {
        match self {
            Self::Fused { products, .. } => products.clone(),
            Self::Stage(stage) => match &kernel.stages[*stage] {
                Stage::Prod { dst, .. } => vec![Fused { stage: *stage, groups: vec![*dst], stored: true }],
                _ => Vec::new(),
            },
        }
    }

    pub(super) fn epilogue(&self) -> Option<usize> {
        match self {
            Self::Stage(_) => None,
            Self::Fused { epilogue, .. } => Some(*epilogue),
        }
    }

    pub(super) fn stages<'k>(&self, kernel: &'k Kernel) -> Vec<&'k Stage> {
        let numbers: Vec<usize> = match self {
            Self::Stage(stage) => vec![*stage],
            Self::Fused { products, epilogue } => {
                products.iter().map(|product| product.stage).chain([*epilogue]).collect()
            }
        };
        numbers.into_iter().map(|number| &kernel.stages[number]).collect()
    }
}

/// A product whose sums an epilogue reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fused {
    pub(super) stage: usize,
    /// The groups of columns that the epilogue reads, each as wide as the epilogue.
    pub(super) groups: Vec<View>,
    /// True if the sums are stored in memory as well, for other readers.
    pub(super) stored: bool,
}

/// The units of a kernel, in an order in which they can be executed.
pub(super) fn units(kernel: &Kernel) -> Vec<Unit> {
    let mut epilogues: Vec<Vec<Fused>> = vec![Vec::new(); kernel.stages.len()];
    let mut alone = vec![true; kernel.stages.len()];
    let readers = readers(kernel);
    for (number, alone) in alone.iter_mut().enumerate() {
        let Some((epilogue, fused)) = fused(kernel, number, &readers) else { continue };
        let products = &mut epilogues[epilogue];
        let groups: usize = products.iter().map(|other| other.groups.len()).sum();
        let same_rows = |other: &Fused| rows(kernel, other.stage) == rows(kernel, number);
        if groups + fused.groups.len() <= MAX_GROUPS && products.iter().all(same_rows) {
            *alone = false;
            products.push(fused);
        }
    }
    let mut units = Vec::with_capacity(kernel.stages.len());
    for (number, products) in epilogues.into_iter().enumerate().filter(|&(number, _)| alone[number]) {
        units.push(match products.is_empty() {
            true => Unit::Stage(number),
            false => Unit::Fused { products, epilogue: number },
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

/// The stage number that results get: they follow all stages.
const RESULT: usize = usize::MAX;

/// A view that a stage or a result reads.
struct Read {
    stage: usize,
    view: View,
    /// True if a line reads one element of it for all of its elements.
    is_scalar: bool,
}

/// For each register its readers, in order.
fn readers(kernel: &Kernel) -> Vec<Vec<Read>> {
    let mut of: Vec<Vec<Read>> = kernel.regs.iter().map(|_| Vec::new()).collect();
    let mut note = |stage, view: View, is_scalar| of[view.reg.index()].push(Read { stage, view, is_scalar });
    for (number, stage) in kernel.stages.iter().enumerate() {
        let Stage::Map { code, .. } = stage else {
            stage.reads().into_iter().for_each(|view| note(number, view, false));
            continue;
        };
        for source in code.iter().flat_map(|instr| &instr.sources) {
            match *source {
                Source::View(view) => note(number, view, false),
                Source::Scalar(view) => note(number, view, true),
                Source::Local(_) | Source::Const(_) => {}
            }
        }
    }
    kernel.results.iter().for_each(|&view| note(RESULT, view, false));
    of
}

/// The line that can be the epilogue of a product, and the fused product.
fn fused(kernel: &Kernel, number: usize, readers: &[Vec<Read>]) -> Option<(usize, Fused)> {
    let Stage::Prod { dst, rows, .. } = &kernel.stages[number] else { return None };
    let readers = readers[dst.reg.index()].as_slice();
    if readers.len() > MAX_READERS {
        return None;
    }
    let later = readers.iter().filter(|read| read.stage > number && overlap(read.view, *dst));
    let epilogue = later.clone().next()?.stage;
    let Stage::Map { width, .. } = kernel.stages.get(epilogue)? else { return None };
    let mut groups: Vec<View> = Vec::new();
    for &Read { view, is_scalar, .. } in later.clone().filter(|read| read.stage == epilogue) {
        // The line must read a matrix whole, and may read any columns of a vector.
        if is_scalar || !inside(view, *dst) || (*rows > 1 && view != *dst) {
            return None;
        }
        if !groups.contains(&view) {
            groups.push(view);
        }
        if groups.len() > MAX_GROUPS {
            return None;
        }
    }
    let others: Vec<View> = later.filter(|read| read.stage > epilogue).map(|read| read.view).collect();
    let stored = !others.is_empty();
    if stored && !provides(&groups, &others, *dst) {
        return None;
    }
    let wide = groups.iter().all(|group| group.width == *width);
    wide.then_some((epilogue, Fused { stage: number, groups, stored }))
}

/// Returns whether groups are disjoint and contain every element of a product that other readers read.
fn provides(groups: &[View], others: &[View], dst: View) -> bool {
    let disjoint = |(at, &a): (usize, &View)| groups[at + 1..].iter().all(|&b| !overlap(a, b));
    let has =
        |element: u32| groups.iter().any(|group| (group.start..group.start + group.width).contains(&element));
    let has_all = |view: &View| {
        let from = view.start.max(dst.start);
        let to = (view.start + view.width).min(dst.start + dst.width);
        (from..to).all(has)
    };
    groups.iter().enumerate().all(disjoint) && others.iter().all(has_all)
}

fn overlap(a: View, b: View) -> bool {
    a.reg == b.reg && a.start < b.start + b.width && b.start < a.start + a.width
}

fn inside(inner: View, outer: View) -> bool {
    inner.start >= outer.start && inner.start + inner.width <= outer.start + outer.width
}

#[cfg(test)]
mod tests;
