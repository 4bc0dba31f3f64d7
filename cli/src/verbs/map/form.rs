//! The forms of shards: JSON Lines and Parquet.

use crate::args::FormArg;
use crate::failure::Failure;
use autobatch_models::lessons::Answer;
use std::fmt::Write as _;

impl FormArg {
    /// The extension of the files.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }

    /// Rejects a form that this build does not have.
    pub(super) fn check(self) -> Result<(), Failure> {
        match self {
            Self::Parquet if !cfg!(feature = "parquet") => {
                let message = "this command was built without Parquet";
                Err(Failure::usage(message).help("build it with --features parquet, or write JSON Lines"))
            }
            Self::Jsonl | Self::Parquet => Ok(()),
        }
    }

    /// The bytes of a shard.
    pub(super) fn bytes_of(self, answers: &[Answer]) -> Result<Vec<u8>, Failure> {
        let lines = lines_of(answers);
        match self {
            Self::Jsonl => Ok(lines.into_bytes()),
            Self::Parquet => parquet_of(&lines),
        }
    }
}

/// The answers as JSON, one to a line.
fn lines_of(answers: &[Answer]) -> String {
    let mut lines = String::new();
    for answer in answers {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{}", answer.json);
    }
    lines
}

/// A Parquet file with a row for each line. Its columns are the names of the objects.
#[cfg(feature = "parquet")]
fn parquet_of(lines: &str) -> Result<Vec<u8>, Failure> {
    use arrow_json::ReaderBuilder;
    use arrow_json::reader::infer_json_schema;
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;
    use std::sync::Arc;

    let failed =
        |error: &dyn std::fmt::Display| Failure::input(format!("the answers have no Parquet form: {error}"));
    let (schema, _) = infer_json_schema(lines.as_bytes(), None).map_err(|error| failed(&error))?;
    let schema = Arc::new(schema);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties))
        .map_err(|error| failed(&error))?;
    for batch in ReaderBuilder::new(schema).build(lines.as_bytes()).map_err(|error| failed(&error))? {
        let batch = batch.map_err(|error| failed(&error))?;
        writer.write(&batch).map_err(|error| failed(&error))?;
    }
    writer.into_inner().map_err(|error| failed(&error))
}

/// This build has no Parquet; [`FormArg::check`] says so before any work.
#[cfg(not(feature = "parquet"))]
fn parquet_of(_: &str) -> Result<Vec<u8>, Failure> {
    FormArg::Parquet.check().map(|()| Vec::new())
}
