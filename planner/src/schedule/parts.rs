//! Splits a problem into parts that can be scheduled one after another without extra batches.
//!
//! **Parts.** Take the graph over *types* with an edge s -> t if some t-job has an s-job as operand; an alone job counts as a type
//! of its own. A *part* is a strongly connected component of this graph. No job of a part depends on a later part in topological
//! order, so the jobs of part 1, then those of part 2, and so on, are a valid order. An order of the whole problem, restricted to
//! one part, is a valid order of that part. So the fewest batches of the problem are the sum of the fewest batches of its parts,
//! and separate searches lose nothing.
//!
//! **Simple parts** have one type (or one alone job). Paths between two jobs of the type stay inside the part, so direct operands
//! determine the *level* of a job: the number of same-type jobs above it. Batch = level is optimal and meets the path-sum bound.
//! Trees and chains with one recurrent cell have simple parts only and need no search.
//! **Hard parts** have several mutually dependent types and go to a search as a [`Part`](super::part::Part).
//!
//! **Needs** a checked [`Problem`]. **Ensures** parts in topological order, ties by type number. **Cost**: one scan of the
//! operands plus the size of the type graph, which is a bit matrix up to [`MAX_DENSE_TYPES`] types and a counting-sorted edge
//! list above.

use super::Problem;
use super::operand_lists::{JobOperand, ListMaxima};
use crate::ids::{ComponentId, Id, KindId, TypeIndex};
use crate::lists::group;
use bytemuck::TransparentWrapper;

/// Largest number of types (alone jobs included) for a bit matrix.
const MAX_DENSE_TYPES: usize = 1024;

/// Marks an unset number.
pub(super) const NONE: u32 = u32::MAX;

/// The parts of one problem, and reused buffers.
#[derive(Default)]
pub(super) struct Parts {
    /// Type of every job, or types + k for the k-th alone job. Empty without alone jobs; see [`Parts::kinds`].
    kind: Vec<KindId>,
    /// Number of same-type jobs on the longest run of direct same-type operands above a job.
    pub(super) level: Vec<u32>,
    /// Highest level + 1 of every kind; 0 for unused kinds.
    pub(super) levels: Vec<u32>,
    found: Components,
    matrix: Vec<u64>,
    before: Edges,
    walk: Walk,
    list_levels: ListMaxima,
}

/// The type graph: the predecessors of every kind.
#[derive(Default)]
struct Edges {
    /// Where the list of every kind begins, and the end of the last.
    start: Vec<u32>,
    items: Vec<KindId>,
}

/// The strongly connected components of the type graph.
#[derive(Default)]
struct Components {
    /// Part of every kind.
    part_of: Vec<u32>,
    /// Kinds grouped by part, ascending inside a part.
    members: Vec<KindId>,
    member_start: Vec<u32>,
}

impl Parts {
    /// Number of parts.
    pub(super) fn len(&self) -> usize {
        self.found.member_start.len() - 1
    }

    /// The parts in topological order.
    pub(super) fn ids(&self) -> impl Iterator<Item = ComponentId> + use<> {
        (0..self.len() as u32).map(ComponentId)
    }

    /// Number of kinds: types and alone jobs.
    pub(super) fn kind_count(&self) -> usize {
        self.found.part_of.len()
    }

    /// The kinds of a part, ascending.
    pub(super) fn members(&self, part: ComponentId) -> &[KindId] {
        let part = part.index();
        let Components { members, member_start, .. } = &self.found;
        &members[member_start[part] as usize..member_start[part + 1] as usize]
    }

    /// The kind of every job: its type, or for an alone job a number of its own from `types` on.
    pub(super) fn kinds<'k>(&'k self, problem: &Problem<'k>) -> &'k [KindId] {
        kinds(&self.kind, problem)
    }

    /// The type that a kind is; `None` for an alone job.
    pub(super) fn type_of_kind(problem: &Problem<'_>, KindId(ty): KindId) -> Option<TypeIndex> {
        (ty.0 < problem.types()).then_some(ty)
    }

    /// Finds the parts of `problem`.
    pub(super) fn analyse(&mut self, problem: &Problem<'_>) {
        let kinds = problem.types() as usize + problem.alone().len();
        self.kind.clear();
        if !problem.alone().is_empty() {
            self.kind.extend_from_slice(KindId::wrap_slice(problem.ty()));
            for (kind, job) in (problem.types()..).zip(problem.alone()) {
                self.kind[job.index()] = KindId(TypeIndex(kind));
            }
        }
        // The level of a job is written before it is read.
        self.level.resize(problem.len(), 0);
        self.levels.clear();
        self.levels.resize(kinds, 0);
        self.list_levels.clear();
        if kinds <= 64 && problem.lists().is_empty() {
            self.scan_one_word(problem);
        } else {
            self.scan(problem);
        }
        if kinds <= MAX_DENSE_TYPES {
            self.unpack_matrix(kinds);
        } else {
            self.sort_edges(problem, kinds);
        }
        self.walk.run(&self.before, &mut self.found);
    }

    /// Computes levels, and the type graph as one word per kind, of a problem without lists.
    fn scan_one_word(&mut self, problem: &Problem<'_>) {
        let Self { kind, level, levels, matrix, .. } = self;
        let kind = kinds(kind, problem);
        let mut rows = [0u64; 64];
        for (job, (&own, operands)) in kind.iter().zip(problem.all_operands()).enumerate() {
            let (mut above, mut deep) = (0u64, 0u32);
            for operand in JobOperand::peel_slice(operands) {
                let other = kind[operand.index()];
                above |= 1 << (other.to_index() & 63);
                deep = deep.max(if other == own { level[operand.index()] + 1 } else { 0 });
            }
            rows[own.to_index() & 63] |= above;
            level[job] = deep;
            let most = &mut levels[own.to_index()];
            *most = (*most).max(deep + 1);
        }
        matrix.clear();
        matrix.extend_from_slice(&rows[..levels.len()]);
    }

