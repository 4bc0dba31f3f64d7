//! Links between pages: their files and headings exist, and the summary of the guide lists every page.

use crate::{files, root};
use std::path::{Path, PathBuf};

/// Every page of the repository.
fn pages() -> Vec<PathBuf> {
    let folders = ["", "bench", "docs/src", "ir", "runtime-cpu", "runtime-wgpu"];
    folders.iter().flat_map(|folder| files(&root().join(folder), "md")).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of a page outside of fenced blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    page.lines().filter(move |line| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// The targets of all links of a page: `[text](target)` and `[name]: target`.
fn targets(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(page) {
        if let Some((_, target)) = line.split_once("]: ").filter(|_| line.starts_with('[')) {
            found.push(target.trim().to_owned());
            continue;
        }
        // Spans of code contain no links.
        let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        found.extend(text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned));
    }
    found
}

/// The name by which links reach a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Returns a complaint for each link of a page that leads nowhere. `read` returns the text of an existing file.
fn dead_links(path: &Path, page: &str, read: impl Fn(&Path) -> Option<String>) -> Vec<String> {
    let is_dead = |target: &String| {
        if target.contains("://") {
            return false;
        }
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let folder = path.parent().expect("a page lies in a folder");
        let text = if file.is_empty() { Some(page.to_owned()) } else { read(&folder.join(file)) };
        let Some(text) = text else { return true };
        let has_heading = || {
            prose(&text).any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == heading)
        };
        !heading.is_empty() && !has_heading()
    };
    let complain = |target: String| format!("{}: {target} does not exist", path.display());
    targets(page).into_iter().filter(is_dead).map(complain).collect()
}

#[test]
fn every_link_leads_to_an_existing_file_and_heading() {
    let exists = |path: &Path| match path.is_dir() {
        true => Some(String::new()),
        false => std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    };
    let complaints: Vec<String> =
        pages().iter().flat_map(|path| dead_links(path, &read(path), exists)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn the_rule_for_links_finds_missing_files_and_headings() {
    let page = "# One two\n[a](#one-two) [b](other.md) [c](https://example.org/x)\n`[d](gone.md)`\n";
    let read = |path: &Path| path.ends_with("other.md").then(|| "# Three".to_owned());
    let dead = |page: &str| dead_links(Path::new("docs/page.md"), page, read);
    assert_eq!(dead(page), Vec::<String>::new());
    assert_eq!(dead("[a](#three)").len(), 1);
    assert_eq!(dead("[a](other.md#four) [b](gone.md)").len(), 2);
    assert_eq!(dead("[a]: gone.md").len(), 1);
}

#[test]
fn the_summary_of_the_guide_lists_every_page_once() {
    let summary = read(&root().join("docs/src/SUMMARY.md"));
    let mut listed = targets(&summary);
    listed.sort();
    let name = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let mut pages: Vec<String> = files(&root().join("docs/src"), "md").iter().filter_map(name).collect();
    pages.retain(|page| page != "SUMMARY.md");
    pages.sort();
    assert_eq!(listed, pages);
}
