//! Tests of the examination.

use super::*;
use autobatch::runtime_wgpu::GpuError;
use std::sync::mpsc;

/// The report of an examination, or `None` without an adapter.
fn examined(options: &Options) -> Option<Report> {
    match Executor::new(gpu::Options { selector: options.selector.clone(), ..gpu::Options::default() }) {
        Ok(_) => {}
        Err(error @ GpuError::NoAdapter { .. }) => {
            let required = std::env::var_os("AUTOBATCH_REQUIRE_GPU").is_some_and(|value| value == "1");
            assert!(!required, "AUTOBATCH_REQUIRE_GPU is 1: {error}");
            eprintln!("SKIPPED, no GPU was examined: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    Some(examine(options, |_| {}, |report| panic!("{}", report.text())).expect("examines"))
}

/// Checks that a value has the form of an example: the same keys and types, and elements of the form of the first.
fn has_form(found: &Json, form: &Json, at: &str) {
    match (found, form) {
        (Json::Object(found), Json::Object(form)) => {
            for (key, form) in form {
                let found = found.get(key).unwrap_or_else(|| panic!("{at} lacks {key}"));
                has_form(found, form, &format!("{at}.{key}"));
            }
        }
        (Json::Array(found), Json::Array(form)) => {
            let Some(form) = form.first() else { return };
            assert!(!found.is_empty(), "{at} is empty");
            found.iter().for_each(|found| has_form(found, form, at));
        }
        // A measurement that the device cannot make.
        (Json::Null, Json::Null) => {}
        (_, Json::Null) => {}
        (Json::Number(_), Json::Number(_))
        | (Json::String(_), Json::String(_))
        | (Json::Bool(_), Json::Bool(_)) => {}
        _ => panic!("{at} is {found}, expected the form of {form}"),
    }
}

#[test]
fn a_report_has_every_section_in_its_form() {
    let file = std::env::temp_dir().join(format!("autobatch-report-{}.json", std::process::id()));
    let options = Options { file: Some(file.clone()), ..Options::default() };
    let Some(report) = examined(&options) else { return };
    let text = std::fs::read_to_string(&file).expect("it was written");
    std::fs::remove_file(&file).expect("it was written here");
    let written: Json = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(written, report.json(), "the file holds the last state");
    assert!(report.complete && written["complete"] == true, "{}", report.text());
    let of = |name: &str| written["sections"][name].clone();
    for (name, _) in SECTIONS {
        assert!(of(name).get("error").is_none(), "{name}: {}", of(name));
        assert!(of(name)["seconds"].is_number(), "{name}");
    }
    has_form(
        &written,
        &json!({
            "format": "", "version": "", "date": 0, "device": "", "findings": [], "expected_sections": [""],
            "sections": {
                "identity": {
                    "name": "", "kind": "", "backend": "", "driver": "", "limits": { "binding bytes": 0 }, "features": [],
                    "adapters": [{ "number": 0, "name": "" }], "environment": {}, "driver_files": [], "libraries": [],
                    "system": { "os": "", "architecture": "", "threads": 0 },
                },
                "arithmetic": {
                    "fused": 0, "contracted": 0, "division_ulp": 0, "keeps_order": true, "keeps_denormals": true, "turns": 0,
                    "special": [{ "expression": "", "found": "", "holds": true }],
                },
                "self_test": { "variants": [{ "variant": "", "compared": 0, "same_bits": 0, "max_error": 0, "same_when_repeated": true }] },
                "models": { "models": [{
                    "model": "", "max_error": 0, "max_gradient_error": 0, "gradients": {}, "repeats": true, "same_alone": true,
                }] },
                "latencies": { "submission": 0, "read_back": 0, "dispatch": 0, "load": 0, "uploads": [{ "bytes": 0, "seconds": 0 }] },
                "roofs": { "multiply_adds": 0, "copy": 0, "groups": 0 },
                "kernels": { "products": [] },
                "steps": { "steps": [{
                    "model": "", "mode": "", "gpu": 0, "cpu": 0, "device": 0, "idle": 0, "predicted": 0, "dispatches": 0,
                    "phases": { "compile": 0, "upload": 0, "encode": 0, "wait": 0 }, "templates": [],
                }] },
                "pipelines": { "cold": 0, "warm": 0, "pipelines": 0 },
                "memory": { "given": 0, "end": "", "allocated": [null] },
                "loss": { "reported": true, "reopened": 0, "same_results": true },
            },
        }),
        "the report",
    );
    let is_software = written["sections"]["identity"]["kind"] == "software";
    assert!(report.findings().len() <= usize::from(is_software), "{:?}", report.findings());
    let models = written["sections"]["models"]["models"].as_array().expect("a table").len();
    assert_eq!(models, autobatch_models::catalogue::ENTRIES.len());
    let text = report.text();
    for word in ["treelstm", "TFLOP/s", "submission", "reopened after a loss"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
}

#[test]
fn a_device_that_is_taken_away_still_leaves_a_report() {
    let file = std::env::temp_dir().join(format!("autobatch-lost-{}.json", std::process::id()));
    let options = Options { file: Some(file.clone()), lost_from: Some("models"), ..Options::default() };
    let Some(report) = examined(&options) else { return };
    let written: Json =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("written")).expect("JSON");
    std::fs::remove_file(&file).expect("it was written here");
    assert!(!report.is_healthy() && written["findings"].as_array().is_some_and(|found| found.len() >= 5));
    assert!(
        report.section("self_test").is_some_and(|section| section.get("error").is_none()),
        "{}",
        report.text()
    );
    for name in ["models", "latencies", "kernels", "steps", "pipelines"] {
        let error = written["sections"][name]["error"].as_str().unwrap_or_default();
        assert!(error.contains("lost"), "{name}: {}", written["sections"][name]);
    }
    assert!(report.text().contains("finding: models ended early: the device was lost"), "{}", report.text());
}

#[test]
fn silence_is_noticed_once_and_signs_of_life_are_passed_on() {
    let (told, signs) = mpsc::channel();
    let (gave_up, silence) = mpsc::channel();
    let watcher = Watcher::start(
        Duration::from_secs(1),
        move |sign| told.send(sign.to_owned()).expect("the test listens"),
        move |last, _| gave_up.send(last.to_owned()).expect("the test listens"),
    );
    watcher.beat("first");
    watcher.beat("second");
    assert_eq!([signs.recv(), signs.recv()].map(|sign| sign.expect("it was told")), ["first", "second"]);
    assert_eq!(silence.recv().expect("nothing was heard"), "second");
    watcher.beat("too late");
    drop(watcher);
    assert!(silence.recv().is_err(), "it gives up once");
}
