//! Every module translates to SPIR-V, MSL and HLSL and keeps to the limits of all devices. This tests texts, not
//! drivers.

use crate::common::{skipped, training};
use crate::lab::Lab;
use crate::models::graph;
use crate::updates::every_rule;
use autobatch_models::catalogue::ENTRIES;
use autobatch_runtime_wgpu::compile::{Target, UpdateOp, UpdateProgram, compile, compile_update};
use autobatch_runtime_wgpu::module::{LoadWidth, Products, Program, Split, Tile, WgradTile};
use autobatch_shaders::{Access, Joins, Library, Numbers, TEMPLATES, Template};
use naga::back::{hlsl, msl, spv};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Bytes of group memory, threads of a group and storage buffers of a stage that every device has.
const LEAST: (u32, u32, usize) = (16 << 10, 256, 8);

/// The capabilities that a module uses.
fn capabilities(text: &str) -> Capabilities {
    let mut wanted = Capabilities::empty();
    wanted.set(Capabilities::SUBGROUP, text.contains("@builtin(subgroup_id)"));
    wanted.set(Capabilities::IMMEDIATES, text.contains("var<immediate>"));
    wanted
}

fn validated(name: &str, text: &str) -> Result<(naga::Module, ModuleInfo), String> {
    let module =
        naga::front::wgsl::parse_str(text).map_err(|error| error.emit_to_string_with_path(text, name))?;
    let info = Validator::new(ValidationFlags::all(), capabilities(text))
        .validate(&module)
        .map_err(|error| error.emit_to_string_with_path(text, name))?;
    Ok((module, info))
}

fn keeps_to_limits(module: &naga::Module) -> Result<(), String> {
    let mut sizes = naga::proc::Layouter::default();
    sizes.update(module.to_ctx()).map_err(|error| error.to_string())?;
    let of_group = |space| space == naga::AddressSpace::WorkGroup;
    let in_group: u32 = module
        .global_variables
        .iter()
        .filter(|(_, variable)| of_group(variable.space))
        .map(|(_, variable)| sizes[variable.ty].size)
        .sum();
    let storage = |space| matches!(space, naga::AddressSpace::Storage { .. });
    let buffers = module.global_variables.iter().filter(|(_, variable)| storage(variable.space)).count();
    let threads: u32 = module.entry_points[0].workgroup_size.iter().product();
    match in_group <= LEAST.0 && threads <= LEAST.1 && buffers <= LEAST.2 {
        true => Ok(()),
        false => Err(format!("{in_group} bytes of group memory, {threads} threads, {buffers} buffers")),
    }
}

fn translated(module: &naga::Module, info: &ModuleInfo) -> Result<Vec<u32>, String> {
    // Subgroup operations need SPIR-V 1.3 (Vulkan 1.1), Metal 2.1 and shader model 6.
    let options = spv::Options { lang_version: (1, 3), ..spv::Options::default() };
    let words = spv::write_vec(module, info, &options, None).map_err(|error| error.to_string())?;
    let options =
        msl::Options { fake_missing_bindings: true, lang_version: (2, 1), ..msl::Options::default() };
    msl::write_string(module, info, &options, &msl::PipelineOptions::default())
        .map_err(|error| error.to_string())?;
    let mut text = String::new();
    let options = hlsl::Options {
        shader_model: hlsl::ShaderModel::V6_0,
        immediates_target: Some(hlsl::BindTarget::default()),
        ..hlsl::Options::default()
    };
    hlsl::Writer::new(&mut text, &options, &hlsl::PipelineOptions::default())
        .write(module, info, None)
        .map_err(|error| error.to_string())?;
    Ok(words)
}

/// The error of newer validators on arrays in group memory. naga writes their stride, which matters only for memory
/// with an explicit layout (gfx-rs/wgpu#7696). These validators stop there; older ones check the rest.
const STRIDE_OF_GROUP: [&str; 2] = ["VUID-StandaloneSpirv-None-10684", "the Workgroup storage class"];

