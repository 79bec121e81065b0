"""Functions of a package that nobody can reach: references of its modules, followed from where programs begin.

Names are resolved through imports, as far as the syntax tree tells: `from a import b`, `import a` with `a.b`, a string
"a.module:Name", a program in a string. A method is reached where its class is and where an attribute of its name is
read in code that is reached; a function of a module that is passed around as a value likewise. So a function is
overlooked where another attribute has its name, and none is reported that is called. Code outside of functions and
classes runs at import: there the search begins, and with commands and what the caller names.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
REGISTERING = {"command", "callback"}  # decorators that make a function a command
PLAIN_BASES = {"NamedTuple", "Struct", "Generic", "Exception"}  # they call no method of a class below them

Place = tuple[str, str]  # module, and a name in it; "" is the module itself


class Package:
    """Parsed modules by dotted name; `outside` are programs that use them: benchmarks, examples in documents."""

    def __init__(self, modules: dict[str, ast.Module], outside: Iterable[ast.Module], words: Iterable[str]) -> None:
        self.modules = modules
        self.programs = {f"program {number}": tree for number, tree in enumerate(outside)}
        self.imported: dict[Place, set[Place]] = defaultdict(set)
        for name, tree in (modules | self.programs).items():
            self._read_imports(name, tree)
        self.definitions = {
            (module, node.name): node
            for module, tree in modules.items()
            for node in _statements(tree.body)
            if isinstance(node, FUNCTION | ast.ClassDef)
        }
        self.attributes = set(words)  # that are read; `words` by templates
        self.reached: set[Place] = set()  # a method is (module, "Class.method")

    def reach(self, begin: Iterable[Place]) -> None:
        """Follows all references from code that runs at import, from programs outside and from `begin`."""
        pending = [*begin, *self._at_import()]
        for name, tree in self.programs.items():
            pending += self._references(name, tree, set())
        while pending:
            while pending:
                for place in self.resolved(pending.pop()) - self.reached:
                    self.reached.add(place)
                    if place in self.definitions:
                        pending += self._inside(place)
            pending = [*self._methods(), *self._attributes_of_modules()]

    def unreached(self) -> Iterator[str]:
        """Every function, class and method that no reference leads to, as "module:name"."""
        for (module, name), node in self.definitions.items():
            if (module, name) not in self.reached and not name.startswith("__"):
                yield f"{module}:{name}"
            elif isinstance(node, ast.ClassDef):
                methods = (f"{name}.{method.name}" for method in node.body if isinstance(method, FUNCTION))
                yield from (f"{module}:{method}" for method in methods if (module, method) not in self.reached)

    def resolved(self, place: Place) -> set[Place]:
        """Where a name is defined, through any number of imports."""
        if place in self.definitions or place not in self.imported:
            return {place}
        return {end for other in self.imported[place] if other != place for end in self.resolved(other)}

    def _read_imports(self, module: str, tree: ast.AST) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    target = (inner, "") if inner in self.modules else (node.module, alias.name)
                    self.imported[module, alias.asname or alias.name].add(target)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self.imported[module, alias.asname or first].add((alias.name if alias.asname else first, ""))

    def _at_import(self) -> Iterator[Place]:
        for module, tree in self.modules.items():
            for node in _statements(tree.body):
                if not isinstance(node, FUNCTION | ast.ClassDef):
                    yield from self._references(module, node, set())
                elif any(_last_name(decorator) in REGISTERING for decorator in node.decorator_list):
                    yield module, node.name

    def _inside(self, place: Place) -> Iterator[Place]:
        node = self.definitions[place]
        parts = [*node.bases, *node.keywords, *node.decorator_list, *node.body] if _is_class(node) else [node]
        for part in parts:
            if not (_is_class(node) and isinstance(part, FUNCTION)):
                yield from self._references(place[0], part, set())

    def _methods(self) -> Iterator[Place]:
        """References from methods that are reached now and were not before."""
        for module, name in [place for place in self.reached if _is_class(self.definitions.get(place))]:
            node = self.definitions[module, name]
            called_by_others = not all(self._is_plain(module, base) for base in node.bases)
            for method in node.body:
                if not isinstance(method, FUNCTION) or (module, f"{name}.{method.name}") in self.reached:
                    continue
                if called_by_others or method.name.startswith("__") or method.name in self.attributes:
                    self.reached.add((module, f"{name}.{method.name}"))
                    yield from self._references(module, method, set())

    def _is_plain(self, module: str, base: ast.expr) -> bool:
        name = _last_name(base)
        return name in PLAIN_BASES or any(place in self.definitions for place in self.resolved((module, name)))

    def _attributes_of_modules(self) -> Iterator[Place]:
        """Functions of modules that are passed around, by the attributes that are read."""
        for module in [module for module, name in self.reached if not name and module in self.modules]:
            for name in self.attributes:
                if (module, name) in self.definitions and (module, name) not in self.reached:
                    yield module, name

    def _references(self, module: str, node: ast.AST, local: set[str]) -> Iterator[Place]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring calls nothing
        if isinstance(node, FUNCTION | ast.Lambda):
            local = local | _variables(node)
        if isinstance(node, ast.Attribute):
            self.attributes.add(node.attr)
            names = _chain(node)
            if names and names[0] not in local:
                yield from self._dotted(module, names)
                return
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in local:
            yield module, node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from self._text(node.value)
        for child in ast.iter_child_nodes(node):
            yield from self._references(module, child, local)

    def _dotted(self, module: str, names: list[str]) -> Iterator[Place]:
        """The longest beginning of a.b.c that is a module, and the name behind it."""
        self.attributes.update(names[1:])
        for place, name in self.resolved((module, names[0])):
            rest = names[1:]
            while not name and rest and f"{place}.{rest[0]}" in self.modules:
                place = f"{place}.{rest.pop(0)}"
            yield (place, rest[0]) if not name and rest else (place, name)

    def _text(self, text: str) -> Iterator[Place]:
        if re.fullmatch(r"[A-Za-z_]\w*", text):
            self.attributes.add(text)  # for getattr, and for tables of names that are imported later
        elif match := re.fullmatch(r"([\w.]+):(\w+)", text):
            yield match[1], match[2]
        else:  # a program for another process
            yield from re.findall(r"from ([\w.]+) import (\w+)", text)


def _statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The statements of a module, those inside `if`, `try` and `with` too, without imports."""
    for node in body:
        if isinstance(node, ast.If | ast.Try | ast.With):
            handlers = [statement for handler in getattr(node, "handlers", []) for statement in handler.body]
            inner = [*node.body, *getattr(node, "orelse", []), *handlers, *getattr(node, "finalbody", [])]
            yield from _statements(inner)
            yield from (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            yield node


def _variables(function: ast.AST) -> set[str]:
    """Names that are variables of a function."""
    nodes = list(ast.walk(function))
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _chain(node: ast.expr) -> list[str]:
    """a.b.c as its names; empty where it begins with no name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else []


def _is_class(node: ast.AST | None) -> bool:
    return isinstance(node, ast.ClassDef)


def _last_name(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
