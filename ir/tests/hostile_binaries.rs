//! Hostile binary files cause no panic, and take memory in proportion to the file.
//!
//! Most mutations get a valid checksum, so that they reach the decoder and the verifier. The test then
//! uses every accepted graph, because a verified graph must not cause a panic.

#![allow(clippy::unwrap_used, reason = "an unexpected value fails the test")]

use autobatch_ir::codec::LoadError;
use autobatch_ir::graph::OperandKind;
use autobatch_ir::types::{INDEX, f32, list};
use autobatch_ir::{Graph, GraphData, Init, Module, ModuleBuilder, ValueId};
use autobatch_testing::hostile::{Counting, HEADER, limit, measured, read_mutated, reseal};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn bound(bytes: &[u8]) -> usize {
    limit(bytes.len())
}

fn corpus() -> Vec<Vec<u8>> {
    let mut m = ModuleBuilder::new("hostile");
    let embed = m.table("embed", [10, 4], Init::Uniform(0.1));
    let w = m.param("w", [8, 4], Init::Values(vec![0.5; 32].into()));
    let leaf = m.cell("leaf", [INDEX], |_, [word]| [embed.row(word)]);
    let node = m.cell("node", [f32([4]); 2], |g, [l, r]| [g.affine([l, r], w, None).tanh()]);
    let mix = m.cell("mix", [list(f32([1])), list(f32([4]))], |g, [s, v]| [g.softmax_sum(s, v)]);
    let drop = m.cell("drop", [f32([4])], |_, [x]| [x.dropout(0.5)]);
    let twice = m.cell("twice", [f32([4])], |g, [x]| {
        let [x] = g.call(drop, x);
        g.call(drop, x)
    });
    let module = m.build().unwrap();
    let rich = |instances: u64| {
        let g = Graph::new(&module);
        let common = g.input(&[1.0, 2.0, 3.0, 4.0]).shared();
        for key in 0..instances {
            g.instance(key);
            let [x] = g.call(leaf, 3);
            let [y] = g.call(node, [x, common]);
            let scores = g.list([x.sum_rows().reshape([1]), y.max().reshape([1])]);
            let [z] = g.call(mix, [scores, g.list([x, y])]);
            let [z] = g.call(twice, z);
            let [a, b] = z.mask(&[true, false, true, true]).alone().split();
            g.loss(&format!("loss{key}"), z.cross_entropy(1) + a.dot(b));
            g.output(&format!("z{key}"), z);
        }
        g.finish().unwrap().to_bytes()
    };
    let empty = Graph::new(&ModuleBuilder::new("empty").build().unwrap()).finish().unwrap().to_bytes();
    vec![rich(1), rich(12), empty]
}

/// The modules of the graphs in the corpus.
fn modules() -> Vec<Vec<u8>> {
    let module = |bytes: &Vec<u8>| GraphData::from_bytes(bytes).unwrap().module.to_bytes();
    corpus().iter().map(module).collect()
}

/// Uses every part of a verified graph.
fn walk(data: &GraphData) -> usize {
    let mut seen = data.to_string().len() + data.depths().len() + data.stretches().count();
    for id in data.arena.ids() {
        seen += data.site(data.arena.node(id).site).line as usize;
        seen += data.module.callee_name(data.signature(id).callee).len();
        seen += data.module.noise_ports(data.signature(id));
        for &arg in &data.signature(id).params {
            seen += data.module.param_name(arg).len();
        }
        for operand in data.arena.operands(id) {
            seen += match operand.kind().expect("a verified operand is valid") {
                OperandKind::Value(value) => data.type_of(value).bytes() + data.arena.producer(value).index(),
                OperandKind::Index(slot) => data.bindings.words[slot as usize] as usize & 1,
                OperandKind::Data(slot) => data.bindings.floats[slot as usize].to_bits() as usize & 1,
            };
        }
        for value in data.arena.results(id) {
            seen += data.type_of(ValueId::new(value)).shape.elements();
        }
    }
    for decl in &data.module.cells {
        for id in decl.body.arena.ids() {
            let signature = data.sigs.get(decl.body.arena.node(id).sig);
            seen += data.module.callee_name(signature.callee).len() + decl.body.arena.operands(id).len();
        }
        seen += decl.body.port_types().map(|ty| data.ty(ty).bytes()).sum::<usize>();
    }
    for export in &data.module.exports {
        seen += data.module.sigs.get(export.sig).operands.len();
    }
    let json = data.to_json(false).expect("a verified operand is valid");
    let order = petgraph::algo::toposort(&data.arena.to_petgraph(), None).expect("arenas have no cycles");
    seen + data.to_dot().len() + json.len() + order.len()
}

#[test]
fn mutated_files_are_rejected_or_valid() {
    let verify = |error: &LoadError| matches!(error, LoadError::Verify(_));
    read_mutated(20_260_101, &corpus(), GraphData::from_bytes, verify, |data, what| {
        assert!(walk(&data) < usize::MAX);
        let again = GraphData::from_bytes(&data.to_bytes()).expect("the bytes of a valid file are valid");
        assert_eq!(again.structure(), data.structure(), "{what}");
    });
}

