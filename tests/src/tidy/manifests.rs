//! Rules for manifests: the allowed dependencies of each crate, and a description of each dependency.

use serde_json::Value as Json;
use std::process::Command;

/// A crate of the workspace with its dependencies.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// The names of its dependencies without those of its tests.
    pub dependencies: Vec<String>,
}

/// Returns the workspace's manifests as cargo reads them.
///
/// # Panics
/// Panics if cargo cannot read them.
#[must_use]
pub fn manifests() -> Vec<Manifest> {
    let arguments = ["metadata", "--offline", "--no-deps", "--format-version", "1"];
    let metadata = cargo_json(&arguments);
    let packages = metadata["packages"].as_array().expect("the metadata lists packages");
    packages.iter().map(manifest).collect()
}

/// Runs cargo and parses its output as JSON.
///
/// # Panics
/// Panics with cargo's error output if cargo fails.
pub(crate) fn cargo_json(arguments: &[&str]) -> Json {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(super::root()).output();
    let output = output.expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {} failed: {said}", arguments.join(" "));
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

fn manifest(package: &Json) -> Manifest {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let dependencies = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
    Manifest {
        name: text(&package["name"]),
        dependencies: dependencies.map(|dependency| text(&dependency["name"])).collect(),
    }
}

/// Returns a complaint for each dependency between workspace crates that no line of `arrows` allows. A crate
/// without a line is a complaint too; `"*"` allows everything.
#[must_use]
pub fn forbidden_arrows(manifests: &[Manifest], arrows: &[(&str, &[&str])]) -> Vec<String> {
    let ours = |name: &str| manifests.iter().any(|manifest| manifest.name == name);
    let mut complaints = Vec::new();
    for Manifest { name, dependencies } in manifests {
        let Some((_, allowed)) = arrows.iter().find(|(from, _)| from == name) else {
            complaints.push(format!(
                "{name}/Cargo.toml: list the allowed dependencies of {name} in the table of arrows"
            ));
            continue;
        };
        for dependency in dependencies.iter().filter(|dependency| ours(dependency)) {
            if !allowed.contains(&dependency.as_str()) && !allowed.contains(&"*") {
                complaints.push(format!(
                    "{name}/Cargo.toml: {name} must not use {dependency}; move shared code to a lower crate"
                ));
            }
        }
    }
    complaints
}

/// Returns a complaint for each dependency of the workspace that the text does not name in backticks.
#[must_use]
pub fn undescribed_dependencies(root_manifest: &str, architecture: &str) -> Vec<String> {
    let section =
        root_manifest.lines().enumerate().skip_while(|(_, line)| *line != "[workspace.dependencies]");
    let lines = section.skip(1).take_while(|(_, line)| !line.starts_with('['));
    lines
        .filter(|(_, line)| !line.contains("path ="))
        .filter_map(|(number, line)| Some((number + 1, line.split_once('=')?.0.trim())))
        .filter(|(_, name)| !name.is_empty() && !name.starts_with('#'))
        .filter(|(_, name)| !architecture.contains(&format!("`{name}`")))
        .map(|(number, name)| {
            format!("Cargo.toml:{number}: ARCHITECTURE.md must describe `{name}`, in backticks")
        })
        .collect()
}
