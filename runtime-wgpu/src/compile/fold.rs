//! Folds over lists, and their derivatives.

use super::record::Record;
use super::step::Lanes;
use crate::error::GpuError;
use crate::module::Program;
use autobatch_ir::graph::{ListFold, Op};
use autobatch_ir::plan::{ListSource, RegId, Stage, View};
use autobatch_shaders::{
    ATTEND, ATTEND_GRAD, ATTEND_PULL, GRAPH_ATTEND, GRAPH_ATTEND_GRAD, GRAPH_ATTEND_PULL, SEG_FOLD,
    SEG_FOLD_GRAD, Template, WEIGHTED_SUM, WEIGHTED_SUM_GRAD,
};

/// The number of a fold of one list.
const fn one_list(op: Op) -> u32 {
    match op {
        Op::ListFold(ListFold::Mean) => 1,
        Op::ListFold(ListFold::Max) => 2,
        Op::ListFold(ListFold::LogSumExp) => 4,
        Op::ListFold(ListFold::ArgMax) => 5,
        Op::ListPick => 6,
        // A sum; rule P13 allows no other op with one list.
        _ => 0,
    }
}

/// The number of the gradient of a mean in one row for all its values.
const SHARED_MEAN: u32 = 3;

/// A kind of attention.
struct Kind {
    /// The bits of its scale or slope.
    number: u32,
    /// The numbers of scratch space for an item.
    heads: u64,
    /// Forward, for queries, for keys and values.
    templates: [Template; 3],
}

/// The kind of an attention whose query or key is a view; `None` if the op is none.
fn kind(op: Op, key: View) -> Option<Kind> {
    match op {
        Op::Attend { scale } => {
            Some(Kind { number: scale.bits(), heads: 1, templates: [ATTEND, ATTEND_GRAD, ATTEND_PULL] })
        }
        Op::GraphAttend { slope } => {
            let templates = [GRAPH_ATTEND, GRAPH_ATTEND_GRAD, GRAPH_ATTEND_PULL];
            Some(Kind { number: slope.bits(), heads: key.width.into(), templates })
        }
        _ => None,
    }
}

/// Adds the segment of a fold over lists.
pub(super) fn lower(lanes: &mut Lanes<'_, '_>, stage: &Stage) -> Result<(), GpuError> {
    let Stage::Seg { op, query, lists, elements, dst } = stage else { return Ok(()) };
    let to = lanes.address(*dst);
    match (*op, lists.as_slice()) {
        (Op::ListFold(_) | Op::ListPick, [values]) => {
            let mut record = Record::new(&[dst.width, one_list(*op)]);
            let late = list(lanes, &mut record, values)?;
            record.all(&to).all(&query.map_or([0; 4], |index| lanes.address(index)));
            views(lanes, &mut record, &[late], &[values]);
            lanes.segment(Program::Fixed(SEG_FOLD), &record, dst.width)
        }
        (Op::WeightedSum { softmax }, [scores, values]) => {
            let wide = elements[0].shape.elements() as u32;
            let mut record = Record::new(&[dst.width, u32::from(softmax), wide]);
            let late = [list(lanes, &mut record, scores)?, list(lanes, &mut record, values)?];
            record.all(&to);
            views(lanes, &mut record, &late, &[scores, values]);
            lanes.segment(Program::Fixed(WEIGHTED_SUM), &record, dst.width)
        }
        (Op::Attend { .. } | Op::GraphAttend { .. }, [keys, values]) => {
            let Some(query) = *query else { return Ok(()) };
            let Some(Kind { number, heads, templates: [template, ..] }) = kind(*op, query) else {
                return Ok(());
            };
            let scores = lanes.more_scratch(items(lanes, keys) * heads)?;
            let mut record = Record::new(&[1, query.width, dst.width, number, scores]);
            record.all(&lanes.address(query));
            let late = [list(lanes, &mut record, keys)?, list(lanes, &mut record, values)?];
            record.all(&to);
            views(lanes, &mut record, &late, &[keys, values]);
            lanes.segment(Program::Fixed(template), &record, 1)
        }
        // Rule P13 allows no other op.
        _ => Ok(()),
    }
}

/// Adds the segment of the derivative of a fold.
pub(super) fn lower_gradient(lanes: &mut Lanes<'_, '_>, stage: &Stage) -> Result<(), GpuError> {
    let Stage::SegGrad { op, query, lists, elements, dy, dsts } = stage else { return Ok(()) };
    let ports: Vec<ListSource> = lists.iter().map(|&port| ListSource::Port(port)).collect();
    let edges: Vec<[u32; 3]> =
        dsts.iter().map(|&reg| lanes.edges(reg).map_or([0; 3], |(at, offsets)| [1, at, offsets])).collect();
    let dy_at = lanes.address(*dy);
    match (*op, ports.as_slice(), edges.as_slice()) {
        (Op::ListFold(_) | Op::ListPick, [values], [[1, at, offsets]]) => {
            let mut record = Record::new(&[dy.width, one_list(*op)]);
            list(lanes, &mut record, values)?;
            record.all(&dy_at).push(*at).push(*offsets);
            record.all(&query.map_or([0; 4], |index| lanes.address(index)));
            lanes.segment(Program::Fixed(SEG_FOLD_GRAD), &record, dy.width)
        }
        (Op::WeightedSum { softmax }, [scores, values], [of_scores, of_values]) => {
            let wide = elements[0].shape.elements() as u32;
            let words = items(lanes, scores) * u64::from(wide);
            let weights = lanes.more_scratch(2 * words)?;
            let slopes = weights + words as u32;
            let mut record = Record::new(&[1, u32::from(softmax), wide, dy.width, weights, slopes]);
            list(lanes, &mut record, scores)?;
            list(lanes, &mut record, values)?;
            record.all(&dy_at).all(of_scores).all(of_values);
            lanes.segment(Program::Fixed(WEIGHTED_SUM_GRAD), &record, 1)
        }
        _ => Ok(()),
    }
}

