//! Round trips between text and graphs: a committed corpus, the examples of `GRAPH.md`, and emitted
//! graphs.

#![allow(clippy::unwrap_used, reason = "a missing value fails the test")]

use autobatch_ir::graph::{Arena, Callee, Graph, ParamArg, Signature, Signatures, Sites};
use autobatch_ir::types::{Type, Types};
use autobatch_ir::{DType, GraphData, INDEX, Init, Module, ModuleBuilder, Value, f32, list};
use std::path::Path;

fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/graphs");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "graph"));
    let named = files.map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
    named.collect()
}

fn parsed(name: &str, text: &str) -> GraphData {
    GraphData::from_text(text).unwrap_or_else(|error| panic!("{}\n\n{text}", error.in_file(name)))
}

/// The tables of a graph, to compare graphs with tables in different orders.
struct View<'a> {
    types: &'a Types,
    sigs: &'a Signatures,
    sites: &'a Sites,
}

type Spelled = (Callee, Vec<Type>, Vec<ParamArg>, Vec<Type>, Vec<Type>);

impl<'a> View<'a> {
    fn of(graph: &'a GraphData) -> Self {
        Self { types: &graph.types, sigs: &graph.sigs, sites: &graph.sites }
    }

    fn types(&self, ids: &[autobatch_ir::TypeId]) -> Vec<Type> {
        ids.iter().map(|&id| self.types.get(id)).collect()
    }

    fn sig(&self, id: autobatch_ir::SigId) -> Spelled {
        let Signature { callee, operands, params, param_types, results } = self.sigs.get(id);
        let params = params.to_vec();
        (*callee, self.types(operands), params, self.types(param_types), self.types(results))
    }

    fn same_arena(&self, a: &Arena, other: &Self, b: &Arena) {
        assert_eq!(a.len(), b.len());
        assert_eq!(a.operand_pool(), b.operand_pool());
        assert_eq!(self.types(a.value_types()), other.types(b.value_types()));
        for (x, y) in a.nodes().iter().zip(b.nodes()) {
            assert_eq!((x.operands, x.results), (y.operands, y.results));
            assert_eq!(self.sig(x.sig), other.sig(y.sig));
            assert_eq!(self.sites.get(x.site), other.sites.get(y.site));
        }
    }
}

/// Asserts that two graphs differ at most in the ids of types and signatures and in unused entries.
fn assert_same_meaning(a: &GraphData, b: &GraphData) {
    let (x, y) = (View::of(a), View::of(b));
    assert_eq!(a.module.name, b.module.name);
    assert_eq!(a.module.params, b.module.params);
    assert_eq!(a.module.cells.len(), b.module.cells.len());
    for (c, d) in a.module.cells.iter().zip(&b.module.cells) {
        assert_eq!((&c.name, c.site), (&d.name, d.site));
        assert_eq!((c.body.ports, c.body.noise), (d.body.ports, d.body.noise));
        assert_eq!(x.types(&c.body.param_types), y.types(&d.body.param_types));
        assert_eq!(c.body.results, d.body.results);
        x.same_arena(&c.body.arena, &y, &d.body.arena);
    }
    assert_eq!(a.module.exports.len(), b.module.exports.len());
    for (c, d) in a.module.exports.iter().zip(&b.module.exports) {
        assert_eq!((&c.name, x.sig(c.sig)), (&d.name, y.sig(d.sig)));
    }
    x.same_arena(&a.arena, &y, &b.arena);
    assert_eq!(a.sites.items(), b.sites.items());
    assert_eq!((&a.cuts, &a.outputs), (&b.cuts, &b.outputs));
    assert_eq!((&a.shared, &a.alone), (&b.shared, &b.alone));
    assert_eq!(a.bindings.words, b.bindings.words);
    let bits = |graph: &GraphData| graph.bindings.floats.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    assert_eq!(bits(a), bits(b));
    assert_eq!(a.structure(), b.structure());
}

fn assert_round_trip(name: &str, graph: &GraphData) {
    let text = graph.to_text();
    let back = parsed(name, &text);
    assert_same_meaning(graph, &back);
    assert_eq!(back.to_text(), text, "{name}");
    let again = parsed(name, &back.to_text());
    assert!(again == back, "{name}: a graph from text reads back equal");
    assert_eq!(again.structure(), graph.structure());
}

