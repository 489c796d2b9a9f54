# %% [markdown]
# # Conway's Game of Life

# %%
import numpy as np
SIZE = 12
grid = np.zeros((SIZE, SIZE), dtype=int)

# %%
def show(grid):
    for row in grid:
        print("".join("#" if cell else "." for cell in row))

# %%
glider = np.array([[0, 1, 0],
                   [0, 0, 1],
                   [1, 1, 1]])
window = grid[1:4, 1:4]
window[:] = glider
show(grid)

# %%
def neighbours(grid):
    return sum(
        np.roll(np.roll(grid, dy, 0), dx, 1)
        for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)
    )

neighbours(grid)[:4, :4]

# %%
def step(grid):
    n = neighbours(grid)
    grid[:] = (n == 3) | ((grid == 1) & (n == 2))

# %%
generations = [grid.copy()]
for _ in range(4):
    step(grid)
    generations.append(grid.copy())
show(grid)

# %%
window              # it looks into the same grid

# %%
window.base is grid, np.array_equal(generations[-1], grid)

# %%
class Life:
    def __init__(self, grid, wrap=True):
        self.grid = grid
        self.age = 0
        self.listeners = []

    def on_step(self, function):
        self.listeners.append(function)
        return function

    def step(self, n=1):
        for _ in range(n):
            step(self.grid)
            self.age += 1
            for listener in self.listeners:
                listener(self)

# %%
life = Life(grid)
populations = []

@life.on_step
def count(world):
    populations.append(int(world.grid.sum()))

# %%
life.step(5)
populations, life.age

# %%
rng = np.random.default_rng(42)
soup = Life((rng.random((SIZE, SIZE)) < 0.3).astype(int))
soup.listeners = life.listeners          # both report to the same
soup.step(3)
print(populations)
show(soup.grid)

# %%
def step(grid):                          # a new rule: everybody dies
    grid[:] = 0

life.step()
populations[-1], grid.sum()

# %%
print(life.grid is grid, soup.listeners is life.listeners, window.any())

# %%
@life.on_step
def stop_at(world, limit=12):
    if world.age >= limit:
        raise StopIteration(f"age {world.age}")

# %%
# raises: StopIteration
soup.grid[5, 5] = 1
life.step(10)

# %%
life.age, len(populations), soup.grid.sum()

# %%
rows, cols = np.nonzero(generations[0])
list(zip(rows.tolist(), cols.tolist()))
