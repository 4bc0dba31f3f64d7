//! Storage: which field of which slab holds the results of each signature.
//!
//! *Needs* the clusters of a graph. *Ensures* that all values which can arrive at one operand place
//! of one signature live in one field, so that a step names one field an operand, whatever made the
//! rows: results that meet at an operand are united. Results that always come together (the `h` and
//! `c` of a cell) become fields of one slab and share a row number.
//!
//! *Cost.* One bit set an operand, and one union-find operation for each pair of a place and a result
//! that met there; beyond the first 64 results of all signatures, one such operation an operand.

use crate::cluster::Clusters;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{Field, FieldId, Slab, SlabId, SlabKind};

const NONE: u32 = u32::MAX;

/// A block of rows that each step of a signature writes: one row a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) slab: SlabId,
    /// Tells several results of one signature in one field apart.
    pub(crate) turn: u32,
}

/// Where the results of a signature go.
#[derive(Clone, Debug, Default)]
pub(crate) struct SigStorage {
    /// The blocks that a step writes.
    pub(crate) blocks: Vec<Block>,
    /// Per result its field and its block.
    pub(crate) results: Vec<(FieldId, u32)>,
}

/// Slabs and fields for a graph.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    pub(crate) slabs: Vec<Slab>,
    pub(crate) fields: Vec<Field>,
    /// Per signature id.
    pub(crate) sigs: Vec<SigStorage>,
    classes: Vec<u32>,
    result_base: Vec<u32>,
    /// Per operand place of all signatures, which of the first 64 results met there.
    met: Vec<u64>,
    /// Per operand place the first of the other results that met there.
    first_seen: Vec<u32>,
}

impl Storage {
    /// Begins anew; memory is kept where it matters. [`meet`](Self::meet) follows.
    pub(crate) fn begin(&mut self, graph: &GraphData) {
        let (mut results, mut operands) = (0, 0);
        self.result_base.clear();
        for signature in graph.sigs.items() {
            self.result_base.push(results);
            results += signature.results.len() as u32;
            operands += signature.operands.len();
        }
        self.classes.clear();
        self.classes.extend(0..results);
        self.met.clear();
        self.met.resize(operands, 0);
        self.first_seen.clear();
        self.first_seen.resize(operands, NONE);
    }

    /// A result, numbered among those of all signatures, arrives at an operand place, numbered alike.
    #[inline]
    pub(crate) fn meet(&mut self, place: usize, result: u32) {
        match result {
            0..64 => self.met[place] |= 1 << result,
            _ => self.meet_one(place, result),
        }
    }

    /// Decides, after all meetings.
    pub(crate) fn finish(&mut self, graph: &GraphData, clusters: &Clusters) {
        for place in 0..self.met.len() {
            let mut met = self.met[place];
            while met != 0 {
                self.meet_one(place, met.trailing_zeros());
                met &= met - 1;
            }
        }
        let used = used_sigs(graph, clusters);
        let fields = self.class_fields(graph, &used);
        self.group(graph, &used, &fields);
    }

    fn meet_one(&mut self, at: usize, element: u32) {
        let first = self.first_seen[at];
        if first == NONE {
            self.first_seen[at] = element;
        } else if first != element {
            let (a, b) = (self.find(first), self.find(element));
            let (low, high) = (a.min(b), a.max(b));
            self.classes[high as usize] = low;
        }
    }

    fn find(&mut self, mut element: u32) -> u32 {
        while self.classes[element as usize] != element {
            let up = self.classes[self.classes[element as usize] as usize];
            self.classes[element as usize] = up;
            element = up;
        }
        element
    }

    /// Per used class: the signatures that make it, each as often as it does.
    fn class_fields(&mut self, graph: &GraphData, used: &[SigId]) -> Vec<ClassField> {
        let mut fields: Vec<ClassField> = Vec::new();
        let mut field_of = vec![NONE; self.classes.len()];
        for &sig in used {
            for (place, &ty) in graph.sigs.get(sig).results.iter().enumerate() {
                let root = self.find(self.result_base[sig.index()] + place as u32) as usize;
                if field_of[root] == NONE {
                    field_of[root] = fields.len() as u32;
                    fields.push(ClassField { ty: graph.ty(ty), makers: Vec::new() });
                }
                fields[field_of[root] as usize].makers.push((sig, place as u32));
            }
        }
        fields
    }

    /// Classes with the same makers, one result each, become one slab.
    fn group(&mut self, graph: &GraphData, used: &[SigId], classes: &[ClassField]) {
        self.slabs.clear();
        self.fields.clear();
        self.sigs.clear();
        self.sigs.resize(graph.sigs.items().len(), SigStorage::default());
        for &sig in used {
            self.sigs[sig.index()].results = vec![(FieldId(NONE), NONE); graph.sigs.get(sig).results.len()];
        }
        let mut placed = vec![false; classes.len()];
        for (number, class) in classes.iter().enumerate() {
            if placed[number] {
                continue;
            }
            let bundle: Vec<usize> = if class.once_each() {
                (number..classes.len())
                    .filter(|&other| {
                        !placed[other] && classes[other].once_each() && classes[other].same_makers(class)
                    })
                    .collect()
            } else {
                vec![number]
            };
            bundle.iter().for_each(|&member| placed[member] = true);
            self.add_slab(classes, &bundle);
        }
    }

    fn add_slab(&mut self, classes: &[ClassField], bundle: &[usize]) {
        let slab = SlabId(self.slabs.len() as u32);
        let first = self.fields.len() as u32;
        for (letter, &member) in bundle.iter().enumerate() {
            let field = FieldId(self.fields.len() as u32);
            let name = field_name(letter);
            self.fields.push(Field { slab, name, ty: classes[member].ty });
            let mut previous = None;
            let mut turn = 0;
            for &(sig, place) in &classes[member].makers {
                turn = if previous == Some(sig) { turn + 1 } else { 0 };
                previous = Some(sig);
                let storage = &mut self.sigs[sig.index()];
                let block = Block { slab, turn };
                let number = storage.blocks.iter().position(|known| *known == block).unwrap_or_else(|| {
                    storage.blocks.push(block);
                    storage.blocks.len() - 1
                });
                storage.results[place as usize] = (field, number as u32);
            }
        }
        self.slabs.push(Slab { kind: SlabKind::Value, rows: 0, fields: first..self.fields.len() as u32 });
    }
}

/// `a`, `b`, .., `z`, `f26`, ..
fn field_name(number: usize) -> String {
    match u8::try_from(number) {
        Ok(letter @ 0..26) => char::from(b'a' + letter).to_string(),
        _ => format!("f{number}"),
    }
}

/// A class of results that live in one field.
#[derive(Debug)]
struct ClassField {
    ty: autobatch_ir::Type,
    makers: Vec<(SigId, u32)>,
}

impl ClassField {
    fn once_each(&self) -> bool {
        self.makers.windows(2).all(|pair| pair[0].0 != pair[1].0)
    }

    fn same_makers(&self, other: &Self) -> bool {
        self.makers.iter().map(|maker| maker.0).eq(other.makers.iter().map(|maker| maker.0))
    }
}

fn used_sigs(graph: &GraphData, clusters: &Clusters) -> Vec<SigId> {
    let mut used: Vec<SigId> = clusters.types.clone();
    used.extend(clusters.sources.iter().map(|apps| graph.arena.app(apps[0]).sig));
    used.sort_unstable();
    used.dedup();
    used
}