#[test]
fn mutated_files_of_modules_are_rejected_or_valid() {
    let verify = |error: &LoadError| matches!(error, LoadError::Verify(_));
    read_mutated(20_260_102, &modules(), Module::from_bytes, verify, |module, what| {
        let again = Module::from_bytes(&module.to_bytes()).expect("the bytes of a valid file are valid");
        // The test compares bytes, because NaN values compare unequal.
        assert_eq!(again.to_bytes(), module.to_bytes(), "{what}");
        let graph = Graph::new(&module).finish().expect("an empty graph has no fault");
        assert!(walk(&graph) < usize::MAX);
    });
}

/// Reads every prefix of a file, with the original length and checksum and with its own.
fn cut_off<T>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T, LoadError>) {
    for end in (0..bytes.len()).step_by(1 + bytes.len() / 3000) {
        let mut cut = bytes[..end].to_vec();
        assert!(read(&cut).is_err(), "{end} bytes");
        reseal(&mut cut);
        let (result, peak) = measured(|| read(&cut));
        assert!(result.is_err() && peak <= bound(&cut), "{end} bytes, resealed: {peak} bytes held");
    }
}

#[test]
fn truncated_files_are_rejected() {
    corpus().iter().for_each(|bytes| cut_off(bytes, GraphData::from_bytes));
    modules().iter().for_each(|bytes| cut_off(bytes, Module::from_bytes));
}

#[test]
fn trailing_bytes_are_rejected() {
    for more in [1, 3, 4, 8, 1000] {
        let longer = |mut bytes: Vec<u8>| {
            bytes.resize(bytes.len() + more, 0);
            reseal(&mut bytes);
            bytes
        };
        assert!(GraphData::from_bytes(&longer(corpus().swap_remove(0))).is_err(), "{more}");
        assert!(Module::from_bytes(&longer(modules().swap_remove(0))).is_err(), "{more}");
    }
}

#[test]
fn load_errors_name_the_file() {
    let path = std::env::temp_dir().join(format!("autobatch-named-{}.abm", std::process::id()));
    let said = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let errors = [Module::load(&path).err(), GraphData::load(&path).err()];
        let named = path.display().to_string();
        errors.map(|error| {
            let said = error.expect("both files are invalid").to_string();
            assert!(said.starts_with(&named), "{said}");
            said
        })
    };
    let [module, graph] = said(b"no module");
    assert!(module.ends_with("is it a text file?") && graph == module, "{module}");
    let mut damaged = modules().swap_remove(0);
    *damaged.last_mut().unwrap() ^= 1;
    let [module, graph] = said(&damaged);
    assert!(module.contains("its checksum differs"), "{module}");
    assert!(graph.contains("expected a graph (.abg), found a module (.abm)"), "{graph}");
    std::fs::remove_file(&path).unwrap();
    let nothing = Module::load(&path).expect_err("the file does not exist").to_string();
    assert!(nothing.contains("check the path"), "{nothing}");
}

#[test]
fn forged_lengths_take_little_memory() {
    let bytes = corpus().swap_remove(0);
    for at in (HEADER..bytes.len() - 8).step_by(2) {
        for count in [1u64 << 16, 1 << 32, 1 << 46, u64::MAX] {
            let mut forged = bytes.clone();
            forged[at..at + 8].copy_from_slice(&count.to_le_bytes());
            reseal(&mut forged);
            let (_, peak) = measured(|| GraphData::from_bytes(&forged).is_ok());
            assert!(peak <= bound(&forged), "count {count} at {at}: {peak} bytes held");
        }
    }
}

#[test]
fn dense_tables_take_little_memory() {
    let module = ModuleBuilder::new("dense").build().unwrap();
    let g = Graph::new(&module);
    for width in 1..30_000 {
        let _ = g.zeros([width]);
    }
    let bytes = g.finish().unwrap().to_bytes();
    let (data, peak) = measured(|| GraphData::from_bytes(&bytes));
    assert_eq!(data.unwrap().sigs.items().len(), 29_999);
    assert!(peak <= bound(&bytes), "{peak} bytes held for a file of {}", bytes.len());
    assert!(peak > bytes.len(), "the allocator counts");

    let mut m = ModuleBuilder::new("dense");
    for number in 0..3000 {
        m.param(&format!("p{number}"), [number + 1], Init::ZEROS);
        m.cell(&format!("c{number}"), [f32([number + 1])], |_, [x]| [x.tanh()]);
    }
    let bytes = Graph::new(&m.build().unwrap()).finish().unwrap().to_bytes();
    let (data, peak) = measured(|| GraphData::from_bytes(&bytes));
    assert_eq!(data.unwrap().module.cells.len(), 3000);
    assert!(peak <= bound(&bytes), "{peak} bytes held for a file of {}", bytes.len());
}
