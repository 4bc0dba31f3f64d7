//! Licences and duplicates of the crates that the workspace builds with.

use crate::tidy::cargo_json;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::process::Command;

/// A crate of the build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence expression, if it states one.
    pub licence: Option<String>,
}

/// Returns every crate that builds for the host target, from the registry or the workspace.
///
/// # Panics
/// Panics if cargo cannot list the crates offline, or if the lock file is out of date.
#[must_use]
pub fn packages() -> Vec<Package> {
    let host = host();
    let metadata = cargo_json(&[
        "metadata",
        "--offline",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        &host,
    ]);
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().expect("the metadata lists packages");
    let package = |package: &Json| Package {
        name: text(&package["name"]),
        version: text(&package["version"]),
        licence: package["license"].as_str().map(str::to_owned),
    };
    packages.iter().map(package).collect()
}

/// Returns the compiler's default target. Crates of other targets need not be present.
fn host() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().expect("the compiler runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("the compiler names its host").to_owned()
}

/// Returns a complaint for each crate whose licence expression the allowed licences do not satisfy.
#[must_use]
pub fn refused_licences(packages: &[Package], allowed: &[&str]) -> Vec<String> {
    let judge = |package: &Package| -> Option<String> {
        let Package { name, version, licence } = package;
        let Some(licence) = licence else {
            return Some(format!("{name} {version}: states no licence; check it before using the crate"));
        };
        match permits(licence, allowed) {
            Ok(true) => None,
            Ok(false) => {
                Some(format!("{name} {version}: {licence:?} is not an allowed licence; remove the crate"))
            }
            Err(error) => Some(format!("{name} {version}: {licence:?} is not a licence expression: {error}")),
        }
    };
    packages.iter().filter_map(judge).collect()
}

/// Returns a complaint for each crate in several versions without a reason, and for each superfluous reason.
#[must_use]
pub fn unexplained_duplicates(packages: &[Package], reasons: &[(&str, &str)]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    let several = versions.iter().filter(|(_, versions)| versions.len() > 1);
    let explained = |name: &str| reasons.iter().any(|(known, reason)| *known == name && !reason.is_empty());
    several
        .filter(|(name, _)| !explained(name))
        .map(|(name, versions)| {
            format!("{name}: {}; use one version, or list a reason", versions.join(" and "))
        })
        .collect()
}

/// Returns whether the allowed licences satisfy a licence expression. `A OR B` needs one of them, `A AND B`
/// needs both, and `A/B` is the old spelling of OR.
///
/// # Errors
/// Returns an error if the text is not an expression of this simple form.
pub fn permits(expression: &str, allowed: &[&str]) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let met = parser.either()?;
    match parser.words {
        [] => Ok(met),
        [word, ..] => Err(format!("expected AND, OR or the end, found {word:?}")),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a [&'a str],
}

impl Parser<'_> {
    fn next_is(&mut self, word: &str) -> bool {
        let is = self.words.first().is_some_and(|next| next.eq_ignore_ascii_case(word));
        if is {
            self.words = &self.words[1..];
        }
        is
    }

    fn either(&mut self) -> Result<bool, String> {
        let mut met = self.both()?;
        while self.next_is("OR") {
            met |= self.both()?;
        }
        Ok(met)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut met = self.one()?;
        while self.next_is("AND") {
            met &= self.one()?;
        }
        Ok(met)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.next_is("(") {
            let met = self.either()?;
            return if self.next_is(")") { Ok(met) } else { Err("a parenthesis is not closed".to_owned()) };
        }
        let [name, rest @ ..] = self.words else {
            return Err("expected a licence, found the end".to_owned());
        };
        if ["AND", "OR", "WITH", ")"].contains(name) {
            return Err(format!("expected a licence, found {name:?}"));
        }
        self.words = rest;
        let mut full = (*name).to_owned();
        if self.next_is("WITH") {
            let [exception, rest @ ..] = self.words else {
                return Err("expected an exception, found the end".to_owned());
            };
            full = format!("{name} WITH {exception}");
            self.words = rest;
        }
        Ok(self.allowed.contains(&full.as_str()))
    }
}
