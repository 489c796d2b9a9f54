# %% [markdown]
# needs: rdflib

# %%
from rdflib import Graph, Literal, RDF, URIRef, Namespace, BNode, XSD
from rdflib.namespace import FOAF
EX = Namespace("http://ex.org/")
g = Graph()
g.bind("ex", EX)
g.add((EX.ann, RDF.type, FOAF.Person))
g.add((EX.ann, FOAF.age, Literal(30)))
print(len(g), g.value(EX.ann, FOAF.age))

# %%
g.add((EX.bob, FOAF.knows, EX.ann))
g.add((EX.bob, FOAF.name, Literal("Bob", lang="en")))
print(g.serialize(format="turtle"))

# %%
q = g.query("SELECT ?a WHERE { ?s foaf:age ?a }", initNs={"foaf": FOAF})
print([r.a.toPython() for r in q])

# %%
print((EX.bob, FOAF.knows, None) in g, EX.bob == URIRef("http://ex.org/bob"), FOAF.name in FOAF, sorted(g.subjects(unique=True)))

# %%
g.update("INSERT DATA { <http://ex.org/cat> a <http://ex.org/Cat> }")
print(len(g), dict(g.namespaces())["ex"])

# %%
from rdflib.plugins.sparql import prepareQuery, CUSTOM_EVALS
pq = prepareQuery("SELECT ?n WHERE { ?s foaf:name ?n }", initNs={"foaf": FOAF})
print([str(r.n) for r in g.query(pq)])

# %%
print([str(r.n) for r in g.query(pq, initBindings={"s": EX.bob})], [str(r.n) for r in g.query(pq, initBindings={"s": EX.ann})])

# %%
def visits(x):
    return Literal(int(x) * 2)
from rdflib.plugins.sparql.operators import register_custom_function, unregister_custom_function
register_custom_function(EX.twice, visits)
print([str(r[0]) for r in g.query("SELECT (<http://ex.org/twice>(?a) AS ?d) WHERE { ?s <%s> ?a }" % FOAF.age)])

# %%
print([str(r[0]) for r in g.query("SELECT (<http://ex.org/twice>(?a) AS ?d) WHERE { ?s <%s> ?a }" % FOAF.age)])

# %%
class Temp(float):
    pass
from rdflib.term import bind
bind(EX.temp, Temp, constructor=Temp, lexicalizer=lambda t: "%.1f" % t)
l = Literal(Temp(3.25))
print(l.datatype, l)

# %%
l2 = Literal("4.5", datatype=EX.temp)
print(type(l2.value).__name__, type(l2.toPython()) is Temp, l == Literal(Temp(3.25)))

# %%
g2 = Graph() + g
g2.remove((None, RDF.type, None))
print(len(g), len(g2), (g - g2).__len__())
