"""The log's database has one owner: SQL on its tables, and its connection, stand in `node/learning` only."""

import ast
import re
from pathlib import Path

import foltr
from foltr.node.index import schema
from foltr.node.learning import log

SOURCE = Path(foltr.__file__).parent
OWNER = SOURCE / "node" / "learning"
TABLES = set(log.TEXT_TABLES) | set(log._OTHER_TABLES)
SHARED = TABLES & set(schema.READ_TABLES)  # the index has tables of these names too
STATEMENT = re.compile(rf"\b(FROM|INTO|JOIN|UPDATE|TABLE)\s+({'|'.join(sorted(TABLES - SHARED))})\b")
CONNECTION = {"rows", "transaction", "changing_choices", "_connection"}


def texts(tree):
    """Every string of a module; of an f-string the parts that are written."""
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def asks_the_log(node):
    """`log.rows`, `self.log.transaction` and the like, whatever the variable before `log` is called."""
    if not isinstance(node, ast.Attribute) or node.attr not in CONNECTION:
        return False
    owner = node.value
    return (
        owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    ) == "log"


def trespasses(code):
    tree = ast.parse(code)
    sql = [text for text in texts(tree) if STATEMENT.search(text)]
    return sql + [ast.unparse(node) for node in ast.walk(tree) if asks_the_log(node)]


def test_statements_on_the_log_and_its_connection_are_found():
    assert trespasses('x = f"DELETE FROM choices WHERE id = {y}"')
    assert trespasses('self.log.rows("VACUUM")')
    assert trespasses("with node.log.transaction() as connection: pass")
    assert not trespasses('reader.rows("SELECT id FROM documents")')
    assert all(
        trespasses((OWNER / f"{name}.py").read_text("utf-8")) for name in ("log", "erasure", "versions", "curations")
    )


def test_only_the_learning_package_speaks_sql_to_the_log():
    others = [path for path in SOURCE.rglob("*.py") if OWNER not in path.parents]
    assert len(others) > 100
    found = {path.relative_to(SOURCE).as_posix(): trespasses(path.read_text("utf-8")) for path in others}
    assert not {name: what for name, what in found.items() if what}


def test_at_most_eight_modules_stand_at_the_root_of_the_node():
    assert len(list((SOURCE / "node").glob("*.py"))) <= 8
