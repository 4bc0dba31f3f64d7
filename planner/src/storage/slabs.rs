//! Fields and slabs of classes.

use super::classes::{Classes, MakerChains};
use super::fields::{Block, NO_FIELD, Storage, nameless};
use super::unify::Unions;
use crate::ids::{BlockId, ClassId};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{Slab, SlabKind};

/// Scratch memory of [`assign_storage`](super::assign_storage).
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(super) unions: Unions,
    classes: Classes,
    chains: MakerChains,
    /// The classes that become one slab.
    bundle: Vec<ClassId>,
}

impl Storage {
    /// Gives each class of results a field. Classes with the same makers, one result for each, become fields of one slab.
    pub(super) fn assign_by_use(&mut self, graph: &GraphData, used: &[SigId], memory: &mut Memory) {
        find_classes(graph, used, memory);
        let Memory { unions, classes, chains, bundle, .. } = memory;
        for &sig in used {
            let results = graph.sigs.get(sig).results.len();
            self.sigs[sig].results.resize(results, (NO_FIELD, BlockId(0)));
        }
        chains.build(classes);
        for id in classes.ids() {
            let class = classes.get(id);
            if class.is_placed() {
                continue;
            }
            bundle.clear();
            bundle.push(id);
            if class.once_each() {
                let joins = |&other: &ClassId| {
                    let other = classes.get(other);
                    !other.is_placed() && other.once_each() && other.same_makers(class)
                };
                bundle.extend(chains.after(id).filter(joins));
            }
            self.add_slab(classes, bundle);
        }
        self.port_fields.extend(unions.port_classes().map(|root| {
            let class = root.and_then(|root| classes.of_root(root));
            class.map_or(NO_FIELD, |class| class.field)
        }));
    }

    /// Adds a slab with a field for each class of the bundle.
    fn add_slab(&mut self, classes: &mut Classes, bundle: &[ClassId]) {
        let Self { slabs, fields, sigs, .. } = self;
        let slab = slabs.next_id();
        let first = fields.len() as u32;
        for &member in bundle {
            let class = classes.get_mut(member);
            let field = fields.push(nameless(slab, class.ty));
            class.field = field;
            let mut previous = None;
            let mut repeat = 0;
            for &(sig, result) in &class.makers {
                repeat = if previous == Some(sig) { repeat + 1 } else { 0 };
                previous = Some(sig);
                let own = &mut sigs[sig];
                let block = Block { slab, repeat };
                // A signature makes each class of a larger bundle once, so a known block is the last.
                if own.blocks.last() != Some(&block) {
                    own.blocks.push(block);
                }
                let number = BlockId(own.blocks.len() as u32 - 1);
                let result = &mut own.results[result as usize];
                match result.0 {
                    NO_FIELD => *result = (field, number),
                    _ => own.extra_fields.push((field, number)),
                }
            }
        }
        slabs.push(Slab { kind: SlabKind::Value, rows: 0, fields: first..fields.len() as u32 });
    }
}

/// Lists the classes of used results, each with its makers, a maker once for each result.
fn find_classes(graph: &GraphData, used: &[SigId], memory: &mut Memory) {
    let Memory { unions, classes, .. } = memory;
    classes.clear(unions.results());
    for &sig in used {
        for (position, &ty) in (0u32..).zip(&graph.sigs.get(sig).results) {
            let result = unions.result_of.of(sig, position as usize);
            let root = unions.find(result);
            for root in std::iter::once(root).chain(unions.copies_of(result)) {
                classes.of_root_or_new(root, graph.ty(ty)).makers.push((sig, position));
            }
        }
    }
}
