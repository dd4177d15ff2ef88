"""The solver against exhaustive search on small random graphs."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.passes.placing import pbqp
from fragir.passes.placing.pbqp import FORBIDDEN, Problem

COSTS = st.one_of(st.integers(0, 20), st.just(FORBIDDEN))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    problem = Problem()
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    for size in sizes:
        problem.variable(size)
    numbers = range(len(sizes))
    for _ in range(draw(st.integers(0, 9))):
        scope = draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=3, unique=True))
        count = 1
        for v in scope:
            count *= sizes[v]
        problem.add(scope, draw(st.lists(COSTS, min_size=count, max_size=count)))
    return problem


def least(problem: Problem) -> int:
    return min(problem.cost(choice) for choice in product(*map(range, problem.sizes)))


@settings(max_examples=150, deadline=None)
@given(problems())
def test_the_solution_is_the_least_of_all(problem: Problem) -> None:
    solution = problem.solve()
    assert solution.exact
    assert solution.total == least(problem) == problem.cost(solution.choice)
    assert solution.is_possible == (least(problem) < FORBIDDEN)


def test_tables_are_given_in_any_order_of_their_variables() -> None:
    problem = Problem()
    a, b = problem.variable(2), problem.variable(3)
    problem.add((b, a), [9, 9, 9, 0, 9, 9])  # b = 1, a = 1
    assert problem.solve() == (0, (1, 1), True)


def test_among_equal_choices_the_first_values_are_taken() -> None:
    problem = Problem()
    variables = [problem.variable(3) for _ in range(4)]
    for first, second in pairwise(variables):
        problem.add((first, second), [0 if i == j else 1 for i in range(3) for j in range(3)])
    assert problem.solve().choice == (0, 0, 0, 0)


def test_what_is_too_dense_is_said_not_to_be_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pbqp, "LIMIT", 8)
    problem = Problem()
    variables = [problem.variable(3) for _ in range(6)]
    for i, first in enumerate(variables):
        for second in variables[i + 1 :]:
            problem.add((first, second), [5, 1, 1, 1, 5, 1, 1, 1, 5])
    solution = problem.solve()
    assert not solution.exact
    assert solution.total == problem.cost(solution.choice) >= least(problem)
