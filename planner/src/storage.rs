//! Storage: which field of which slab holds the results of each signature.
//!
//! *Needs* the clusters of a graph. *Ensures* that all values which can arrive at one operand place
//! of one signature live in one field, so that a step names one field an operand, whatever made the
//! rows: results that meet at an operand are united. Results that always come together (the `h` and
//! `c` of a cell) become fields of one slab and share a row number.
//!
//! Constants unite nothing. The zeros from which a recurrence starts meet both `h` and `c`; were they
//! in one field, `h` and `c` would be too, with rows of their own in turns, and whoever reads all `h`
//! would read every other row. So a constant has a *home* in every field that it is read in: it is
//! brought in once more, and costs a row instead of a layout.
//!
//! *Cost.* One bit set an operand, and one union-find operation for each pair of a place and a result
//! that met there; beyond the first 64 results of all signatures, one such operation an operand.

use crate::cluster::Clusters;
use autobatch_ir::Type;
use autobatch_ir::graph::{Callee, GraphData, Op};
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
    /// Where else a constant is brought in, a slab at a time: more fields of its first block, then
    /// those of its others.
    pub(crate) homes: Vec<(FieldId, u32)>,
}

impl SigStorage {
    /// How many batches bring a source in: one for each of its blocks. Nodes have one batch for all.
    pub(crate) fn source_batches(&self) -> u32 {
        if self.homes.is_empty() { 1 } else { self.blocks.len() as u32 }
    }

    /// The blocks that a batch writes: all, or one of a constant with several homes.
    pub(crate) fn blocks_of(&self, home: u32) -> &[Block] {
        if self.homes.is_empty() { &self.blocks } else { &self.blocks[home as usize..=home as usize] }
    }

    /// The fields of one of the blocks of a constant with several homes.
    pub(crate) fn fields_of(&self, home: u32) -> impl Iterator<Item = FieldId> {
        let all = self.results.iter().chain(&self.homes);
        all.filter(move |&&(_, block)| block == home).map(|&(field, _)| field)
    }
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
    /// Per result whether it is a constant that may have several homes; of the first 64 as bits.
    constant: Vec<bool>,
    constants: u64,
    /// Places and the constants that met there, of those beyond the first 64 results.
    visits: Vec<(u32, u32)>,
    place_base: Vec<u32>,
    place_fields: Vec<FieldId>,
    /// Homes of constants as results and classes.
    homes: Vec<(u32, u32)>,
}