/// Adds the segment of the gradient of a mean, one row for all its values.
pub(super) fn lower_mean_gradient(
    lanes: &mut Lanes<'_, '_>,
    port: RegId,
    dy: View,
    dst: View,
) -> Result<(), GpuError> {
    let mut record = Record::new(&[dy.width, SHARED_MEAN]);
    list(lanes, &mut record, &ListSource::Port(port))?;
    record.all(&lanes.address(dy)).all(&lanes.address(dst));
    lanes.segment(Program::Fixed(SEG_FOLD_GRAD), &record, dy.width)
}

/// Adds the segment of the reverse of attention for queries.
pub(super) fn lower_attention_gradient(lanes: &mut Lanes<'_, '_>, stage: &Stage) -> Result<(), GpuError> {
    let &Stage::AttendGrad { op, query, keys, values, dy, dst, reader } = stage else { return Ok(()) };
    let Some(Kind { number, heads, templates: [_, template, _] }) = kind(op, query) else { return Ok(()) };
    let [keys, values] = [keys, values].map(ListSource::Port);
    let words = items(lanes, &keys) * heads;
    let weights = lanes.more_scratch(2 * words)?;
    let slopes = weights + words as u32;
    let mut record = Record::new(&[1, query.width, dy.width, number, weights, slopes]);
    record.all(&lanes.address(query));
    list(lanes, &mut record, &keys)?;
    list(lanes, &mut record, &values)?;
    record.all(&lanes.address(dy));
    wanted(lanes, &mut record, [dst, reader]);
    lanes.segment(Program::Fixed(template), &record, 1)
}

/// Adds the segment of the reverse of attention for keys and values.
pub(super) fn lower_pull(lanes: &mut Lanes<'_, '_>, stage: &Stage) -> Result<(), GpuError> {
    let &Stage::AttendPull { op, key, value, readers, key_dst, value_dst } = stage else { return Ok(()) };
    let Some(Kind { number, heads, templates: [.., template] }) = kind(op, key) else { return Ok(()) };
    let readers = ListSource::Port(readers);
    let words = items(lanes, &readers) * heads;
    let weights = lanes.more_scratch(2 * words)?;
    let slopes = weights + words as u32;
    let mut record = Record::new(&[1, key.width, value.width, number, weights, slopes]);
    record.all(&lanes.address(key)).all(&lanes.address(value));
    list(lanes, &mut record, &readers)?;
    wanted(lanes, &mut record, [key_dst, value_dst]);
    lanes.segment(Program::Fixed(template), &record, 1)
}

/// Writes whether two results are computed, and where.
pub(super) fn wanted(lanes: &Lanes<'_, '_>, record: &mut Record, dsts: [Option<View>; 2]) {
    for dst in dsts {
        record.push(u32::from(dst.is_some())).all(&dst.map_or([0; 4], |dst| lanes.address(dst)));
    }
}

/// Writes a list. Returns the word that will hold the position of its views.
fn list(lanes: &mut Lanes<'_, '_>, record: &mut Record, list: &ListSource) -> Result<u32, GpuError> {
    match list {
        ListSource::Port(port) => {
            if let Some(field) = lanes.operand(*port).field() {
                let (base, width) = lanes.build.layout.field(field);
                let [mark, lists, items] = lanes.lists(*port)?;
                record.all(&[mark, base, lists, items, width]);
            }
            Ok(0)
        }
        ListSource::Views(views) => {
            let at = record.len() + 1;
            record.all(&[views.len() as u32, 0, 0, 0, 0]);
            Ok(at)
        }
    }
}

/// Writes the addresses of the views of lists at the end of the record.
fn views(lanes: &Lanes<'_, '_>, record: &mut Record, late: &[u32], lists: &[&ListSource]) {
    for (&at, list) in late.iter().zip(lists) {
        if let ListSource::Views(views) = list {
            record.set(at, record.len());
            for &view in views {
                record.all(&lanes.address(view));
            }
        }
    }
}

/// The total length of the lists of all lanes.
fn items(lanes: &Lanes<'_, '_>, list: &ListSource) -> u64 {
    match list {
        ListSource::Port(port) => lanes.list_items(*port),
        ListSource::Views(views) => views.len() as u64 * u64::from(lanes.count),
    }
}
