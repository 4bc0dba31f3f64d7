//! Rules P10, P12, P13, P14, P38 and P39: products, row stages, folds, lookups, attention, losses of labels.

use super::Rule;
use super::kernels::Walk;
use crate::graph::Op;
use crate::graph::infer::infer;
use crate::numeric::label_loss::MAX_LABELS;
use crate::plan::row_ops::{Template, reader_width, template};
use crate::plan::{ListSource, ParamPort, ProdInit, ProductPart, RegId, View};
use crate::types::{DType, INDEX, Shape, Type};

const fn is_attention(op: Op) -> bool {
    matches!(op, Op::Attend { .. } | Op::GraphAttend { .. })
}

/// The type of the query of a fold over lists of such elements; `None` if it has none.
fn query_type(op: Op, elements: &[Type]) -> Option<Type> {
    match op {
        Op::ListPick => Some(INDEX),
        _ if is_attention(op) => elements.first().copied(),
        _ => None,
    }
}

impl Walk<'_> {
    pub(super) fn product(&mut self, dst: View, rows: u32, init: ProdInit, parts: &[ProductPart]) {
        let float = |dtype: Option<DType>| dtype.is_none_or(|dtype| dtype == DType::F32);
        let mut floats = float(self.write(dst));
        if rows == 0 || !dst.width.is_multiple_of(rows) || parts.is_empty() {
            let message = format!(
                "a product has parts, and rows that divide its width, found {} parts and {rows} rows of {}",
                parts.len(),
                dst.width
            );
            self.report(Rule::Products, message);
            return;
        }
        let columns = dst.width / rows;
        for (number, part) in parts.iter().enumerate() {
            floats &= float(self.read(part.source));
            if let Some(problem) = self.part(part, rows, columns) {
                self.report(Rule::Products, format!("part {number} {problem}"));
            }
        }
        match init {
            ProdInit::Zero => {}
            ProdInit::View(view) => {
                floats &= float(self.read(view));
                if view.width != dst.width {
                    let message = format!(
                        "it must start from {} elements like its result, found {}",
                        dst.width, view.width
                    );
                    self.report(Rule::Products, message);
                }
            }
            ProdInit::Bias(param) => self.bias(param, columns, parts),
        }
        if !floats {
            self.report(Rule::Products, "a product reads and writes f32 elements");
        }
    }

    fn part(&self, part: &ProductPart, rows: u32, columns: u32) -> Option<String> {
        let Some(weight) = self.kernel.params.get(part.param.index()) else {
            let count = self.kernel.params.len();
            return Some(format!("must name one of {count} parameter ports, found {}", part.param.0));
        };
        if part.source.width == 0 || !part.source.width.is_multiple_of(rows) {
            return Some(format!(
                "must have {rows} rows of equal width, found {} elements",
                part.source.width
            ));
        }
        let (height, width) = match (weight.shape.dims(), part.transposed) {
            ([inputs, outputs], false) | ([outputs, inputs], true) => (*inputs, *outputs),
            _ => return Some(format!("must meet a matrix, found {weight}")),
        };
        let last_row = u64::from(part.row) + u64::from(part.source.width / rows);
        let last_column = u64::from(part.col) + u64::from(columns);
        (last_row > u64::from(height) || last_column > u64::from(width)).then(|| {
            format!(
                "meets rows {}..{last_row} and columns {}..{last_column} of a weight of {height} rows and {width} columns",
                part.row, part.col
            )
        })
    }

    fn bias(&mut self, param: ParamPort, columns: u32, parts: &[ProductPart]) {
        let first = parts[0].col;
        let end = u64::from(first) + u64::from(columns);
        let extent = match self.kernel.params.get(param.index()).map(|ty| ty.shape.dims()) {
            Some([extent]) => Some(u64::from(*extent)),
            _ => None,
        };
        if extent.is_none_or(|extent| end > extent) || parts.iter().any(|part| part.col != first) {
            let message = format!(
                "the bias must be a vector parameter with the elements {first}..{end}, where every part begins"
            );
            self.report(Rule::Products, message);
        }
    }

    pub(super) fn row(&mut self, op: Op, sources: &[(View, Type)], dsts: &[View]) {
        for &(view, ty) in sources {
            self.typed_read(Rule::RowOps, view, ty);
        }
        if template(op) != Template::Row {
            self.report(Rule::RowOps, format!("{} is not executed by a row stage", op.spelling()));
            return;
        }
        let types: Vec<Type> = sources.iter().map(|source| source.1).collect();
        let results = match infer(&op, &types, &[]) {
            Ok(results) => results,
            Err(error) => {
                self.report(Rule::RowOps, format!("{}: {error}", op.spelling()));
                return;
            }
        };
        if results.len() != dsts.len() {
            let (wanted, found) = (results.len(), dsts.len());
            let message = format!("{} has {wanted} results, found {found}", op.spelling());
            self.report(Rule::RowOps, message);
        }
        for (&dst, ty) in dsts.iter().zip(results) {
            self.typed_write(Rule::RowOps, dst, ty);
        }
    }

    pub(super) fn fold(
        &mut self,
        op: Op,
        query: Option<View>,
        lists: &[ListSource],
        elements: &[Type],
        dst: View,
    ) {
        if template(op) != Template::Seg {
            self.report(Rule::Folds, format!("{} is not executed by a fold", op.spelling()));
            return;
        }
        if lists.len() != elements.len() || elements.is_empty() {
            let (wanted, found) = (lists.len(), elements.len());
            self.report(
                Rule::Folds,
                format!("{wanted} lists must have as many element types, found {found}"),
            );
            return;
        }
        for (list, &element) in lists.iter().zip(elements) {
            self.list(list, element);
        }
        if let [ListSource::Views(a), ListSource::Views(b)] = lists
            && a.len() != b.len()
        {
            let message =
                format!("lists folded together must be equally long, found {} and {}", a.len(), b.len());
            self.report(Rule::Lengths, message);
        }
        if let Some(result) = self.folded(Rule::Folds, op, query, elements) {
            self.typed_write(Rule::Folds, dst, result);
        }
    }

    /// Checks the query and the elements of a fold. Returns the type of its result.
    fn folded(&mut self, rule: Rule, op: Op, query: Option<View>, elements: &[Type]) -> Option<Type> {
        let wanted = query_type(op, elements);
        if wanted.is_some() != query.is_some() {
            self.report(
                rule,
                "a query belongs to attention, an index to a pick, and neither to anything else",
            );
            return None;
        }
        if let (Some(query), Some(wanted)) = (query, wanted) {
            self.typed_read(rule, query, wanted);
        }
        let lists = elements.iter().map(|&element| Type { is_list: true, ..element });
        let types: Vec<Type> = wanted.into_iter().chain(lists).collect();
        match infer(&op, &types, &[]) {
            Ok(results) => Some(results[0]),
            Err(error) => {
                self.report(rule, format!("{}: {error}", op.spelling()));
                None
            }
        }
    }

    /// P30
    pub(super) fn fold_gradient(
        &mut self,
        op: Op,
        query: Option<View>,
        lists: &[RegId],
        elements: &[Type],
        dy: View,
        dsts: &[Option<RegId>],
    ) {
        let fits = template(op) == Template::Seg
            && !is_attention(op)
            && lists.len() == elements.len()
            && lists.len() == dsts.len()
            && !lists.is_empty();
        if !fits {
            self.report(Rule::Edges, format!("{} has other operands", op.spelling()));
            return;
        }
        for (&list, &element) in lists.iter().zip(elements) {
            self.list(&ListSource::Port(list), element);
        }
        match self.folded(Rule::Edges, op, query, elements) {
            Some(result) if result.dtype != DType::F32 => {
                self.report(Rule::Edges, format!("{} of {result} has no gradient", op.spelling()));
            }
            Some(result) => self.typed_read(Rule::Edges, dy, result),
            None => {}
        }
        for (dst, &element) in dsts.iter().zip(elements) {
            if let Some(reg) = *dst {
                self.write_edges(reg, element);
            }
        }
    }

    /// P30
    pub(super) fn mean_gradient(&mut self, list: RegId, dy: View, dst: View) {
        let (dtype, width) = (self.read(dy), u64::from(dy.width));
        self.floats(Rule::Edges, dy, dtype, width);
        self.list_of_width(Rule::Edges, list, width);
        self.write_floats(Rule::Edges, Some(dst), width);
    }

    /// P38
    pub(super) fn attention_gradient(
        &mut self,
        op: Op,
        query: View,
        lists: [RegId; 2],
        dy: View,
        [dst, reader]: [Option<View>; 2],
    ) {
        let Some(reader_width) = self.reader_width(op, [query, dy]) else { return };
        for (port, view) in lists.into_iter().zip([query, dy]) {
            let dtype = self.read(view);
            self.floats(Rule::Attention, view, dtype, u64::from(view.width));
            self.list_of_width(Rule::Attention, port, u64::from(view.width));
        }
        self.write_floats(Rule::Attention, dst, u64::from(query.width));
        self.write_floats(Rule::Attention, reader, reader_width);
    }

    /// P38
    pub(super) fn pull(&mut self, op: Op, item: [View; 2], readers: RegId, dsts: [Option<View>; 2]) {
        let Some(reader_width) = self.reader_width(op, item) else { return };
        for view in item {
            let dtype = self.read(view);
            self.floats(Rule::Attention, view, dtype, u64::from(view.width));
        }
        self.list_of_width(Rule::Attention, readers, reader_width);
        for (dst, view) in dsts.into_iter().zip(item) {
            self.write_floats(Rule::Attention, dst, u64::from(view.width));
        }
    }

    /// The width of the row of a reader; `None`, and a finding, if the op is no attention over such keys and values.
    fn reader_width(&mut self, op: Op, of: [View; 2]) -> Option<u64> {
        let [key, value] = of.map(|view| view.width);
        let has_parts = !matches!(op, Op::GraphAttend { .. }) || key > 0 && value.is_multiple_of(key);
        let width = reader_width(op, [key, value]).filter(|_| has_parts);
        if width.is_none() {
            let message = format!("{} is no attention of keys of {key} and values of {value}", op.spelling());
            self.report(Rule::Attention, message);
        }
        width
    }

    fn write_floats(&mut self, rule: Rule, dst: Option<View>, width: u64) {
        if let Some(dst) = dst {
            let dtype = self.write(dst);
            self.floats(rule, dst, dtype, width);
        }
    }

    fn floats(&mut self, rule: Rule, view: View, dtype: Option<DType>, width: u64) {
        let Some(dtype) = dtype else { return };
        if dtype != DType::F32 || u64::from(view.width) != width {
            let found = view.width;
            self.report(rule, format!("a view must have {width} floats, found {found} elements of {dtype}"));
        }
    }

    /// Verifies a port of lists of floats, each as many.
    fn list_of_width(&mut self, rule: Rule, port: RegId, width: u64) {
        let ty = self.kernel.regs[..self.kernel.ports as usize].get(port.index()).map(|reg| reg.ty);
        let fits = |ty: Type| ty.is_list && ty.dtype == DType::F32 && ty.shape.elements() as u64 == width;
        if !ty.is_some_and(fits) {
            let found = ty.map_or_else(|| "no port".to_owned(), |ty| ty.to_string());
            let message =
                format!("register {} must be a port of lists of {width} floats, found {found}", port.0);
            self.report(rule, message);
        }
    }

    fn list(&mut self, list: &ListSource, element: Type) {
        match list {
            ListSource::Port(port) => {
                let ty = self.kernel.regs[..self.kernel.ports as usize].get(port.index()).map(|reg| reg.ty);
                if ty != Some(Type { is_list: true, ..element }) {
                    let found = ty.map_or_else(|| "no port".to_owned(), |ty| ty.to_string());
                    let message =
                        format!("register {} must be a port of type list {element}, found {found}", port.0);
                    self.report(Rule::Folds, message);
                }
            }
            ListSource::Views(views) => {
                for &view in views {
                    self.typed_read(Rule::Folds, view, element);
                }
            }
        }
    }

    pub(super) fn lookup(&mut self, param: ParamPort, index: View, dst: View) {
        self.typed_read(Rule::Lookups, index, crate::types::INDEX);
        match self.kernel.params.get(param.index()).map(|ty| ty.shape.dims()) {
            Some([_, width]) if *width == dst.width => {
                if self.write(dst).is_some_and(|dtype| dtype != DType::F32) {
                    self.report(Rule::Lookups, "a looked up row is f32");
                }
            }
            _ => {
                let found = self.kernel.params.get(param.index());
                let found = found.map_or_else(|| "nothing".to_owned(), |ty| ty.to_string());
                let message = format!(
                    "parameter port {} must be a matrix of rows of {}, found {found}",
                    param.0, dst.width
                );
                self.report(Rule::Lookups, message);
            }
        }
    }

    /// P39
    pub(super) fn label_loss(&mut self, param: ParamPort, [x, label]: [View; 2], dsts: [Option<View>; 3]) {
        let (dtype, width) = (self.read(x), u64::from(x.width));
        self.floats(Rule::LabelLosses, x, dtype, width);
        self.typed_read(Rule::LabelLosses, label, crate::types::INDEX);
        let rows = self.kernel.params.get(param.index()).map(|ty| ty.shape);
        let fits = |shape: &Shape| matches!(shape.dims(), [labels, own] if *labels <= MAX_LABELS && u64::from(*own) == width);
        if !rows.as_ref().is_some_and(fits) {
            let found = rows.map_or_else(|| "nothing".to_owned(), |shape| shape.to_string());
            let message = format!(
                "parameter port {} must be a matrix of rows of {width}, of at most {MAX_LABELS}, found {found}",
                param.0
            );
            self.report(Rule::LabelLosses, message);
        }
        for (dst, width) in dsts.into_iter().zip([1, 1, width]) {
            self.write_floats(Rule::LabelLosses, dst, width);
        }
    }

    /// Verifies a view that is read as a value of this type.
    fn typed_read(&mut self, rule: Rule, view: View, ty: Type) {
        let dtype = self.read(view);
        self.same_type(rule, "reads", view, dtype, ty);
    }

    /// Verifies a view that is written as a value of this type.
    fn typed_write(&mut self, rule: Rule, view: View, ty: Type) {
        let dtype = self.write(view);
        self.same_type(rule, "writes", view, dtype, ty);
    }

    fn same_type(&mut self, rule: Rule, verb: &str, view: View, dtype: Option<DType>, ty: Type) {
        let Some(dtype) = dtype else { return };
        if ty.is_list || dtype != ty.dtype || u64::from(view.width) != ty.shape.elements() as u64 {
            let width = view.width;
            self.report(rule, format!("the stage {verb} {ty}, found {width} elements of {dtype}"));
        }
    }
}
