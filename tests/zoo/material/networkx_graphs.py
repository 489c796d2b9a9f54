# %% [markdown]
# needs: networkx

# %%
import networkx as nx
g = nx.Graph(name="roads")
g.add_weighted_edges_from([("a", "b", 3), ("b", "c", 1), ("a", "c", 7)])
view, nodes = g.subgraph("ab"), g.nodes
print(g, list(view.edges(data=True)))

# %%
g.nodes["a"]["pop"] = 5
g["a"]["b"]["weight"] = 10
print(nx.shortest_path(g, "a", "c", weight="weight"), view["a"]["b"], nodes["a"])

# %%
class Net(nx.DiGraph):
    def double(self):
        for u, v, d in self.edges(data=True):
            d["w"] *= 2
net = Net([("x", "y", {"w": 1})])
net.double()
print(net.edges["x", "y"], type(net.reverse()).__name__)

# %%
g.add_node("d")
net.double()
adjacency = g.adj
print(len(nodes), nodes is g.nodes, net["x"]["y"])

# %%
net.remove_node("x")
g.remove_edge("a", "b")
print(dict(adjacency["a"]), list(view.edges), view.nodes)

# %%
# raises: NodeNotFound
nx.shortest_path(net, "y", "x")
