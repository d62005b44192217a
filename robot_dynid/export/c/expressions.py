"""Expressions that simplify as they are built and share equal parts, and their text in C.

A program is a graph: every operation on the same operands exists once, zeros, ones and products of
constants are worked out at once, signs move outwards. What no result needs is never written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from robot_dynid.errors import ModelError

Number = float | int
#: longest expression that is written in one line with what uses it
WIDEST = 72
#: columns of a line of C
COLUMNS = 96


@dataclass(frozen=True, eq=False)
class Node:
    """A value of a `Graph`: ``kind`` number, symbol, ``+``, ``-``, ``*``, ``/``, neg or a call.

    ``order`` counts the nodes of the graph; ``value`` is that of a number, ``text`` the name of a
    symbol or function, or the place of a symbol.
    """

    graph: Graph
    order: int
    kind: str
    operands: tuple[Node, ...] = ()
    value: float = math.nan
    text: str = ''

    def __add__(self, other: Node | Number) -> Node:
        return self.graph.sum(self, self.graph.node(other))

    def __radd__(self, other: Number) -> Node:
        return self.graph.sum(self.graph.node(other), self)

    def __sub__(self, other: Node | Number) -> Node:
        return self.graph.difference(self, self.graph.node(other))

    def __rsub__(self, other: Number) -> Node:
        return self.graph.difference(self.graph.node(other), self)

    def __mul__(self, other: Node | Number) -> Node:
        return self.graph.product(self, self.graph.node(other))

    def __rmul__(self, other: Number) -> Node:
        return self.graph.product(self.graph.node(other), self)

    def __truediv__(self, other: Node | Number) -> Node:
        return self.graph.quotient(self, self.graph.node(other))

    def __neg__(self) -> Node:
        return self.graph.negative(self)

    @property
    def is_number(self) -> bool:
        """Whether it is a constant."""
        return self.kind == 'number'

    @property
    def is_zero(self) -> bool:
        """Whether it vanishes."""
        return self.is_number and self.value == 0.0


class Graph:
    """Nodes of one program."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Node] = {}

    def _made(self, kind: str, *operands: Node, value: float = math.nan, text: str = '') -> Node:
        key = (kind, text, None if math.isnan(value) else value, *(o.order for o in operands))
        if key not in self._known:
            self._known[key] = Node(self, len(self._known), kind, operands, value, text)
        return self._known[key]

    def node(self, value: Node | Number) -> Node:
        """Return a number as a node; raises ModelError where it is not finite."""
        if isinstance(value, Node):
            return value
        if not math.isfinite(value):
            raise ModelError(f'a constant of the model is {value}: C code needs finite ones')
        return self._made('number', value=float(value) + 0.0)

    def symbol(self, place: str) -> Node:
        """Return the value at a ``place`` of the surrounding C code."""
        return self._made('symbol', text=place)

    def symbols(self, array: str, count: int) -> list[Node]:
        """Return the ``count`` elements of an array."""
        return [self.symbol(f'{array}[{i}]') for i in range(count)]

    def call(self, function: str, *operands: Node | Number) -> Node:
        """Return the value of a function of C."""
        return self._made('call', *(self.node(o) for o in operands), text=function)

    def if_less(self, left: Node | Number, right: Node | Number, then: Node | Number,
                otherwise: Node | Number) -> Node:
        """Return ``then`` where ``left`` is below ``right``."""
        return self._made('?', *(self.node(o) for o in (left, right, then, otherwise)))

    def negative(self, a: Node) -> Node:
        """Return -a."""
        if a.is_number:
            return self.node(-a.value)
        if a.kind == 'neg':
            return a.operands[0]
        return self._made('neg', a)

    def sum(self, a: Node, b: Node) -> Node:
        """Return a + b."""
        if a.is_number and b.is_number:
            return self.node(a.value + b.value)
        if a.is_zero or b.is_zero:
            return b if a.is_zero else a
        if a.kind == 'neg' and b.kind == 'neg':
            return -self.sum(a.operands[0], b.operands[0])
        if a.kind == 'neg' or b.kind == 'neg':
            return self.difference(b, -a) if a.kind == 'neg' else self.difference(a, -b)
        if a.is_number or b.is_number:
            constant, rest = (a, b) if a.is_number else (b, a)
            if constant.value < 0.0:
                return self._made('-', rest, -constant)
            return self._made('+', constant, rest)
        share, other = self._scaled(a), self._scaled(b)
        if share[1] is other[1]:
            return (share[0] + other[0]) * share[1]
        first, second = (a, b) if a.order < b.order else (b, a)
        return self._made('+', first, second)

    def difference(self, a: Node, b: Node) -> Node:
        """Return a - b."""
        if b.is_number:
            return self.sum(a, -b)
        if a.is_number and a.value <= 0.0:
            return -self.sum(-a, b)
        if b.kind == 'neg':
            return self.sum(a, b.operands[0])
        if a.kind == 'neg':
            return -self.sum(a.operands[0], b)
        share, other = self._scaled(a), self._scaled(b)
        if share[1] is other[1]:
            return (share[0] - other[0]) * share[1]
        if a.order > b.order and not a.is_number:
            return -self._made('-', b, a)
        return self._made('-', a, b)

    def product(self, a: Node, b: Node) -> Node:
        """Return a b."""
        if b.is_number:
            a, b = b, a
        if a.is_number:
            return self._multiple(a.value, b)
        if a.kind == 'neg':
            return -self.product(a.operands[0], b)
        if b.kind == 'neg':
            return -self.product(a, b.operands[0])
        first, second = (a, b) if a.order < b.order else (b, a)
        return self._made('*', first, second)

    def _multiple(self, factor: float, a: Node) -> Node:
        """Return a number times a."""
        if a.is_number:
            return self.node(factor * a.value)
        if factor in (0.0, 1.0):
            return a if factor else self.node(0.0)
        if factor < 0.0:
            return -self._multiple(-factor, a)
        if a.kind == 'neg':
            return -self._multiple(factor, a.operands[0])
        own, rest = self._scaled(a)
        if own != 1.0:
            return self._multiple(factor * own, rest)
        return self._made('*', self.node(factor), a)

    def quotient(self, a: Node, b: Node) -> Node:
        """Return a / b; raises ModelError where b is the number zero."""
        if b.is_number:
            if b.value == 0.0:
                raise ModelError('the mass matrix of the model is singular for every position: '
                                 'identify with --method feasible')
            return self.node(a.value / b.value) if a.is_number else self._made('/', a, b)
        if a.is_zero:
            return a
        if a.kind == 'neg':
            return -self.quotient(a.operands[0], b)
        return self._made('/', a, b)

    @staticmethod
    def _scaled(a: Node) -> tuple[float, Node]:
        """Return factor and rest of a product with a number."""
        if a.kind == '*' and a.operands[0].is_number:
            return a.operands[0].value, a.operands[1]
        return 1.0, a


