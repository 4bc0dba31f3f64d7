//! Derivative rules of folds over lists.
//!
//! A list that is made inside the kernel is a number of views, and its fold is elementwise arithmetic. The length of a list
//! port is not known. Sums and means contribute the same row to all their values; other folds have a stage that gives a row to
//! each. The
//! keys and values of attention pull their gradients from the nodes that attend to them ([`pulls`](super::pulls)).

use super::deriver::{Deriver, Partial, PendingPull, PortUse, Refused, SCALAR, floats, matrix, number, sub};
use super::tape::Applied;
use crate::kernels::compile::Value;
use autobatch_ir::graph::{Binary, Compare, Float, ListFold, Op, Unary};
use autobatch_ir::plan::row_ops::reader_width;
use autobatch_ir::plan::{Code, ListSource, RegId, RegKind, Source, Stage, View};
use autobatch_ir::types::Type;

/// The contributions of a fold with gradient `dy`.
pub(super) fn rule(this: &mut Deriver<'_>, at: &Applied, dy: Value) -> Result<Vec<Partial>, Refused> {
    let refused = Refused { op: at.op.spelling() };
    if matches!(at.op, Op::ListFold(ListFold::Sum))
        && matches!(at.operands[0], Value::List(ListSource::Port(_), _))
    {
        return Ok(vec![Partial::Port(vec![PortUse::Shared(dy)])]);
    }
    let dy = this.b.one_view(dy);
    if let (
        Op::Attend { .. } | Op::GraphAttend { .. },
        [query, Value::List(ListSource::Port(keys), key), Value::List(ListSource::Port(values), value)],
    ) = (at.op, &at.operands[..])
    {
        let query = this.b.one_view(query.clone());
        return Ok(attention(this, at, query, dy, [(*keys, *key), (*values, *value)]));
    }
    if let (Op::ListFold(ListFold::Mean), [Value::List(ListSource::Port(list), element)]) =
        (at.op, &at.operands[..])
    {
        let dst = this.b.temp(*element);
        this.b.stages.push(Stage::MeanGrad { list: *list, dy, dst });
        return Ok(vec![Partial::Port(vec![PortUse::Shared(Value::Pieces(vec![dst], *element))])]);
    }
    if let Some(partials) = through_ports(this, at, dy) {
        return Ok(partials);
    }
    match (at.op, &at.operands[..]) {
        (Op::ListFold(ListFold::LogSumExp), [Value::List(ListSource::Views(items), element)]) => {
            let top = at.results[0].clone();
            Ok(vec![logsumexp(this, items, *element, [top, Value::Pieces(vec![dy], *element)])])
        }
        (Op::ListFold(fold), [Value::List(ListSource::Views(items), element)]) => {
            Ok(vec![elementwise(this, fold, items, *element, dy)])
        }
        (Op::ListPick, [index, Value::List(ListSource::Views(items), element)]) => {
            let dv: Vec<View> = items.iter().map(|_| this.b.temp(*element)).collect();
            if !dv.is_empty() {
                this.choose_row(index.clone(), dy, dv.clone());
            }
            Ok(vec![Partial::None, many(dv, *element)])
        }
        (
            Op::WeightedSum { softmax },
            [Value::List(ListSource::Views(scores), score), Value::List(ListSource::Views(values), value)],
        ) => {
            let dc = to_coefficients(this, score.shape.elements() as u32, values, dy);
            let (weights, ds) = match softmax {
                true => {
                    let weights = weights_of(this, scores);
                    let ds = through_softmax(this, &weights, &dc);
                    (weights, ds)
                }
                false => (scores.clone(), dc),
            };
            let dv = to_values(this, &weights, dy);
            Ok(vec![many(ds, *score), many(dv, *value)])
        }
        (
            Op::Attend { scale },
            [query, Value::List(ListSource::Views(keys), key), Value::List(ListSource::Views(values), value)],
        ) => {
            let query = this.b.one_view(query.clone());
            Ok(dot_attention(this, scale, query, [(keys, *key), (values, *value)], dy))
        }
        (
            Op::GraphAttend { slope },
            [query, Value::List(ListSource::Views(keys), key), Value::List(ListSource::Views(values), value)],
        ) => {
            let query = this.b.one_view(query.clone());
            let (ds, dv) = graph_attention(this, slope, query, [keys, values], dy);
            let dst = this.b.temp(*key);
            let (op, lists) = (Op::ListFold(ListFold::Sum), vec![ListSource::Views(ds.clone())]);
            this.b.stages.push(Stage::Seg { op, query: None, lists, elements: vec![*key], dst });
            let dq = Partial::One(Value::Pieces(vec![dst], *key));
            let of_values = |pieces| vec![Value::Pieces(pieces, *value)];
            Ok(vec![dq, many(ds, *key), Partial::Many(dv.into_iter().map(of_values).collect())])
        }
        _ => Err(refused),
    }
}

