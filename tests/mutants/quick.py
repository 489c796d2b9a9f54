"""Loaded by pytest before the tests: random tests are the same each time, and what fails is not made smaller."""

from hypothesis import Phase, settings

settings.register_profile(
    "mutants", derandomize=True, database=None, deadline=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("mutants")
