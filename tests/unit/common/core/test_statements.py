"""SQL with named parameters."""

import pytest

from services.common.core.statements import Statement


def test_names_become_numbers_in_the_order_of_their_first_use() -> None:
    statement = Statement("SELECT :b::int, :a, :b FROM t WHERE x[1:2] = :a_1")
    assert statement.text == "SELECT $1::int, $2, $1 FROM t WHERE x[1:2] = $3"
    assert statement.names == ("b", "a", "a_1")
    assert statement.bind(a=1, b=2, a_1=3) == (statement.text, 2, 1, 3)


@pytest.mark.parametrize("values", [{}, {"a": 1, "b": 2}, {"b": 2}])
def test_names_that_are_not_the_statements_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="parameters"):
        Statement("SELECT :a").bind(**values)
