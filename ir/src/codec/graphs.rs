//! The binary format of graphs.

use super::modules::{RawArena, RawModule, read_arena};
use super::tables::RawTables;
use super::{Blob, Kind, LoadError, Text, open, read_file, seal};
use crate::graph::{Bindings, Cut, GraphData, Output, OutputKind};
use crate::id::{NodeId, ValueId};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
struct RawGraph<'a> {
    #[serde(borrow)]
    module: RawModule<'a>,
    /// The entries of the graph's tables after those of the module.
    tables: RawTables<'a>,
    arena: RawArena<'a>,
    /// First node, whether there is a key, its lower and upper half.
    cuts: Blob<'a>,
    /// The names of outputs, concatenated.
    text: Blob<'a>,
    /// Length of the name, value, kind.
    outputs: Blob<'a>,
    shared: Blob<'a>,
    alone: Blob<'a>,
    words: Blob<'a>,
    floats: Blob<'a>,
}

impl<'a> RawGraph<'a> {
    fn of(data: &'a GraphData) -> Self {
        let GraphData { module, types, sigs, sites, arena, cuts, outputs, .. } = data;
        let GraphData { shared, alone, bindings: Bindings { words, floats }, .. } = data;
        let mut cut_words = Vec::with_capacity(4 * cuts.len());
        for Cut { first, key } in cuts {
            let number = key.unwrap_or(0);
            cut_words.extend([*first, u32::from(key.is_some()), number as u32, (number >> 32) as u32]);
        }
        let (mut text, mut output_words) = (String::new(), Vec::new());
        for Output { name, value, kind } in outputs {
            text.push_str(name);
            output_words.extend([name.len() as u32, value.index() as u32, *kind as u32]);
        }
        Self {
            module: RawModule::of(module),
            tables: RawTables::of(
                types.items().get(module.types.items().len()..).unwrap_or_default(),
                sigs.items().get(module.sigs.items().len()..).unwrap_or_default(),
                sites.items().get(module.sites.items().len()..).unwrap_or_default(),
            ),
            arena: RawArena {
                nodes: Blob::plain(arena.nodes()),
                operands: Blob::plain(arena.operand_pool()),
                value_types: Blob::plain(arena.value_types()),
            },
            cuts: Blob::words(&cut_words),
            text: Blob(text.into_bytes().into()),
            outputs: Blob::words(&output_words),
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
        data.cuts = self.read_cuts()?;
        data.outputs = self.read_outputs()?;
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

    fn read_cuts(&self) -> Result<Vec<Cut>, LoadError> {
        let mut words = self.cuts.reader("cuts")?;
        let count = words.records(4)?;
        let mut cuts = Vec::with_capacity(count);
        for _ in 0..count {
            let [first, keyed, low, high] = words.array()?;
            let key = match (keyed, low, high) {
                (0, 0, 0) => None,
                (1, ..) => Some(u64::from(high) << 32 | u64::from(low)),
                _ => return Err(words.refused(keyed)),
            };
            cuts.push(Cut { first, key });
        }
        Ok(cuts)
    }

    fn read_outputs(&self) -> Result<Vec<Output>, LoadError> {
        let (mut words, mut text) = (self.outputs.reader("outputs")?, Text::new(&self.text)?);
        let count = words.records(3)?;
        let mut outputs = Vec::with_capacity(count);
        for _ in 0..count {
            let [name, value, kind] = words.array()?;
            let kind = match kind {
                0 => OutputKind::Value,
                1 => OutputKind::Loss,
                _ => return Err(words.refused(kind)),
            };
            let value = ValueId::try_new(value as usize).ok_or_else(|| words.refused(value))?;
            outputs.push(Output { name: text.take(name)?, value, kind });
        }
        text.end()?;
        Ok(outputs)
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

    /// Writes an `.abg` file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        crate::files::write(path.as_ref(), &self.to_bytes())
    }

    /// Reads an `.abg` file.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes), and if the file cannot be read.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        read_file(Kind::Graph, path.as_ref(), Self::from_bytes)
    }
}