impl Storage {
    /// Begins anew; memory is kept where it matters. [`meet`](Self::meet) follows.
    ///
    /// `split` says whether constants may have several homes. Whoever wants the gradient of a constant
    /// wants it in one.
    pub(crate) fn begin(&mut self, graph: &GraphData, split: bool) {
        let (mut results, mut operands) = (0, 0);
        self.result_base.clear();
        self.place_base.clear();
        self.constant.clear();
        for signature in graph.sigs.items() {
            self.result_base.push(results);
            self.place_base.push(operands as u32);
            results += signature.results.len() as u32;
            operands += signature.operands.len();
            let constant = split && matches!(signature.callee, Callee::Op(Op::Fill { .. }));
            self.constant.resize(results as usize, constant);
        }
        let first = self.constant.iter().take(64).enumerate();
        self.constants = first.fold(0, |bits, (result, &constant)| bits | u64::from(constant) << result);
        self.visits.clear();
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
            _ if self.constant[result as usize] => self.visit(place as u32, result),
            _ => self.meet_one(place, result),
        }
    }

    fn visit(&mut self, place: u32, constant: u32) {
        if self.visits.last() != Some(&(place, constant)) {
            self.visits.push((place, constant));
        }
    }

    /// Decides, after all meetings.
    pub(crate) fn finish(&mut self, graph: &GraphData, clusters: &Clusters) {
        for place in 0..self.met.len() {
            let mut met = self.met[place];
            while met != 0 {
                let result = met.trailing_zeros();
                match self.constants >> result & 1 {
                    0 => self.meet_one(place, result),
                    _ => self.visit(place as u32, result),
                }
                met &= met - 1;
            }
        }
        self.house_constants();
        let used = used_sigs(graph, clusters);
        let mut fields = self.class_fields(graph, &used);
        self.group(graph, &used, &mut fields);
        self.note_place_fields(&fields);
    }

    /// Decides for plans that grow: a field for each type, those that are there first.
    ///
    /// What meets later is not known yet, and rows do not move; but an operand has one type, so
    /// whatever meets there will be in one field.
    pub(crate) fn finish_by_type(
        &mut self,
        graph: &GraphData,
        clusters: &Clusters,
        known: (&[Slab], &[Field]),
    ) {
        self.slabs.clear();
        self.slabs.extend_from_slice(known.0);
        self.fields.clear();
        self.fields.extend_from_slice(known.1);
        self.sigs.clear();
        self.sigs.resize(graph.sigs.items().len(), SigStorage::default());
        for sig in used_sigs(graph, clusters) {
            let mut storage = SigStorage::default();
            for &ty in &graph.sigs.get(sig).results {
                let field = self.field_of_type(graph.ty(ty));
                let slab = self.fields[field.index()].slab;
                let turn = storage.blocks.iter().filter(|block| block.slab == slab).count() as u32;
                storage.results.push((field, storage.blocks.len() as u32));
                storage.blocks.push(Block { slab, turn });
            }
            self.sigs[sig.index()] = storage;
        }
        self.place_fields.clear();
        for signature in graph.sigs.items() {
            for &ty in &signature.operands {
                let ty = Type { is_list: false, ..graph.ty(ty) };
                let known = self.fields.iter().position(|field| field.ty == ty);
                self.place_fields.push(known.map_or(FieldId(NONE), |field| FieldId(field as u32)));
            }
        }
    }

    fn field_of_type(&mut self, ty: Type) -> FieldId {
        let known = self.fields.iter().position(|field| field.ty == ty);
        let number = known.unwrap_or_else(|| {
            let (slab, field) = (SlabId(self.slabs.len() as u32), self.fields.len() as u32);
            self.fields.push(Field { slab, name: field_name(0), ty });
            self.slabs.push(Slab { kind: SlabKind::Value, rows: 0, fields: field..field + 1 });
            field as usize
        });
        FieldId(number as u32)
    }

    /// The field that an operand place reads, if any value arrives there.
    pub(crate) fn place_field(&self, sig: SigId, place: usize) -> FieldId {
        self.place_fields[self.place_base[sig.index()] as usize + place]
    }

    /// Gives every constant a class: that of the first place where it meets others, or the one it
    /// shares with the constants that it meets alone; and homes in the classes of all other places.
    fn house_constants(&mut self) {
        self.visits.sort_unstable();
        self.visits.dedup();
        let mut visits = std::mem::take(&mut self.visits);
        let mut housed: Vec<u32> = Vec::new();
        visits.retain(|&(place, constant)| {
            let first = self.first_seen[place as usize];
            // Where only constants meet, the first that comes stands for the others.
            let mixed = first != NONE && !self.constant[first as usize];
            if !mixed || !housed.contains(&constant) {
                housed.extend(mixed.then_some(constant));
                self.meet_one(place as usize, constant);
            }
            mixed
        });
        self.homes.clear();
        for &(place, constant) in &visits {
            let class = self.find(self.first_seen[place as usize]);
            if class != self.find(constant) && !self.homes.contains(&(constant, class)) {
                self.homes.push((constant, class));
            }
        }
        visits.clear();
        self.visits = visits;
    }

    fn note_place_fields(&mut self, classes: &[ClassField]) {
        self.place_fields.clear();
        self.place_fields.resize(self.met.len(), FieldId(NONE));
        for place in 0..self.met.len() {
            if self.first_seen[place] != NONE {
                let root = self.find(self.first_seen[place]);
                let class = classes.iter().find(|class| class.root == root);
                self.place_fields[place] = class.map_or(FieldId(NONE), |class| class.field);
            }
        }
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
        let homes = std::mem::take(&mut self.homes);
        for &sig in used {
            for (place, &ty) in graph.sigs.get(sig).results.iter().enumerate() {
                let result = self.result_base[sig.index()] + place as u32;
                let root = self.find(result);
                let others = homes.iter().filter(|home| home.0 == result).map(|home| home.1);
                for root in std::iter::once(root).chain(others) {
                    let number = &mut field_of[root as usize];
                    if *number == NONE {
                        *number = fields.len() as u32;
                        let (ty, field) = (graph.ty(ty), FieldId(NONE));
                        fields.push(ClassField { ty, root, field, makers: Vec::new() });
                    }
                    fields[*number as usize].makers.push((sig, place as u32));
                }
            }
        }
        self.homes = homes;
        fields
    }

    /// Classes with the same makers, one result each, become one slab.
    fn group(&mut self, graph: &GraphData, used: &[SigId], classes: &mut [ClassField]) {
        self.slabs.clear();
        self.fields.clear();
        self.sigs.clear();
        self.sigs.resize(graph.sigs.items().len(), SigStorage::default());
        for &sig in used {
            self.sigs[sig.index()].results = vec![(FieldId(NONE), NONE); graph.sigs.get(sig).results.len()];
        }
        let mut placed = vec![false; classes.len()];
        for number in 0..classes.len() {
            if placed[number] {
                continue;
            }
            let class = &classes[number];
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

    fn add_slab(&mut self, classes: &mut [ClassField], bundle: &[usize]) {
        let slab = SlabId(self.slabs.len() as u32);
        let first = self.fields.len() as u32;
        for (letter, &member) in bundle.iter().enumerate() {
            let field = FieldId(self.fields.len() as u32);
            let name = field_name(letter);
            self.fields.push(Field { slab, name, ty: classes[member].ty });
            classes[member].field = field;
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
                let result = &mut storage.results[place as usize];
                match result.0 {
                    FieldId(NONE) => *result = (field, number as u32),
                    _ => storage.homes.push((field, number as u32)),
                }
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
    ty: Type,
    /// The result that stands for the class.
    root: u32,
    /// Its field, once it has one.
    field: FieldId,
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
