# %% [markdown]
# needs: ase, qutip

# %%
import qutip, numpy as np
from ase import Atoms
from ase.calculators.emt import EMT
a = Atoms('CO', positions=[[0, 0, 0], [0, 0, 1.1]]); a.calc = EMT(); pos = a.positions
q = qutip.basis(2, 0); at = a[1]

# %%
pos[1, 2] = 1.2; round(a.get_potential_energy(), 4), at.z

# %%
at.z = 1.3; pos.tolist(), round(a.get_potential_energy(), 4)

# %%
pos.tolist(), at.position.tolist(), a.calc.atoms == a

# %%
from ase.constraints import FixAtoms
a.set_constraint(FixAtoms([0])); a.set_positions([[5, 5, 5], [0, 0, 2]]); a.positions.tolist()

# %%
a.positions.tolist(), at.z, a.positions is pos

# %%
qutip.settings.core['atol'] = 1e-9; (qutip.sigmax() * q).full().real.tolist()

# %%
qutip.settings.core['atol'], q.isket, qutip.expect(qutip.sigmaz(), q)
