"""Every form of linalg is read, printed and read again, and means what its table says."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.printer import Printer

import fragir
from fragir.passes.linalg_normalize import LinalgNormalizePass
from fragir.plugins import FragirContext
from tests.linalg.forms import Form, forms

FORMS = forms()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_printed_and_read_again(form: Form) -> None:
    module = fragir.parse(form.text)
    printed = str(module)
    assert form.name.partition(" ")[0] in printed
    assert str(fragir.parse(printed)) == printed
    generic = StringIO()
    Printer(generic, print_generic_format=True).print_op(module)
    assert str(fragir.parse(generic.getvalue())) == printed


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_normalised(form: Form) -> None:
    """Nothing but generics and fills is left, and it verifies."""
    module = fragir.parse(form.text)
    LinalgNormalizePass().apply(FragirContext(), module)
    module.verify()
    kinds = {type(op) for op in module.walk() if isinstance(op, LinalgStructuredOperation)}
    assert kinds <= {ops.GenericOp, ops.FillOp}
    assert str(fragir.parse(str(module))) == str(module)


def test_there_are_many() -> None:
    assert len({form.name for form in FORMS}) > 85
