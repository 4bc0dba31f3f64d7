//! Round trips, and one rejection for each kind of invalid file.

use super::{HEADER, Kind, LoadError};
use crate::graph::{Graph, GraphData, Operand};
use crate::hash::hash_bytes;
use crate::module::{Init, Module, ModuleBuilder};
use crate::types::{INDEX, f32, list};
use insta::assert_snapshot;

fn sample() -> GraphData {
    let mut m = ModuleBuilder::new("sample");
    let embed = m.table("embed", [10, 4], Init::Values(vec![-0.0; 40].into()));
    let w = m.param("w", [8, 4], Init::Constant(f32::NAN));
    let leaf = m.cell("leaf", [INDEX], |_, [word]| [embed.row(word).dropout(0.5)]);
    let node = m.cell("node", [f32([4]); 2], |g, [l, r]| [g.affine([l, r], w, None).tanh()]);
    let mix = m.cell("mix", [list(f32([4]))], |_, [v]| [v.sum()]);
    let module = m.build().unwrap();
    let g = Graph::new(&module);
    let prefix = g.input(&[f32::NAN, -0.0, 1e-40, f32::INFINITY]).shared();
    for key in [u64::MAX, 7] {
        g.instance(key);
        let [x] = g.call(leaf, 3);
        let [y] = g.call(node, [x, prefix]);
        let [z] = g.call(mix, g.list([x.shared(), y]));
        let z = z.mask(&[true, false, true, true]).alone().slice(1..3);
        g.loss(&format!("loss{key}"), z.cross_entropy(1));
    }
    g.instance(8);
    g.common();
    g.output("prefix", prefix);
    g.finish().unwrap()
}

/// Updates the header to match the payload.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = (bytes.len() - HEADER) as u64;
    let hash = hash_bytes(&bytes[HEADER..]);
    bytes[16..24].copy_from_slice(&length.to_le_bytes());
    bytes[24..32].copy_from_slice(&hash.to_le_bytes());
    bytes
}

#[test]
fn a_graph_round_trips() {
    let data = sample();
    let bytes = data.to_bytes();
    let read = GraphData::from_bytes(&bytes).unwrap();
    assert_eq!(read.structure(), data.structure());
    assert_eq!(read.to_bytes(), bytes);
    // The NaN initialiser makes modules unequal to themselves, so the test compares all other parts.
    assert_eq!(read.arena, data.arena);
    assert_eq!(read.sigs, data.sigs);
    assert_eq!(read.types, data.types);
    assert_eq!(read.sites, data.sites);
    assert_eq!((&read.cuts, &read.outputs), (&data.cuts, &data.outputs));
    assert_eq!((&read.shared, &read.alone), (&data.shared, &data.alone));
    assert_eq!(read.bindings.words, data.bindings.words);
    let bits = |data: &GraphData| -> Vec<u32> { data.bindings.floats.iter().map(|x| x.to_bits()).collect() };
    assert_eq!(bits(&read), bits(&data));
}

#[test]
fn a_module_round_trips() {
    let mut m = ModuleBuilder::new("plain");
    let w = m.param("w", [4, 4], Init::He);
    m.cell("cell", [f32([4])], |_, [x]| [x.affine(w, None)]);
    let module = m.build().unwrap();
    assert_eq!(*Module::from_bytes(&module.to_bytes()).unwrap(), *module);
}