    /// Computes levels, and the type graph as a bit matrix if it is small enough.
    fn scan(&mut self, problem: &Problem<'_>) {
        let Self { kind, level, levels, matrix, list_levels, .. } = self;
        let kind = kinds(kind, problem);
        let words = if levels.len() <= MAX_DENSE_TYPES { levels.len().div_ceil(64) } else { 0 };
        matrix.clear();
        matrix.resize(words * levels.len(), 0);
        for (job, (&own, operands)) in kind.iter().zip(problem.all_operands()).enumerate() {
            let mut deep = 0u32;
            for &operand in operands {
                deep = deep.max(list_levels.of(problem.lists(), operand, own, |operand| {
                    let other = kind[operand.index()];
                    if words > 0 {
                        let other = other.to_index();
                        matrix[own.to_index() * words + other / 64] |= 1 << (other % 64);
                    }
                    if other == own { level[operand.index()] + 1 } else { 0 }
                }));
            }
            level[job] = deep;
            let most = &mut levels[own.to_index()];
            *most = (*most).max(deep + 1);
        }
    }

    /// Makes the predecessor lists of the type graph from the bit matrix.
    fn unpack_matrix(&mut self, kinds: usize) {
        let words = kinds.div_ceil(64);
        let Edges { start, items } = &mut self.before;
        items.clear();
        start.clear();
        start.push(0);
        for own in 0..kinds {
            for word in 0..words {
                let mut bits = self.matrix[own * words + word];
                while bits != 0 {
                    items.push(KindId::from_index(word * 64 + bits.trailing_zeros() as usize));
                    bits &= bits - 1;
                }
            }
            start.push(items.len() as u32);
        }
    }

    /// Makes the predecessor lists of the type graph by a counting sort of all operand edges.
    fn sort_edges(&mut self, problem: &Problem<'_>, kinds: usize) {
        let Self { kind, before: Edges { start, items }, .. } = self;
        let kind = self::kinds(kind, problem);
        let edges = problem.jobs().flat_map(|job| {
            problem.operands(job).map(move |operand| (kind[job.index()].to_index(), kind[operand.index()]))
        });
        group(kinds, edges, start, items);
    }
}

/// The kind of every job: `kind` if some jobs are alone, else the types.
fn kinds<'k>(kind: &'k [KindId], problem: &Problem<'k>) -> &'k [KindId] {
    if problem.alone().is_empty() { KindId::wrap_slice(problem.ty()) } else { kind }
}

/// Tarjan's strongly connected components without recursion. Edges lead to predecessors, so a component finishes after all
/// components that it depends on, and the order of completion is topological.
#[derive(Default)]
struct Walk {
    index: Vec<u32>,
    low: Vec<u32>,
    open: Vec<KindId>,
    /// Kinds whose predecessors are being visited, each with its next edge.
    calls: Vec<(KindId, u32)>,
}

impl Walk {
    fn run(&mut self, before: &Edges, found: &mut Components) {
        let kinds = before.start.len() - 1;
        for list in [&mut self.index, &mut self.low, &mut found.part_of] {
            list.clear();
            list.resize(kinds, NONE);
        }
        found.members.clear();
        found.member_start.clear();
        found.member_start.push(0);
        let mut next = 0u32;
        for root in (0..kinds).map(KindId::from_index) {
            if self.index[root.to_index()] == NONE {
                self.enter(root, before, &mut next);
                while self.advance(before, found, &mut next) {}
            }
        }
    }

    fn enter(&mut self, kind: KindId, before: &Edges, next: &mut u32) {
        self.index[kind.to_index()] = *next;
        self.low[kind.to_index()] = *next;
        *next += 1;
        self.open.push(kind);
        self.calls.push((kind, before.start[kind.to_index()]));
    }

    /// Follows the next edge of the innermost call, or returns from it. Returns false after the last call.
    fn advance(&mut self, before: &Edges, found: &mut Components, next: &mut u32) -> bool {
        let Some((kind, edge)) = self.calls.last_mut() else { return false };
        let at = kind.to_index();
        if *edge < before.start[at + 1] {
            let other = before.items[*edge as usize];
            *edge += 1;
            if self.index[other.to_index()] == NONE {
                self.enter(other, before, next);
            } else if found.part_of[other.to_index()] == NONE {
                self.low[at] = self.low[at].min(self.index[other.to_index()]);
            }
            return true;
        }
        self.calls.pop();
        if let Some(&(caller, _)) = self.calls.last() {
            self.low[caller.to_index()] = self.low[caller.to_index()].min(self.low[at]);
        }
        if self.low[at] == self.index[at] {
            self.close(KindId::from_index(at), found);
        }
        true
    }

    /// Pops a finished component from the stack of open kinds.
    fn close(&mut self, kind: KindId, found: &mut Components) {
        let (part, from) = (found.member_start.len() as u32 - 1, found.members.len());
        while let Some(member) = self.open.pop() {
            found.part_of[member.to_index()] = part;
            found.members.push(member);
            if member == kind {
                break;
            }
        }
        found.members[from..].sort_unstable();
        found.member_start.push(found.members.len() as u32);
    }
}
