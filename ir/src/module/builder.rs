//! Declares parameters and traces cells.

use super::{
    Body, Cell, CellDecl, CellOfAny, Export, Init, Module, Param, ParamDecl, ParamKind, Table, ports_first,
};
use crate::graph::emit::Graph;
use crate::graph::record::Traced;
use crate::graph::signature::{Callee, ParamArg, Signature, Signatures};
use crate::graph::verify::{MAX_INLINED, MAX_NESTING};
use crate::graph::{Arena, EmitError, Fault, Op, Site, Sites, Value, ValueKey};
use crate::id::{CellId, ParamId, SigId, SiteId, TypeId, ValueId};
use crate::types::{DType, IntoShape, Type};
use std::panic::Location;
use std::sync::Arc;

/// Collects the declarations of a model's constructor.
///
/// The builder stores the first fault, and [`build`](Self::build) returns it. Handles made after a
/// fault are invalid but harmless, so constructors need no `?`.
#[derive(Debug)]
pub struct ModuleBuilder {
    module: Arc<Module>,
    /// The size of each cell with its calls.
    sizes: Vec<CellSize>,
    error: Option<EmitError>,
}

/// The size of a cell with the calls in its body (rule G20).
#[derive(Clone, Copy, Debug)]
struct CellSize {
    /// How deep calls nest, with the cell itself.
    depth: u32,
    /// The nodes after inlining.
    inlined: u64,
}