/// The gradient of a fold whose lists all came through ports, as one stage.
fn through_ports(this: &mut Deriver<'_>, at: &Applied, dy: View) -> Option<Vec<Partial>> {
    let is_pick = matches!(at.op, Op::ListPick);
    let (indices, lists) = at.operands.split_at(usize::from(is_pick));
    let (mut ports, mut elements) = (Vec::new(), Vec::new());
    for operand in lists {
        let Value::List(ListSource::Port(port), element) = operand else { return None };
        ports.push(*port);
        elements.push(*element);
    }
    let query = indices.first().map(|index| this.b.one_view(index.clone()));
    let mut partials: Vec<Partial> = indices.iter().map(|_| Partial::None).collect();
    let mut dsts = Vec::new();
    for (element, &needs) in elements.iter().zip(&at.needs[indices.len()..]) {
        let list = Type { is_list: true, ..*element };
        let edges = needs.then(|| this.b.reg(RegKind::Edges, list));
        dsts.push(edges.map(|view| view.reg));
        partials.push(edges.map_or(Partial::None, |view| Partial::Port(vec![PortUse::Edges(view)])));
    }
    this.b.stages.push(Stage::SegGrad { op: at.op, query, lists: ports, elements, dy, dsts });
    Some(partials)
}

/// The gradient of attention over lists that came through ports. Keys and values pull theirs from the rows of readers.
fn attention(
    this: &mut Deriver<'_>,
    at: &Applied,
    query: View,
    dy: View,
    lists: [(RegId, Type); 2],
) -> Vec<Partial> {
    let op = at.op;
    let [needs_query, needs_lists @ ..] = &at.needs[..] else { unreachable!("attention has a query") };
    let key = lists[0].1;
    let dst = needs_query.then(|| this.b.temp(key));
    let is_read = needs_lists.contains(&true);
    let reader = is_read.then(|| {
        let width = reader_width(op, [query.width, dy.width]).expect("the op is an attention");
        this.b.temp(floats(width as u32))
    });
    let [keys, values] = lists.map(|list| list.0);
    this.b.stages.push(Stage::AttendGrad { op, query, keys, values, dy, dst, reader });
    let number = this.pulls.len();
    this.pulls.extend(reader.map(|reader| PendingPull { op, lists, reader }));
    let of_query = dst.map_or(Partial::None, |view| Partial::One(Value::Pieces(vec![view], key)));
    let of_lists = needs_lists.iter().enumerate().map(|(side, &needs)| match needs {
        true => Partial::Port(vec![PortUse::Pulled(number, side)]),
        false => Partial::None,
    });
    std::iter::once(of_query).chain(of_lists).collect()
}

/// The gradients of the query, the keys and the values of attention over values of the kernel.
fn dot_attention(
    this: &mut Deriver<'_>,
    scale: Float,
    query: View,
    [(keys, key), (values, value)]: [(&[View], Type); 2],
    dy: View,
) -> Vec<Partial> {
    let times_scale = |this: &mut Deriver<'_>, view: View| {
        this.binary(Binary::Mul, Source::View(view), number(scale.get()), SCALAR)
    };
    let (row, column) = (matrix(1, query.width), floats(query.width));
    let score = |&key: &View| {
        let chain = this.row_stage(Op::Matmul, vec![(query, row), (key, column)], floats(1));
        times_scale(this, chain)
    };
    let scores: Vec<View> = keys.iter().map(score).collect();
    let weights = row_softmax(this, scores);
    let (row, column) = (matrix(1, dy.width), floats(dy.width));
    let slope = |value: &View| this.row_stage(Op::Matmul, vec![(dy, row), (*value, column)], floats(1));
    let dw: Vec<View> = values.iter().map(slope).collect();
    let ds = through_row_softmax(this, &weights, dw);
    let scaled: Vec<View> = ds.into_iter().map(|ds| times_scale(this, ds)).collect();
    let dst = this.b.temp(key);
    let lists = vec![ListSource::Views(scaled.clone()), ListSource::Views(keys.to_vec())];
    let (op, elements) = (Op::WeightedSum { softmax: false }, vec![SCALAR, key]);
    this.b.stages.push(Stage::Seg { op, query: None, lists, elements, dst });
    let dk = to_values(this, &scaled, query);
    let dv = to_values(this, &weights, dy);
    let dq = Partial::One(Value::Pieces(vec![dst], key));
    vec![dq, many(dk, key), many(dv, value)]
}