/// Whether `spirv-val` accepts the words, except for [`STRIDE_OF_GROUP`]. `None` if it is not installed, or too old
/// for them.
fn accepted(words: &[u32]) -> Option<Result<(), String>> {
    let mut child = Command::new("spirv-val")
        .args(["--target-env", "vulkan1.1", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .ok()?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    child.stdin.take()?.write_all(&bytes).ok()?;
    let output = child.wait_with_output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("Invalid capability operand") {
        skipped(&format!("spirv-val is older than a module: {}", said.trim()));
        return None;
    }
    let known = STRIDE_OF_GROUP.iter().all(|words| said.contains(words));
    Some(if output.status.success() || known { Ok(()) } else { Err(said) })
}

/// A program, and for products the variants for other numbers of rows and other weights.
fn in_every_shape(program: &Program) -> Vec<Program> {
    let Program::Products(products) = program else { return vec![program.clone()] };
    let mut shapes = BTreeSet::new();
    for tile in Tile::ALL {
        for load in LoadWidth::ALL {
            for packed in [false, true] {
                let load = tile.load(load);
                shapes.insert(Program::Products(Products { tile, load, packed, ..products.clone() }));
            }
        }
    }
    shapes.into_iter().collect()
}

#[test]
fn every_module_translates_within_the_minimum_limits() {
    let mut programs: BTreeSet<Program> = fixed_programs();
    for entry in &ENTRIES {
        let (graph, losses) = graph(entry);
        let compiled = compile(&training(&graph, &losses), Target::MINIMUM).expect("fits the minimum device");
        programs.extend(compiled.programs.iter().flat_map(|program| in_every_shape(program)));
    }
    let kinds = [
        programs.iter().filter(|program| matches!(program, Program::Map(_))).count(),
        programs.iter().filter(|program| matches!(program, Program::Products(_))).count(),
    ];
    assert!(kinds[0] >= 5 && kinds[1] >= 10 * 2 * (2 + 1 + 3 * 3), "{kinds:?}");
    let updates = updates();
    assert!(updates.len() >= 12, "{}", updates.len());
    let cut = Split { arena: 4, params: 3, shift: 20 };
    for exact in [false, true] {
        let library = Library::new(exact, Joins::Memory);
        for joins in [Joins::Eight, Joins::Sixteen] {
            let library = Library::new(exact, joins);
            for program in programs.iter().filter(|program| matches!(program, Program::Row(_))) {
                translates("row", &program.text(&library, Split::ONE), !exact);
            }
        }
        let immediate = library.clone().with(Numbers::Immediate);
        for program in &programs {
            translates(program.template().name, &program.text(&immediate, Split::ONE), false);
            for split in [Split::ONE, cut] {
                let name = program.template().name;
                translates(name, &program.text(&library, split), !exact && split == Split::ONE);
            }
        }
        for program in fixed_programs() {
            translates(program.template().name, &program.text(&immediate, Split::ONE), !exact);
        }
        for program in &updates {
            translates(program.template.name, &program.text(&library), !exact);
        }
        for split in [Split::ONE, cut] {
            translates("sparse_rows", &split.sparse_rows(&library), !exact);
        }
    }
}

/// Every program of a plan without generated code.
fn fixed_programs() -> BTreeSet<Program> {
    let generated = ["map", "row", "prod_few", "prod_four", "prod_tile", "wgrad", "wgrad_tile"];
    let is_fixed =
        |template: &&Template| template.access == Access::Plan && !generated.contains(&template.name);
    let templates = TEMPLATES.iter().filter(is_fixed).map(|&template| Program::Fixed(template));
    let library = Library::new(false, Joins::Memory);
    let rows = library.names().filter(|name| name.starts_with("store_")).map(Program::Row);
    templates.chain(rows).chain(WgradTile::ALL.map(Program::Wgrad)).collect()
}

/// The programs of every optimiser.
fn updates() -> BTreeSet<UpdateProgram> {
    let mut programs = BTreeSet::new();
    for optimizer in every_rule() {
        let updates = compile_update(Lab::new(optimizer).plan()).expect("an update plan");
        programs.extend(updates.ops.iter().flat_map(UpdateOp::programs).cloned());
    }
    programs
}

/// `spirv-val` is a process per module, so it checks one variant of each text.
#[track_caller]
fn translates(name: &str, text: &str, is_accepted: bool) {
    let checked = validated(name, text).and_then(|(module, info)| {
        keeps_to_limits(&module)?;
        let words = translated(&module, &info)?;
        let known = if is_accepted { accepted(&words) } else { None };
        known.unwrap_or(Ok(()))
    });
    if let Err(error) = checked {
        panic!("{name}: {error}\n{text}");
    }
}