impl ModuleBuilder {
    /// A builder of an empty module.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { module: Arc::new(Module::empty(name)), sizes: Vec::new(), error: None }
    }

    /// A builder that begins with the declarations of a finished module, for a frontend that traces a cell when its code
    /// first runs. Handles of the finished module are none of the new one: look up parameters and cells by name.
    ///
    /// ```
    /// use autobatch_ir::{Graph, ModuleBuilder, types::f32};
    ///
    /// let mut m = ModuleBuilder::new("m");
    /// m.cell("double", [f32([3])], |_, [x]| [x + x]);
    /// let module = m.build().expect("no fault");
    ///
    /// let mut m = ModuleBuilder::extending(&module);
    /// m.cell("square", [f32([3])], |_, [x]| [x * x]);
    /// let more = m.build().expect("no fault");
    /// let g = Graph::new(&more);
    /// let cells = ["double", "square"].map(|name| more.cell::<1, 1>(name).expect("both are cells of it"));
    /// let [x] = g.call(cells[0], [g.input(&[1.0; 3])]);
    /// let _ = g.call(cells[1], [x]);
    /// assert!(g.check().is_ok() && module.cell::<1, 1>("square").is_none());
    /// ```
    #[must_use]
    pub fn extending(module: &Module) -> Self {
        let mut builder = Self { module: Arc::new(module.under_new_tag()), sizes: Vec::new(), error: None };
        for cell in &module.cells {
            let size = builder.size_of(&cell.body.arena, &module.sigs);
            builder.sizes.push(size);
        }
        builder
    }

    /// Declares a dense f32 parameter.
    #[track_caller]
    pub fn param(&mut self, name: &str, shape: impl IntoShape, init: Init) -> Param {
        self.param_stored_as(name, ParamKind::Param, DType::F32, shape, init)
    }

    /// Declares a table of rows to look up.
    #[track_caller]
    pub fn table(&mut self, name: &str, shape: impl IntoShape, init: Init) -> Table {
        Table { param: self.param_stored_as(name, ParamKind::Table, DType::F32, shape, init) }
    }

    /// Declares a parameter or table stored as `f16` or `bf16`. Uses widen it to `f32`.
    #[track_caller]
    pub fn param_stored_as(
        &mut self,
        name: &str,
        kind: ParamKind,
        dtype: DType,
        shape: impl IntoShape,
        init: Init,
    ) -> Param {
        let location = Location::caller();
        let id = match self.checked(name, kind, dtype, shape, &init) {
            Ok(ty) => {
                let module = self.module_mut();
                let site = module.sites.of(location);
                module.types.intern(ty);
                module.params.push(ParamDecl { name: name.to_owned(), kind, ty, init, site });
                Some(ParamId::new(module.params.len() - 1))
            }
            Err((message, help)) => {
                self.fail(&format!("parameter @{name}"), message, help, location);
                None
            }
        };
        Param { id, module: self.module.tag }
    }

    fn checked(
        &self,
        name: &str,
        kind: ParamKind,
        dtype: DType,
        shape: impl IntoShape,
        init: &Init,
    ) -> Result<Type, (String, Option<String>)> {
        let plain = |message: String| (message, None);
        check_name(name).map_err(plain)?;
        if self.module.params.iter().any(|decl| decl.name == name) {
            let help = "checkpoints identify parameters by name: give each parameter its own".to_owned();
            return Err(("the name is taken".to_owned(), Some(help)));
        }
        let shape = shape.into_shape().map_err(|error| plain(error.to_string()))?;
        let ty = Type::new(dtype, shape);
        check_declaration(kind, ty, init).map_err(plain)?;
        Ok(ty)
    }

    /// Traces a cell: runs `body` once, on ports of these types. The emitted nodes become a function that graphs call.
    ///
    /// Parameters that the body uses become arguments of the cell. Two cells whose bodies differ only in their parameters
    /// are therefore one cell: both directions and all layers of an LSTM compile once. Declare parameters *before* the cell:
    /// the builder is borrowed while `body` runs, so `m.param(..)` inside it does not compile.
    #[track_caller]
    pub fn cell<const IN: usize, const OUT: usize>(
        &mut self,
        name: &str,
        ports: [Type; IN],
        body: impl for<'g> FnOnce(&'g Graph, [Value<'g>; IN]) -> [Value<'g>; OUT],
    ) -> Cell<IN, OUT> {
        let location = Location::caller();
        let sig = self.trace(name, location, |graph| {
            let values = ports.map(|ty| graph.port(ty, location));
            body(graph, values).map(Value::id).to_vec()
        });
        Cell { sig, module: self.module.tag }
    }

    /// Traces a cell whose numbers of ports and results are known only at tracing. Faults are handled
    /// as by [`cell`](Self::cell).
    #[track_caller]
    pub fn cell_of_any(
        &mut self,
        name: &str,
        ports: &[Type],
        body: impl for<'g> FnOnce(&'g Graph, &[Value<'g>]) -> Vec<Value<'g>>,
    ) -> CellOfAny {
        let location = Location::caller();
        let sig = self.trace(name, location, |graph| {
            let values: Vec<Value<'_>> = ports.iter().map(|&ty| graph.port(ty, location)).collect();
            body(graph, &values).into_iter().map(Value::id).collect()
        });
        CellOfAny { sig, module: self.module.tag }
    }

    /// Begins a cell for a frontend that cannot pass a closure to [`cell_of_any`](Self::cell_of_any). The
    /// caller emits the body into the returned graph, whose first values are the ports, and passes both to
    /// [`end_cell`](Self::end_cell). Until then the builder declares nothing else.
    ///
    /// ```
    /// use autobatch_ir::{Graph, ModuleBuilder, types::f32};
    ///
    /// let mut m = ModuleBuilder::new("m");
    /// let (graph, ports) = m.begin_cell("double", &[f32([3])]).expect("the name is valid");
    /// let x = graph.value(ports[0]).expect("a port of this graph");
    /// let result = (x + x).key();
    /// let double = m.end_cell("double", graph, &[result]);
    /// let g = Graph::new(&m.build().expect("no fault"));
    /// assert_eq!(g.call_any(double, [g.input(&[1.0; 3])]).len(), 1);
    /// ```
    #[track_caller]
    pub fn begin_cell(&mut self, name: &str, ports: &[Type]) -> Option<(Graph, Vec<ValueKey>)> {
        let location = Location::caller();
        let graph = self.begin_trace(name, location)?;
        let keys = ports.iter().filter_map(|&ty| graph.port(ty, location).key()).collect();
        Some((graph, keys))
    }

    /// Ends a cell that [`begin_cell`](Self::begin_cell) began. Results that belong to another graph are a fault.
    #[track_caller]
    pub fn end_cell(&mut self, name: &str, graph: Graph, results: &[Option<ValueKey>]) -> CellOfAny {
        let location = Location::caller();
        let own = |key: &Option<ValueKey>| key.is_none_or(|key| key.graph() == graph.number());
        if !results.iter().all(own) {
            let help = "return values that the body of the cell computes from its ports";
            graph.refuse("cell", "a result belongs to another graph", help, location);
        }
        let results: Vec<Option<ValueId>> = results.iter().map(|key| key.map(ValueKey::id)).collect();
        let sig = self.end_trace(name, graph, &results, location);
        CellOfAny { sig, module: self.module.tag }
    }

    /// Traces the nodes that `emit` emits, which returns the results, and declares the cell.
    fn trace(
        &mut self,
        name: &str,
        location: &'static Location<'static>,
        emit: impl FnOnce(&Graph) -> Vec<Option<ValueId>>,
    ) -> Option<SigId> {
        let graph = self.begin_trace(name, location)?;
        let results = emit(&graph);
        self.end_trace(name, graph, &results, location)
    }

    fn begin_trace(&mut self, name: &str, location: &'static Location<'static>) -> Option<Graph> {
        if let Err(message) = check_name(name) {
            self.fail(&format!("cell @{name}"), message, None, location);
        }
        self.error.is_none().then(|| Graph::tracing(Arc::clone(&self.module), name))
    }

    fn end_trace(
        &mut self,
        name: &str,
        graph: Graph,
        results: &[Option<ValueId>],
        location: &'static Location<'static>,
    ) -> Option<SigId> {
        match graph.into_traced(results, location) {
            Ok(traced) => Some(self.install(name, traced, location)),
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    /// The size of a traced cell.
    fn size_of(&self, body: &Arena, sigs: &Signatures) -> CellSize {
        let mut size = CellSize { depth: 1, inlined: 0 };
        for node in body.nodes() {
            let Callee::Cell(callee) = sigs.get(node.sig).callee else {
                size.inlined += 1;
                continue;
            };
            let called = self.sizes[callee.index()];
            size.depth = size.depth.max(called.depth + 1);
            size.inlined = size.inlined.saturating_add(called.inlined);
        }
        size
    }

    /// Records the size of a new cell. A cell beyond the limits of verified modules is a fault.
    fn add_size(&mut self, name: &str, size: CellSize, location: &'static Location<'static>) {
        self.sizes.push(size);
        let all = self.sizes.iter().map(|size| size.inlined).fold(0, u64::saturating_add);
        let message = if size.depth > MAX_NESTING {
            format!("calls of cells nest at most {MAX_NESTING} deep, found {}", size.depth)
        } else if all > MAX_INLINED {
            format!(
                "the cells of a module have at most {MAX_INLINED} nodes after inlining, found {all} up to this one, {} in this one",
                size.inlined
            )
        } else {
            return;
        };
        let help = "call the inner cells from the graph, or fewer of them".to_owned();
        self.fail(&format!("cell @{name}"), message, Some(help), location);
    }

    fn install(&mut self, name: &str, traced: Traced, location: &'static Location<'static>) -> SigId {
        let size = self.size_of(&traced.arena, &traced.sigs);
        let Traced { types, sigs, sites, arena, mut results, lifted, noise } = traced;
        let module = self.module_mut();
        (module.types, module.sigs, module.sites) = (types, sigs, sites);
        let is_port = |sig: SigId| matches!(module.sigs.get(sig).callee, Callee::Op(Op::Port(_)));
        let arena = ports_first(&arena, is_port, &mut results);
        let param_types: Vec<TypeId> =
            lifted.iter().map(|&id| module.types.intern(module.params[id.index()].ty)).collect();
        let ports = arena
            .nodes()
            .iter()
            .take_while(|node| matches!(module.sigs.get(node.sig).callee, Callee::Op(Op::Port(_))));
        let body = Body { ports: ports.count(), noise, param_types, arena, results };
        let cell = module.intern_cell(name, body, |sites| sites.of(location));
        if cell.index() == self.sizes.len() {
            self.add_size(name, size, location);
        }
        let module = self.module_mut();
        let sig = module.bind(cell, lifted.into_iter().map(ParamArg::Module).collect());
        let name = unique(name, |name| module.exports.iter().any(|export| export.name == name));
        module.exports.push(Export { name, sig });
        sig
    }

    /// The number of cells that were declared so far, also those with equal bodies.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.module.exports.len()
    }

    /// The finished module.
    ///
    /// # Errors
    /// The first fault of any declaration or traced body.
    pub fn build(self) -> Result<Arc<Module>, EmitError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.module),
        }
    }

    /// Removes the first fault and returns it, for frontends that report a fault where it happens.
    pub fn take_fault(&mut self) -> Option<EmitError> {
        self.error.take()
    }

    /// Sets the line that following declarations name instead of the caller's, for frontends that are not
    /// written in Rust. `None` restores the caller's.
    pub fn set_site(&mut self, site: Option<Site>) {
        let module = self.module_mut();
        let site = site.map(|site| module.sites.intern(site));
        module.sites.set_current(site);
    }

    /// Records a fault that a layer detects during its declaration.
    pub fn fail(
        &mut self,
        what: &str,
        message: impl Into<String>,
        help: Option<String>,
        location: &'static Location<'static>,
    ) {
        if self.error.is_none() {
            self.error = Some(EmitError::from(Fault {
                op: what.to_owned(),
                message: message.into(),
                site: self.module.sites.current().cloned().unwrap_or_else(|| Site::from(location)),
                operands: Vec::new(),
                help,
                context: format!("while declaring module {}", self.module.name),
            }));
        }
    }

    fn module_mut(&mut self) -> &mut Module {
        Arc::get_mut(&mut self.module).expect("tracing graphs are dropped before their cell is installed")
    }
}

