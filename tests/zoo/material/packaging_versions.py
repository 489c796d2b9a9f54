# %% [markdown]
# needs: packaging

# %%
from packaging.version import Version, InvalidVersion
from packaging.specifiers import SpecifierSet
from packaging.requirements import Requirement
from packaging.markers import Marker, default_environment
v = Version("1.2.3rc1")
s = SpecifierSet(">=1.0,<2")
print(v in s, s.contains(v, prereleases=True), v.release)

# %%
r = Requirement("zoo[big]>=1; python_version > '3'")
r.extras.add("small")
print(sorted(r.extras), r.marker.evaluate(), r.specifier == SpecifierSet(">=1"))

# %%
s.prereleases = True
class Mine(Version):
    @property
    def short(self):
        return f"v{self.major}"
m = Mine("3.1")
print(v in s, m.short, m > v)

# %%
table = {v: "old", m: "new"}
print(table[Version("1.2.3rc1")], max(table), sorted(r.extras), str(r))

# %%
# raises: InvalidVersion
Version("one")
