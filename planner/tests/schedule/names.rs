//! Policies by name.

use autobatch_planner::schedule::*;

#[test]
fn every_spelling_parses_and_prints_itself() {
    for spelling in Policy::SPELLINGS {
        let policy: Policy = spelling.parse().expect("a listed spelling");
        assert_eq!(policy.to_string(), spelling);
    }
    assert_eq!("beam".parse(), Ok(Policy::Beam(8)));
}

#[test]
fn unknown_names_list_the_known_ones() {
    for text in ["", "Ratio", "beam:0", "beam:x", "beam:99999", "fsm", "fsm:", "agenda:mean", "none:1"] {
        let error = text.parse::<Policy>().expect_err(text).to_string();
        assert!(error.contains(&format!("`{text}`")), "{error}");
        assert!(Policy::SPELLINGS.iter().all(|spelling| error.contains(spelling)), "{error}");
    }
}

#[test]
fn the_error_for_a_missing_table_names_the_file() {
    let policy: Policy = "fsm:no/such/table.json".parse().expect("a policy");
    let Err(error) = policy.load() else { panic!("the file must not exist") };
    assert!(error.to_string().contains("no/such/table.json"), "{error}");
}

#[test]
fn the_name_of_a_policy_begins_its_spelling() {
    for spelling in Policy::SPELLINGS.iter().filter(|spelling| !spelling.starts_with("fsm")) {
        let policy = spelling.parse::<Policy>().expect("a policy").load().expect("needs no file");
        assert!(spelling.starts_with(policy.name()), "{spelling} is called {}", policy.name());
    }
}
