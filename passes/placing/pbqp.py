"""Least sums of tables over variables with few values, found exactly (PBQP and more).

A variable has values 0, 1, ... A table says what each combination of values of some variables
costs; the solution is the choice whose costs add up to the least. With tables of one and two
variables this is the partitioned boolean quadratic problem of register allocation and instruction
selection (Scholz and Eckstein, 2002).

    problem = Problem()
    a, b = problem.variable(2), problem.variable(2)
    problem.add((a,), [0, 3])
    problem.add((a, b), [5, 0, 0, 5])    # row by row: (0, 0), (0, 1), (1, 0), (1, 1)
    problem.solve().choice               # (0, 1)

It is solved by elimination: for every choice of its neighbours the best value of one variable is
put into a table of the neighbours, which then stands for the variable. That is exact whatever the
graph; the tables stay small where the graph is nearly a tree, as those of programs are. Only where
a table would have more than `LIMIT` entries one variable is set without looking at all its
neighbours' choices, and the solution says that it is not `exact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import product
from math import prod
from operator import itemgetter
from typing import NamedTuple, TypeAlias

FORBIDDEN = 1 << 120
"""A cost that no sum of others reaches."""
LIMIT = 1 << 18
"""Entries of the largest table that is made."""

Scope: TypeAlias = tuple[int, ...]
Table: TypeAlias = list[int]


class Solution(NamedTuple):
    """The least total, a value for each variable, and whether it is proved to be the least."""

    total: int
    choice: tuple[int, ...]
    exact: bool

    @property
    def is_possible(self) -> bool:
        """Whether there is a choice that uses nothing forbidden."""
        return self.total < FORBIDDEN


@dataclass(frozen=True)
class _Settled:
    """A variable that is gone: its value for each choice of those it depended on."""

    variable: int
    scope: Scope
    best: dict[Scope, int]


class Problem:
    """Variables and tables. Tables of the same variables are added up."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.tables: dict[Scope, Table] = {}

    def variable(self, size: int) -> int:
        """A new variable with so many values."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def add(self, scope: Sequence[int], table: Sequence[int]) -> None:
        """Adds a table, its last variable running fastest. The variables are all different."""
        ordered = tuple(sorted(scope))
        entries = list(table)
        assert len(entries) == prod(self.sizes[v] for v in scope)
        if ordered != tuple(scope):
            places = [tuple(scope).index(v) for v in ordered]
            by_choice = dict(zip(self._choices(scope), entries, strict=True))
            turned = dict[Scope, int]()
            for choice, cost in by_choice.items():
                turned[tuple(choice[p] for p in places)] = cost
            entries = [turned[choice] for choice in self._choices(ordered)]
        known = self.tables.get(ordered)
        self.tables[ordered] = entries if known is None else _sum(known, entries)

    def cost(self, choice: Sequence[int]) -> int:
        """The total of one choice."""
        total = 0
        for scope, table in self.tables.items():
            index = 0
            for v in scope:
                index = index * self.sizes[v] + choice[v]
            total += table[index]
        return total

    def solve(self) -> Solution:
        """The least total. Among equal ones the first values, later variables decided first."""
        return _Elimination(self).run()

    def _choices(self, scope: Sequence[int]) -> product[Scope]:
        return product(*(range(self.sizes[v]) for v in scope))


def _sum(first: Table, second: Table) -> Table:
    return [a + b for a, b in zip(first, second, strict=True)]


class _Elimination:
    """One solution in the making: tables that are left, by the variables they speak of."""

    def __init__(self, problem: Problem):
        self._sizes = problem.sizes
        self._tables = dict(problem.tables)
        self._of: list[set[Scope]] = [set() for _ in problem.sizes]
        for scope in self._tables:
            for v in scope:
                self._of[v].add(scope)
        self._settled: list[_Settled] = []
        self._exact = True

    def run(self) -> Solution:
        weights = {v: self._weight(v) for v in range(len(self._sizes))}
        lightest = [(weight, v) for v, weight in weights.items()]
        heapify(lightest)
        while weights:
            weight, v = heappop(lightest)
            if weights.get(v) != weight:  # gone, or it has another weight by now
                continue
            touched = self._neighbours(v)
            if weight * self._sizes[v] > LIMIT:
                self._guess(v)
            else:
                self._eliminate(v)
            del weights[v]
            for u in touched:
                weights[u] = self._weight(u)
                heappush(lightest, (weights[u], u))
        choice = [0] * len(self._sizes)
        for settled in reversed(self._settled):
            choice[settled.variable] = settled.best[tuple(choice[u] for u in settled.scope)]
        total = sum(table[0] for scope, table in self._tables.items() if not scope)
        return Solution(total, tuple(choice), self._exact)

    def _neighbours(self, v: int) -> Scope:
        return tuple(sorted({u for scope in self._of[v] for u in scope} - {v}))

    def _weight(self, v: int) -> int:
        """Entries of the table that would stand for a variable."""
        return prod(self._sizes[u] for u in self._neighbours(v))

    def _take(self, v: int) -> list[tuple[Scope, dict[Scope, Table]]]:
        """Takes out a variable's tables: for each choice of the others the costs of its values."""
        found: list[tuple[Scope, dict[Scope, Table]]] = []
        for scope in sorted(self._of[v]):
            table = self._tables.pop(scope)
            for u in scope:
                self._of[u].discard(scope)
            others = tuple(u for u in scope if u != v)
            rows: dict[Scope, Table] = {}
            at = scope.index(v)
            for choice, cost in zip(
                product(*(range(self._sizes[u]) for u in scope)), table, strict=True
            ):
                rows.setdefault(choice[:at] + choice[at + 1 :], []).append(cost)
            found.append((others, rows))
        return found

    def _put(self, scope: Scope, table: Table) -> None:
        known = self._tables.get(scope)
        self._tables[scope] = table if known is None else _sum(known, table)
        for u in scope:
            self._of[u].add(scope)

    def _eliminate(self, v: int) -> None:
        scope = self._neighbours(v)
        tables = [(_picker(others, scope), rows) for others, rows in self._take(v)]
        best: dict[Scope, int] = {}
        entries: Table = []
        values = range(self._sizes[v])
        for choice in product(*(range(self._sizes[u]) for u in scope)):
            rows = [table[pick(choice)] for pick, table in tables]
            costs = rows[0] if len(rows) == 1 else list(map(sum, zip(*rows, strict=True)))
            least = min(costs, default=0)
            entries.append(least)
            best[choice] = costs.index(least) if costs else values[0]
        self._settled.append(_Settled(v, scope, best))
        self._put(scope, entries)

    def _guess(self, v: int) -> None:
        """Sets a variable by the least that each of its tables may add."""
        self._exact = False
        tables = self._take(v)
        hopes = [0] * self._sizes[v]
        for _, rows in tables:
            hopes = _sum(hopes, list(map(min, zip(*rows.values()))))
        value = hopes.index(min(hopes))
        self._settled.append(_Settled(v, (), {(): value}))
        for others, rows in tables:
            self._put(others, [row[value] for row in rows.values()])


def _picker(others: Scope, scope: Scope) -> Picker:
    """From a choice for `scope` that for `others`, as a tuple."""
    places = [scope.index(u) for u in others]
    if not places:
        return _Nothing()
    if len(places) == 1:
        return _One(places[0])
    return itemgetter(*places)


class _Nothing:
    def __call__(self, choice: Scope) -> Scope:
        return ()


class _One:
    def __init__(self, place: int):
        self._place = place

    def __call__(self, choice: Scope) -> Scope:
        return (choice[self._place],)


Picker: TypeAlias = "_Nothing | _One | itemgetter[Scope]"
