//! `models`: lists the models of the catalogue.

use crate::console::Console;
use crate::failure::{Answer, Failure};
use autobatch_inspector::text::wrapped_table;
use autobatch_models::catalogue::{Corpus, ENTRIES, Entry};
use serde_json::json;
use std::io::Write;

/// Lists every model with its corpus, the files of the corpus and the scores.
pub fn models(json: bool, console: &mut Console<'_>) -> Result<Answer, Failure> {
    if json {
        let models: Vec<serde_json::Value> = ENTRIES.iter().map(document).collect();
        writeln!(console, "{:#}", json!({ "models": models }))?;
        return Ok(Answer::Yes);
    }
    let mut rows = vec![["name", "model", "scores", "corpus: files of --data"].map(str::to_owned).to_vec()];
    for Entry { name, about, corpus: Corpus { name: corpus, files, metrics }, .. } in ENTRIES {
        rows.push([name, about, metrics, &format!("{corpus}: {files}")].map(str::to_owned).to_vec());
    }
    let text = wrapped_table(&rows, console.width());
    console.write_all(text.as_bytes())?;
    writeln!(
        console,
        "Files in brackets are optional. Next: autobatch run names   |   autobatch train names"
    )?;
    Ok(Answer::Yes)
}

fn document(entry: &Entry) -> serde_json::Value {
    let Entry { name, letter, about, unit, hidden, embedding, corpus, .. } = entry;
    json!({
        "name": name, "model": about, "letter": letter, "instances": unit, "hidden": hidden,
        "embedding": embedding, "corpus": corpus.name, "files": corpus.files, "scores": corpus.metrics,
    })
}
