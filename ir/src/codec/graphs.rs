//! The binary format of graphs.

use super::modules::{RawArena, RawModule, read_arena};
use super::record::{coded, read_all, write_all};
use super::tables::RawTables;
use super::{Blob, Kind, LoadError, Text, binary_file, open, seal};
use crate::graph::{Bindings, Cut, GraphData, Output, OutputKind};
use crate::id::{NodeId, ValueId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
struct RawGraph<'a> {
    #[serde(borrow)]
    module: RawModule<'a>,
    /// The entries of the graph's tables after those of the module.
    tables: RawTables<'a>,
    arena: RawArena<'a>,
    cuts: Blob<'a>,
    /// The names of outputs, concatenated.
    text: Blob<'a>,
    outputs: Blob<'a>,
    shared: Blob<'a>,
    alone: Blob<'a>,
    words: Blob<'a>,
    floats: Blob<'a>,
}

coded! { struct Cut, 4 words: first, key }
coded! { enum Option<u64>, 3 words: 0 = None; 1 = Some(key); }
coded! { struct Output, 3 words: name, value, kind }
coded! { enum OutputKind, 1 words: 0 = Value; 1 = Loss; }

impl<'a> RawGraph<'a> {
    fn of(data: &'a GraphData) -> Self {
        let GraphData { module, arena, cuts, outputs, shared, alone, bindings, .. } = data;
        let Bindings { words, floats } = bindings;
        let mut text = String::new();
        let cuts = write_all(cuts, &mut text);
        let outputs = write_all(outputs, &mut text);
        let (types, sigs, sites) = data.own_tables();
        Self {
            module: RawModule::of(module),
            tables: RawTables::of(types, sigs, sites),
            arena: RawArena {
                nodes: Blob::plain(arena.nodes()),
                operands: Blob::plain(arena.operand_pool()),
                value_types: Blob::plain(arena.value_types()),
            },
            cuts,
            text: Blob::bytes(text.into_bytes()),
            outputs,
            shared: Blob::plain(shared),
            alone: Blob::plain(alone),
            words: Blob::plain(words),
            floats: Blob::plain(floats),
        }
    }

    fn size_hint(&self) -> usize {
        let bound = self.words.len() + self.floats.len();
        self.module.size_hint() + self.arena.len() + bound + self.cuts.len() + self.outputs.len() + (1 << 13)
    }
}

impl RawGraph<'_> {
    fn read(&self) -> Result<GraphData, LoadError> {
        let module = self.module.read()?;
        // Verify first: the graph's tables start as copies of the module's.
        module.verify()?;
        let mut data = GraphData::new(Arc::new(module));
        self.tables.append(&mut data.types, &mut data.sigs, &mut data.sites)?;
        data.arena = read_arena(
            self.arena.nodes.reader("nodes")?,
            self.arena.operands.reader("operands")?,
            self.arena.value_types.reader("value types")?,
        )?;
        let mut text = Text::new(&self.text)?;
        data.cuts = read_all(&self.cuts, "cuts", &mut text)?;
        data.outputs = read_all(&self.outputs, "outputs", &mut text)?;
        text.end()?;
        let one_below = |word: u32| (word as usize).checked_sub(1);
        let shared = self.shared.reader("shared marks")?;
        data.shared = shared.members(|word| ValueId::try_new(one_below(word)?))?;
        let alone = self.alone.reader("alone marks")?;
        data.alone = alone.members(|word| NodeId::try_new(one_below(word)?))?;
        data.bindings = Bindings {
            words: self.words.reader("bound words")?.members(Some)?,
            floats: self.floats.reader("bound floats")?.members(|word| Some(f32::from_bits(word)))?,
        };
        Ok(data)
    }
}

impl GraphData {
    /// Encodes the graph and its module as an `.abg` file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let raw = RawGraph::of(self);
        seal(Kind::Graph, &raw, raw.size_hint())
    }

    /// Decodes and verifies the bytes of an `.abg` file.
    ///
    /// # Errors
    /// If the bytes are not such a file or the graph breaks a rule.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LoadError> {
        let mut data = open::<RawGraph<'_>>(Kind::Graph, bytes)?.read()?;
        data.verify()?;
        data.rehash();
        Ok(data)
    }
}

binary_file!(Kind::Graph, GraphData => GraphData, ".abg");