impl Module {
    /// The cell with this body, which is declared if it is new.
    pub(crate) fn intern_cell(
        &mut self,
        name: &str,
        body: Body,
        site: impl FnOnce(&mut Sites) -> SiteId,
    ) -> CellId {
        if let Some(known) = self.cells.iter().position(|decl| decl.body == body) {
            return CellId::new(known);
        }
        let name = unique(name, |name| self.cells.iter().any(|decl| decl.name == name));
        let site = site(&mut self.sites);
        self.cells.push(CellDecl { name, body, site });
        CellId::new(self.cells.len() - 1)
    }

    /// The signature of calls of `cell` with these parameter arguments.
    fn bind(&mut self, cell: CellId, params: Box<[ParamArg]>) -> SigId {
        let body = &self.cells[cell.index()].body;
        let signature = Signature {
            callee: Callee::Cell(cell),
            operands: body.port_types().collect(),
            params,
            param_types: body.param_types.clone().into(),
            results: body.results.iter().map(|&value| body.arena.type_of(value)).collect(),
        };
        self.sigs.intern(signature, &self.types)
    }
}

/// Checks that a parameter may have this type.
pub(crate) fn check_stored(ty: Type) -> Result<(), String> {
    match ty.dtype {
        DType::F32 | DType::F16 | DType::BF16 if !ty.is_list => Ok(()),
        _ => Err(format!("a parameter is stored as f32, f16 or bf16, found {ty}")),
    }
}

