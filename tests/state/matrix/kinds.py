"""All families of the matrix, in the order of the page."""

from .arrays import NUMPY
from .builtin import DEFINED, VALUES
from .conventions import CONVENTIONS
from .drawing import MATPLOTLIB, PILLOW
from .frames import ARROW, PANDAS, POLARS
from .science import LEARN, NETWORKX, SCIPY
from .stdlib import DATA, RUNNING
from .tensors import MODULES, TENSORS

FAMILIES = (
    VALUES,
    DEFINED,
    CONVENTIONS,
    DATA,
    RUNNING,
    NUMPY,
    PANDAS,
    POLARS,
    ARROW,
    SCIPY,
    LEARN,
    NETWORKX,
    TENSORS,
    MODULES,
    PILLOW,
    MATPLOTLIB,
)