#[test]
fn the_corpus_round_trips() {
    let corpus = corpus();
    assert!(corpus.len() >= 12, "{}", corpus.len());
    for (name, text) in corpus {
        let graph = parsed(&name, &text);
        let back = parsed(&name, &graph.to_text());
        assert!(back == graph, "{name}");
        assert_eq!(back.to_text(), graph.to_text(), "{name}");
        assert_eq!(back.structure(), graph.structure(), "{name}");
    }
}

#[test]
fn canonical_files_print_unchanged() {
    for (name, text) in corpus() {
        if !name.ends_with("handwritten.graph") {
            assert!(parsed(&name, &text).to_text() == text, "{name} prints differently");
        }
    }
}

#[test]
fn every_example_of_the_grammar_page_parses() {
    const PRELUDE: &str = "autobatch graph 2 param @w f32[4,2] param @b f32[2] table @t f32[9,4] graph \
        %x = input f32[4] (#[1, 2, 3, 4]) %m = input f32[2,4] (#[1, 2, 3, 4, 5, 6, 7, 8]) %i = input u32 (#1)\n";
    let page = include_str!("../GRAPH.md");
    let mut fences = page.split("\n```");
    fences.next();
    let (mut examples, mut nodes) = (0, 0);
    for fence in fences.step_by(2) {
        let (kind, text) = fence.split_once('\n').unwrap();
        let text = match kind {
            "graph" => text.to_owned(),
            "apply" => format!("{PRELUDE}{text}"),
            "text" => continue,
            other => panic!("unknown kind of example {other:?}"),
        };
        let graph = parsed("GRAPH.md", &text);
        assert_round_trip("GRAPH.md", &graph);
        examples += 1;
        nodes += graph.arena.len();
    }
    assert!(examples >= 10 && nodes >= 70, "{examples} examples, {nodes} nodes");
}

/// A graph with nested cells, noise, lists, marks, common nodes and every kind of binding.
fn emitted() -> GraphData {
    let mut m = ModuleBuilder::new("mixed \"model\"");
    let embed = m.table("embed", [12, 4], Init::Uniform(0.05));
    let w = m.param("w", [8, 20], Init::Glorot(1.0));
    let b = m.param("b", [20], Init::Values((0..20u8).map(f32::from).collect()));
    let leaf = m.cell("leaf", [INDEX], |g, [word]| [embed.row(word).dropout(0.5), g.zeros([4])]);
    let node = m.cell("node", [f32([4]); 4], |g, [lh, lc, rh, rc]| {
        let [a, i, l, r, o] = g.affine([lh, rh], w, Some(b)).split();
        let c = a.tanh() * i.sigmoid() + l.sigmoid() * lc + r.sigmoid() * rc;
        [o.sigmoid() * c.tanh(), c]
    });
    let pool = m.cell("pool", [list(f32([4])), f32([4])], |_, [xs, q]| [xs.sum() + q, xs.max()]);
    let pair = m.cell("pair", [INDEX, INDEX], |g, [a, b]| {
        let ([ah, ac], [bh, bc]) = (g.call(leaf, a), g.call(leaf, b));
        g.call(node, [ah, ac, bh, bc])
    });
    let g = Graph::new(&m.build().unwrap());
    let zero = g.zeros([4]).shared();
    for key in [3, 1 << 40] {
        g.instance(key);
        let [h, c] = g.call(pair, (3, 4));
        let [leaf_h, _] = g.call(leaf, 5);
        let [h, c] = g.call(node, [h, c, leaf_h, zero]);
        let [sum, max] = g.call(pool, (g.list([h, c, leaf_h]), h));
        let [empty, _] = g.call(pool, (g.empty_list(f32([4])), max.alone()));
        let odd = g.input(&[f32::NAN, -0.0, f32::INFINITY, 1e-45]);
        let masked = (sum + empty * odd).mask(&[true, false, true, true]);
        let [_, places] = masked.top_k(2);
        g.output(&format!("places {key}"), places.cast(DType::F32));
        g.loss(&format!("loss {key}"), masked.cross_entropy(2));
        g.common();
    }
    let both: Value<'_> = [zero, zero].iter().sum();
    let _ = both.dropout(0.25);
    g.finish().unwrap()
}

