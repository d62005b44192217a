"""Which examples the tests with hypothesis try: always the same ones, unless asked otherwise.

`make test` must not fail by chance, so its examples follow from the test alone. `make soak` runs
the same tests with ``--hypothesis-profile=soak``: other examples every time; what fails is printed
as a line that can be put above the test.
"""

from hypothesis import settings

#: fewest examples of a test; those of one whose examples take a tenth of a second and more
FEWEST, COSTLY = 25, 15

settings.register_profile('same', derandomize=True, deadline=None)
settings.register_profile('soak', derandomize=False, deadline=None, print_blob=True)
settings.load_profile('same')