/// For each item the gradient of its sum with the query, and that of its value in one piece per head.
fn graph_attention(
    this: &mut Deriver<'_>,
    slope: Float,
    query: View,
    [keys, values]: [&[View]; 2],
    dy: View,
) -> (Vec<View>, Vec<Vec<View>>) {
    let (heads, flat) = (query.width, floats(query.width));
    let group = dy.width / heads;
    let part = |of: View, head: u32| sub(of, head * group, group);
    let sums: Vec<View> = keys
        .iter()
        .map(|&key| this.binary(Binary::Add, Source::View(query), Source::View(key), flat))
        .collect();
    let score = |&sum: &View| this.instr(Code::LeakyRelu(slope), vec![Source::View(sum)], flat);
    let scores: Vec<View> = sums.iter().map(score).collect();
    let weights = weights_of(this, &scores);
    let slopes = |value: &View| {
        let dots = (0..heads).map(|head| this.dot(part(dy, head), part(*value, head))).collect();
        this.b.one_view(Value::Pieces(dots, flat))
    };
    let dw: Vec<View> = values.iter().map(slopes).collect();
    let through = |this: &mut Deriver<'_>, (sum, ds): (&View, View)| {
        let above = this.comparison(Compare::Gt, Source::View(*sum), number(0.0), flat.shape);
        let factor = this.choose(Source::View(above), number(1.0), number(slope.get()), flat);
        this.binary(Binary::Mul, Source::View(ds), Source::View(factor), flat)
    };
    let ds = through_softmax(this, &weights, &dw);
    let ds = sums.iter().zip(ds).map(|of| through(this, of)).collect();
    let value = |weights: &View| {
        let piece = |head| {
            let (weight, dy) = (Source::Scalar(sub(*weights, head, 1)), Source::View(part(dy, head)));
            this.binary(Binary::Mul, weight, dy, floats(group))
        };
        (0..heads).map(piece).collect()
    };
    (ds, weights.iter().map(value).collect())
}

fn many(views: Vec<View>, ty: Type) -> Partial {
    Partial::Many(views.into_iter().map(|view| vec![Value::Pieces(vec![view], ty)]).collect())
}

fn elementwise(this: &mut Deriver<'_>, fold: ListFold, items: &[View], ty: Type, dy: View) -> Partial {
    let flat = floats(dy.width);
    let whole = this.b.view_source(dy, dy.width);
    match fold {
        ListFold::Sum => many(vec![dy; items.len()], ty),
        ListFold::Mean => {
            let share = this.binary(Binary::Div, whole, number(items.len() as f32), flat);
            many(vec![share; items.len()], ty)
        }
        ListFold::Max => {
            // An item is taken where it beats all before it and none after it beats it: the best
            // so far is a NaN or a number that a NaN or a greater number replaces.
            let mut taken: Vec<Source> = Vec::new();
            let mut best: Option<Source> = None;
            for &item in items {
                let x = this.b.view_source(item, dy.width);
                let Some(so_far) = best else {
                    best = Some(x);
                    taken.push(whole);
                    continue;
                };
                let greater = this.comparison(Compare::Gt, x, so_far, flat.shape);
                let broken = this.comparison(Compare::Ne, x, x, flat.shape);
                let sound = this.comparison(Compare::Eq, so_far, so_far, flat.shape);
                let first_nan = this.choose(Source::View(sound), number(1.0), number(0.0), flat);
                let replaced = this.choose(Source::View(broken), Source::View(first_nan), number(0.0), flat);
                let wins = this.choose(Source::View(greater), number(1.0), Source::View(replaced), flat);
                let wins =
                    Source::View(this.comparison(Compare::Ne, Source::View(wins), number(0.0), flat.shape));
                for before in &mut taken {
                    *before = Source::View(this.choose(wins, number(0.0), *before, flat));
                }
                taken.push(Source::View(this.choose(wins, whole, number(0.0), flat)));
                best = Some(Source::View(this.choose(wins, x, so_far, flat)));
            }
            let views = taken.into_iter().map(|share| match share {
                Source::View(view) => view,
                other => this.instr(Code::Copy, vec![other], flat),
            });
            many(views.collect::<Vec<_>>(), ty)
        }
        ListFold::LogSumExp | ListFold::ArgMax => unreachable!("folds with rules of their own"),
    }
}

/// `dv_i = dy * w_i` with the softmax `w` of the values; 0 where the result is -inf.
fn logsumexp(this: &mut Deriver<'_>, items: &[View], ty: Type, [y, dy]: [Value; 2]) -> Partial {
    let [y, dy] = [y, dy].map(|value| this.source(value));
    let flat = floats(ty.shape.elements() as u32);
    let weights = weights_of(this, items);
    let is_empty = this.comparison(Compare::Eq, y, number(f32::NEG_INFINITY), flat.shape);
    let share = |weight| {
        let share = this.binary(Binary::Mul, dy, Source::View(weight), flat);
        this.choose(Source::View(is_empty), number(0.0), Source::View(share), flat)
    };
    many(weights.into_iter().map(share).collect(), ty)
}

