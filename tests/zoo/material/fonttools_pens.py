# %% [markdown]
# needs: fontTools

# %%
from fontTools.pens.recordingPen import RecordingPen
from fontTools.misc.transform import Identity, Transform
from fontTools.fontBuilder import FontBuilder
pen = RecordingPen()
pen.moveTo((0, 0))
pen.lineTo((10, 0))
print(pen.value, Identity.scale(2))

# %%
pen.lineTo((10, 10))
pen.closePath()
value = pen.value
print(len(value), value is pen.value)

# %%
fb = FontBuilder(1000, isTTF=True)
fb.setupGlyphOrder([".notdef", "A"])
fb.setupCharacterMap({65: "A"})
print(fb.font.getGlyphOrder(), fb.font["cmap"].getBestCmap())

# %%
fb.font["head"].unitsPerEm = 2048
print(fb.font["head"].unitsPerEm, sorted(fb.font.keys())[:2], fb.font["cmap"].tables[0] is fb.font["cmap"].tables[0])

# %%
value.append(("endPath", ()))
print(pen.value[-1], fb.font["head"].unitsPerEm, Transform(1, 0, 0, 1, 5, 5).transformPoint((1, 1)))