#[test]
fn an_emitted_graph_round_trips() {
    let graph = emitted();
    assert_round_trip("emitted", &graph);
}

#[test]
fn a_module_round_trips_without_a_graph() {
    let graph = emitted();
    let text = graph.module.to_text();
    let module = Module::from_text(&text).unwrap();
    assert_eq!(module.to_text(), text);
    assert_eq!(*Module::from_text(module.to_text()).unwrap(), *module);
    assert!(Module::from_text(graph.to_text()).is_err());
    assert_eq!(GraphData::from_text(&text).unwrap().arena.len(), 0);
}

#[test]
fn the_printer_renumbers_values() {
    let text = "autobatch graph 2 graph %b.x = fill f32 {value=1} %0 = exp(%b.x) %1 = add(%0, %b.x)";
    let printed = parsed("names", text).to_text();
    assert!(printed.ends_with("  %2: f32 = add(%1, %0)\n"), "{printed}");
}

#[test]
fn the_structure_covers_marks_independent_of_their_place() {
    let text =
        |marks: &str| format!("autobatch graph 2 graph %0 = fill f32 {{value=1}} %1 = exp(%0) {marks}");
    let structure = |marks: &str| parsed("marks", &text(marks)).structure();
    let plain = structure("");
    assert_ne!(structure("shared %0"), plain);
    assert_ne!(structure("shared %0"), structure("shared %1"));
    assert_ne!(structure("alone %0"), structure("shared %0"));
    let early = "autobatch graph 2 graph %0 = fill f32 {value=1} shared %0 %1 = exp(%0)";
    assert_eq!(parsed("marks", early).structure(), structure("shared %0"));
}

#[test]
fn parameter_ports_with_the_same_number_have_types_per_cell() {
    let cell = |name: &str, width: usize| {
        let body = format!("%y: f32[{width}] = affine[@0](%x) %w: f32[4,{width}] = param[@0] return %y, %w");
        format!("cell @{name}[@0: f32[4,{width}]](%x: f32[4]) {{ {body} }}\n")
    };
    let text = format!("autobatch graph 2\n{}{}", cell("narrow", 2), cell("wide", 9));
    assert_round_trip("ports", &parsed("ports", &text));
}

#[test]
fn graphs_with_shared_and_unused_bindings_read_back_with_their_structure() {
    let text = "autobatch graph 2\n\nmodule \"slots\"\n\ntable @t f32[9,2] = uniform(0.1)\n\ngraph\n\
                words [5, 3]\nfloats [0.5, nan, -1]\n\
                instance 7:\n  %0 = input f32[2] (slot 1)\n  %1 = input f32[2] (slot 0)\n\
                  %2: f32[2] = lookup[@t](slot 1)\n  %3: f32[2] = add(%0, %2)\noutput \"y\" %3\n";
    let text = text.replace("nan", "0x7fc00001");
    let graph = parsed("slots", &text);
    graph.verify().unwrap();
    assert_eq!(graph.bindings.words, [5, 3]);
    let again = parsed("slots", &graph.to_text());
    assert_eq!((again.to_text(), again.structure()), (graph.to_text(), graph.structure()));
    let binary = GraphData::from_bytes(&graph.to_bytes()).unwrap();
    assert_eq!((binary.to_text(), binary.structure()), (graph.to_text(), graph.structure()));
    assert!(again == graph && binary == graph);
    // Slots outside of the pools break a rule of graphs, and do not crash the printer.
    let wrong = parsed("slots", &text.replace("slot 1)\n  %1", "slot 2)\n  %1"));
    assert!(wrong.verify().unwrap_err().to_string().contains("exceed a pool of 3"));
    assert!(wrong.to_text().contains("(slot 2)"));
    let in_cell = "autobatch graph 2\nmodule \"m\"\ncell @c() {\n  %0 = input f32 (slot 0)\n  return %0\n}\n";
    let error = GraphData::from_text(in_cell).unwrap_err().to_string();
    assert!(error.contains("numbers cannot be bound inside a cell"), "{error}");
}

#[test]
fn a_byte_order_mark_is_ignored() {
    let text = "autobatch graph 2\nmodule \"m\"\n";
    assert!(parsed("marked", &format!("\u{feff}{text}")) == parsed("plain", text));
}