@dataclass(frozen=True)
class Assignment:
    """Statement ``place = value``."""

    place: str
    value: Node


Statement = Assignment | str
PRECEDENCE = {'?': 0, '+': 1, '-': 1, '*': 2, '/': 2, 'neg': 3}


class Writer:
    """Writes statements in C, each shared value once; text among them is taken over as it is.

    Places are read before the first of the results that follow is assigned, so a result may be
    stored where an argument was.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        self._uses = _uses(s.value for s in statements if isinstance(s, Assignment))
        self._names: dict[Node, str] = {}
        self._lines: list[str] = []

    def lines(self) -> list[str]:
        """Return the lines of the body of a function."""
        waiting: list[Assignment] = []
        for statement in self._statements:
            if isinstance(statement, Assignment):
                waiting.append(statement)
                continue
            self._assign(waiting)
            waiting = []
            self._lines += wrapped(f'    {statement}')
        self._assign(waiting)
        return self._lines

    def _assign(self, group: Sequence[Assignment]) -> None:
        for node in _ordered(s.value for s in group):
            if node not in self._names and self._kept(node):
                name = self._name_of(node)
                self._put(f'const double {name} = ', self._text(node, 0))
                self._names[node] = name
        for statement in group:
            self._put(f'{statement.place} = ', self._operand(statement.value, 0))

    def _name_of(self, node: Node) -> str:
        if node.kind == 'symbol':
            return re.sub(r'\W+', '_', node.text).strip('_')
        return f't{len(self._names)}'

    def _kept(self, node: Node) -> bool:
        """Return whether a node gets a name."""
        if node.is_number or (node.kind == 'neg' and not self._long(node)):
            return False
        return node.kind == 'symbol' or self._uses[node] > 1 or self._long(node)

    def _long(self, node: Node) -> bool:
        return len(self._text(node, 0)) > WIDEST

    def _operand(self, node: Node, outer: int) -> str:
        return self._names[node] if node in self._names else self._text(node, outer)

    def _text(self, node: Node, outer: int) -> str:
        """Return a node within an operator of precedence ``outer``."""
        if node.is_number:
            return repr(node.value) if node.value >= 0.0 or outer == 0 else f'({node.value!r})'
        if node.kind == 'symbol':
            return node.text
        if node.kind == 'call':
            return f'{node.text}({", ".join(self._operand(o, 0) for o in node.operands)})'
        own = PRECEDENCE[node.kind]
        text = self._operation(node, own)
        return f'({text})' if own < outer else text

    def _operation(self, node: Node, own: int) -> str:
        if node.kind == '?':
            below, bound, then, otherwise = (self._operand(o, 1) for o in node.operands)
            return f'{below} < {bound} ? {then} : {otherwise}'
        if node.kind == 'neg':
            return f'-{self._operand(node.operands[0], own)}'
        left, right = node.operands
        after = own + (node.kind in '-/')
        return f'{self._operand(left, own)} {node.kind} {self._operand(right, after)}'

    def _put(self, head: str, text: str) -> None:
        self._lines += wrapped(f'    {head}{text};')


def wrapped(line: str) -> list[str]:
    """Return a line of C as lines of at most COLUMNS, broken behind commas and at spaces."""
    indent, found = ' ' * (len(line) - len(line.lstrip()) + 8), []
    while len(line) > COLUMNS:
        cut = line.rfind(', ', len(indent), COLUMNS) + 2
        if cut < COLUMNS // 2:
            cut = line.rfind(' ', len(indent) + 1, COLUMNS) + 1
        if cut <= 0:
            break
        found.append(line[:cut].rstrip())
        line = indent + line[cut:]
    return [*found, line]


def _ordered(results: Iterable[Node]) -> list[Node]:
    """Return all nodes that results need, operands first, in the order in which they were made."""
    found: set[Node] = set()
    left = list(results)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.operands
    return sorted(found, key=lambda node: node.order)


def _uses(results: Iterable[Node]) -> dict[Node, int]:
    """Return the nodes, and how often each is an operand or a result."""
    ends = list(results)
    uses = dict.fromkeys(_ordered(ends), 0)
    for node in [o for n in uses for o in n.operands] + ends:
        uses[node] += 1
    return uses