/// Checks that a parameter may have this kind, type and initialiser.
pub(crate) fn check_declaration(kind: ParamKind, ty: Type, init: &Init) -> Result<(), String> {
    check_stored(ty)?;
    let shape = ty.shape;
    if kind == ParamKind::Table && shape.rank() != 2 {
        return Err(format!("a table has the shape [rows, width], found {shape}"));
    }
    if let Init::Values(values) = init
        && values.len() != shape.elements()
    {
        let (found, expected) = (values.len(), shape.elements());
        return Err(format!("the shape {shape} needs {expected} values, found {found}"));
    }
    match *init {
        Init::Uniform(scale) | Init::Normal(scale) if !(scale.is_finite() && scale >= 0.0) => {
            Err(format!("the initial values need a finite spread of at least 0, found {scale}"))
        }
        Init::Glorot(gain) | Init::Saxe(gain) if !gain.is_finite() => {
            Err(format!("the initial values need a finite gain, found {gain}"))
        }
        _ => Ok(()),
    }
}

/// Checks a name. Text spells names bare, so their characters are limited.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let mut letters = name.chars();
    let head = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let tail = letters.all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    if head && tail && name.len() <= 255 {
        return Ok(());
    }
    Err(format!("a name begins with a letter and holds letters, digits, '_', '.' and '-', found {name:?}"))
}

fn unique(name: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(name) {
        return name.to_owned();
    }
    let candidates = (2..).map(|n| format!("{name}.{n}"));
    candidates.into_iter().find(|candidate| !taken(candidate)).expect("some number is free")
}