/// `dc_i = dot(dy, v_i)` for a coefficient of one element, else `dy * v_i`.
fn to_coefficients(this: &mut Deriver<'_>, width: u32, values: &[View], dy: View) -> Vec<View> {
    let coefficient = |&value: &View| match width {
        1 => this.dot(dy, value),
        _ => {
            let (dy, v) = (this.b.view_source(dy, width), this.b.view_source(value, width));
            this.binary(Binary::Mul, dy, v, floats(width))
        }
    };
    values.iter().map(coefficient).collect()
}

/// `dv_i = c_i * dy`.
fn to_values(this: &mut Deriver<'_>, coefficients: &[View], dy: View) -> Vec<View> {
    let value = |&c: &View| {
        let (c, share) = (this.b.view_source(c, dy.width), this.b.view_source(dy, dy.width));
        this.binary(Binary::Mul, c, share, floats(dy.width))
    };
    coefficients.iter().map(value).collect()
}

/// The softmax of scores over a list.
fn weights_of(this: &mut Deriver<'_>, scores: &[View]) -> Vec<View> {
    let Some(first) = scores.first() else { return Vec::new() };
    let (width, flat) = (first.width, floats(first.width));
    let mut top = this.b.view_source(*first, width);
    for &score in &scores[1..] {
        let x = this.b.view_source(score, width);
        top = Source::View(this.binary(Binary::Max, top, x, flat));
    }
    let exp = |&score: &View| {
        let x = this.b.view_source(score, width);
        let off = this.binary(Binary::Sub, x, top, flat);
        this.one_operand(Unary::Exp, Source::View(off), flat)
    };
    let exps: Vec<View> = scores.iter().map(exp).collect();
    let mut total = exps[0];
    for &exp in &exps[1..] {
        total = this.binary(Binary::Add, Source::View(total), Source::View(exp), flat);
    }
    let scale = this.one_operand(Unary::Recip, Source::View(total), flat);
    let weight = |exp| this.binary(Binary::Mul, Source::View(exp), Source::View(scale), flat);
    exps.into_iter().map(weight).collect()
}

/// The softmax of a row of numbers.
fn row_softmax(this: &mut Deriver<'_>, scores: Vec<View>) -> Vec<View> {
    if scores.is_empty() {
        return Vec::new();
    }
    let row = floats(scores.len() as u32);
    let scores = this.b.one_view(Value::Pieces(scores, row));
    let weights = this.row_stage(Op::Softmax, vec![(scores, row)], row);
    (0..weights.width).map(|number| sub(weights, number, 1)).collect()
}

/// `ds_i = w_i * (dw_i - t)` with `t = dot(w, dw)`, for the weights of a row of scores.
fn through_row_softmax(this: &mut Deriver<'_>, weights: &[View], dw: Vec<View>) -> Vec<View> {
    if dw.is_empty() {
        return Vec::new();
    }
    let row = floats(dw.len() as u32);
    let [all_weights, dw] = [weights.to_vec(), dw].map(|views| this.b.one_view(Value::Pieces(views, row)));
    let common = Source::Scalar(this.dot(all_weights, dw));
    let rest = this.binary(Binary::Sub, Source::View(dw), common, row);
    let ds = this.binary(Binary::Mul, Source::View(all_weights), Source::View(rest), row);
    (0..ds.width).map(|number| sub(ds, number, 1)).collect()
}

/// `ds_i = w_i * (dw_i - t)` with `t = chain over i from +0 of w_i * dw_i`.
fn through_softmax(this: &mut Deriver<'_>, weights: &[View], dw: &[View]) -> Vec<View> {
    let Some(first) = weights.first() else { return Vec::new() };
    let flat = floats(first.width);
    let common = this.b.temp(flat);
    let lists = vec![ListSource::Views(weights.to_vec()), ListSource::Views(dw.to_vec())];
    let op = Op::WeightedSum { softmax: false };
    this.b.stages.push(Stage::Seg { op, query: None, lists, elements: vec![flat, flat], dst: common });
    let share = |(&w, &dw): (&View, &View)| {
        let rest = this.binary(Binary::Sub, Source::View(dw), Source::View(common), flat);
        this.binary(Binary::Mul, Source::View(w), Source::View(rest), flat)
    };
    weights.iter().zip(dw).map(share).collect()
}
