# %% [markdown]
# needs: shapely

# %%
import shapely
from shapely import Point, Polygon, STRtree
from shapely.prepared import prep
p = Polygon([(0, 0), (2, 0), (2, 2), (0, 2)])
pts = [Point(1, 1), Point(5, 5)]
print(p.area, p.contains(pts[0]))

# %%
tree = STRtree(pts)
quick = prep(p)
print(tree.query(p), quick.contains(pts[1]))

# %%
q = p.buffer(1).intersection(Polygon([(1, 1), (9, 1), (9, 9)]))
print(round(q.area, 4), tree.geometries[0] is pts[0])

# %%
shapely.prepare(p)
print(shapely.is_prepared(p), quick.contains(pts[0]), {p: 1}[Polygon(p)])

# %%
coords = shapely.get_coordinates(q)
coords[0] = 0
print(q.is_valid, tree.query(Point(5, 5)), p.wkt)

# %%
# raises: GEOSException
shapely.from_wkt("POINT(")