#[test]
fn a_file_is_written_and_read() {
    let path = std::env::temp_dir().join(format!("autobatch-codec-{}.abg", std::process::id()));
    let data = sample();
    data.save(&path).unwrap();
    let read = GraphData::load(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(read.unwrap().to_bytes(), data.to_bytes());
    let error = GraphData::load(&path).expect_err("the file was removed").to_string();
    assert!(error.contains("cannot be read"), "{error}");
}

#[test]
fn the_recomputed_structure_equals_the_emitted_one() {
    let (module, g) = {
        let mut m = ModuleBuilder::new("cuts");
        let cell = m.cell("cell", [f32([1])], |_, [x]| [x.tanh()]);
        (m.build().unwrap(), cell)
    };
    let mut seed = 7u64;
    for _ in 0..200 {
        let graph = Graph::new(&module);
        let mut values = vec![graph.input(&[1.0])];
        for _ in 0..30 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = values[(seed >> 40) as usize % values.len()];
            match (seed >> 33) % 7 {
                0 => graph.instance(seed),
                1 => graph.common(),
                2 => drop(pick.shared()),
                3 => drop(pick.alone()),
                4 => values.push(graph.list([pick, values[0]]).sum()),
                _ => values.push(graph.call(g, pick)[0]),
            }
        }
        graph.output("last", values[values.len() - 1]);
        let mut data = graph.finish().unwrap();
        let emitted = data.structure();
        data.rehash();
        assert_eq!(data.structure(), emitted);
        data.shared.clear();
        data.alone.push(crate::NodeId::new(0));
        assert_ne!(data.structure(), emitted);
    }
}

fn rejection(bytes: &[u8]) -> LoadError {
    GraphData::from_bytes(bytes).expect_err("the bytes must be rejected")
}

#[test]
fn rejections_say_what_to_do() {
    let bytes = sample().to_bytes();
    // The size depends on the names of source files, which the file stores.
    let (size, more) = (bytes.len().to_string(), (bytes.len() + 1).to_string());
    let edited = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        edit(&mut bytes);
        rejection(&bytes).to_string().replace(&size, "SIZE").replace(&more, "MORE")
    };
    assert_snapshot!(edited(&|bytes| bytes[0] = b'a'), @"this is not a binary file of autobatch: the first bytes differ; is it a text file?");
    assert_snapshot!(edited(&|bytes| bytes.clear()), @"the file is empty: expected 32 bytes or more; copy it again");
    assert_snapshot!(edited(&|bytes| bytes[8] = Kind::Module as u8), @"expected a graph (.abg), found a module (.abm); name a file of the expected kind");
    assert_snapshot!(edited(&|bytes| bytes[8] = 9), @"expected a graph, found an unknown kind of file; update autobatch");
    assert_snapshot!(edited(&|bytes| bytes[12] = 3), @"the file has format version 3, this autobatch reads 2: update autobatch");
    assert_snapshot!(edited(&|bytes| bytes[12] = 0), @"the file has format version 0, this autobatch reads 2: write the file again with this autobatch");
    assert_snapshot!(edited(&|bytes| bytes.truncate(20)), @"the file is truncated: expected 32 bytes, found 20; copy it again");
    assert_snapshot!(edited(&|bytes| bytes.truncate(1000)), @"the file is truncated: expected SIZE bytes, found 1000; copy it again");
    assert_snapshot!(edited(&|bytes| bytes.push(0)), @"the file has trailing bytes: expected SIZE bytes, found MORE");
    assert_snapshot!(edited(&|bytes| bytes[100] ^= 1), @"the file is damaged: its checksum differs; copy it again");
}

#[test]
fn a_sealed_but_invalid_payload_is_malformed() {
    let mut longer = sample().to_bytes();
    longer.push(0);
    assert_snapshot!(rejection(&resealed(longer)), @"the file is malformed: 1 bytes follow the record; autobatch did not write it, save it again");
    let mut forged = sample().to_bytes();
    forged[HEADER..HEADER + 8].fill(0xff);
    assert!(matches!(rejection(&resealed(forged)), LoadError::Malformed(_)));
}

#[test]
fn a_graph_that_breaks_a_rule_is_rejected() {
    let mut data = sample();
    data.arena = {
        let (nodes, types) = (data.arena.nodes().to_vec(), data.arena.value_types().to_vec());
        let mut operands = data.arena.operand_pool().to_vec();
        operands[0] = Operand::value(crate::ValueId::new(0));
        crate::graph::Arena::from_parts(nodes, operands, types).unwrap()
    };
    assert!(matches!(rejection(&data.to_bytes()), LoadError::Verify(_)));
}
