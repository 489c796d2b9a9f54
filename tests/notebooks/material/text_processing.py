# %% [markdown]
# # Words, files, JSON

# %%
import re, json, csv, os, string, textwrap
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple, ChainMap
from pathlib import Path

# %%
poem = """The river runs, the river bends,
It carries leaves, it carries friends.
And nobody knows where the river ends -
The river that runs, the river that bends."""
lines = poem.splitlines()
len(lines), lines[-1]

# %%
words = re.findall(r"\w+", poem.lower())
freq = Counter(words)
freq.most_common(3)

# %%
freq["river"] -= 1
freq.update(["ocean"])
+freq == freq, freq["river"]

# %%
index = defaultdict(set)
for number, line in enumerate(lines):
    for word in re.findall(r"\w+", line.lower()):
        index[word].add(number)
sorted(index["river"]), index["missing"], len(index)

# %%
pattern = re.compile(r"(?P<first>\w+) (?P<second>\w+)")
match = pattern.search(poem)
match.group("second"), match.span()

# %%
del match
swapped = pattern.sub(r"\2 \1", lines[0])
swapped

# %%
folder = Path("texts")
folder.mkdir(exist_ok=True)
for number, line in enumerate(lines):
    (folder / f"line{number}.txt").write_text(line + "\n")
sorted(p.name for p in folder.iterdir())

# %%
sizes = {p.stem: p.stat().st_size for p in sorted(folder.glob("*.txt"))}
sizes

# %%
with open(folder / "all.txt", "w") as out:
    for p in sorted(folder.glob("line*.txt")):
        with open(p) as f:
            out.write(f.read())
out.closed, f.name

# %%
# raises: ValueError
f.read()

# %%
Point = namedtuple("Point", "x y")
p = Point(1, 2)
config = OrderedDict(b=1, a=[1, 2, {"c": None}])
config.move_to_end("b")
text = json.dumps({"point": p, "config": config, "pi": 3.14, "ok": True}, indent=1)
print(text)

# %%
loaded = json.loads(text)
loaded["config"]["a"][2]["c"] = p
p._replace(x=9), loaded["config"]["a"][2]["c"] is p

# %%
# raises: JSONDecodeError
json.loads("{'single': 1}")

# %%
with open("table.csv", "w", newline="") as f:
    writer = csv.DictWriter(f, ["word", "n"])
    writer.writeheader()
    for word, n in freq.most_common(3):
        writer.writerow({"word": word, "n": n})
del writer
print(Path("table.csv").read_text())

# %%
with open("table.csv") as f:
    rows = list(csv.DictReader(f))
rows[0], type(rows[0]).__name__

# %%
last = deque(maxlen=3)
for word in words:
    last.append(word)
last.rotate(1)
last

# %%
defaults = {"size": 1, "color": "red"}
user = {}
settings = ChainMap(user, defaults)
settings["size"] = 5
user, defaults["size"], settings["color"]

# %%
def caesar(text, key):
    table = str.maketrans(string.ascii_lowercase, string.ascii_lowercase[key:] + string.ascii_lowercase[:key])
    return text.lower().translate(table)
secret = caesar(poem, 3)
caesar(secret, 23) == poem.lower(), secret[:20]

# %%
os.chdir(folder)
len(os.listdir("."))

# %%
print(os.path.basename(os.getcwd()))
os.environ["POEM"] = "river"
os.chdir("..")

# %%
os.environ["POEM"], Path("table.csv").exists()

# %%
# !echo $POEM
files = !ls texts
files

# %%
print(textwrap.fill(poem.replace("\n", " "), 30))
print("%-10s|%5.2f|%r" % ("left", 3.14159, "q"), f"{1234567:,}", "{0!r:>8}".format("x"))

# %%
b = "naïve café ☕".encode()
b, b.decode()[::-1], len(b)

# %%
# raises: UnicodeDecodeError
b[:3].decode("ascii")
