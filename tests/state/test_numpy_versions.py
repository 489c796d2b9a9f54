"""What goes to another numpy with each cell names nothing that only one version has."""

import pickletools

import numpy as np
import pytest

from bulletin.state import ambient, numpy_random, registrations


@pytest.fixture(autouse=True)
def _put_back() -> object:
    before = np.random.get_state(legacy=False)
    yield
    np.random.set_state(before)


def test_the_state_of_random_numbers_names_nothing_of_numpy() -> None:
    """An array of numpy 2 is pickled by functions that numpy 1 does not have."""
    operations = {operation.name for operation, _, _ in pickletools.genops(ambient.out()["numpy"])}
    assert not operations & {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"}


@pytest.mark.parametrize("generator", ["MT19937", "PCG64", "Philox", "SFC64"])
def test_random_numbers_go_on_where_they_were(generator: str) -> None:
    usual = np.random.get_bit_generator()
    np.random.set_bit_generator(getattr(np.random, generator)(3))
    try:
        np.random.normal(size=3)
        state = numpy_random.read_state(np.random)
        expected = np.random.normal(size=5).tolist()
        numpy_random.write_state(state)
        assert np.random.normal(size=5).tolist() == expected
    finally:
        np.random.set_bit_generator(usual)


def test_how_numpy_prints_travels_as_a_setting_alone() -> None:
    with np.printoptions(precision=3):
        found = registrations.observe({})
    assert not [place for place in found.get("numpy", {}) if place.attribute == "format_options"]
