# ruff: noqa: E501  a row is a line
"""Kinds of pillow and matplotlib."""

from .kind import Family, Kind as K

PLT = "import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\nplt.close('all')\n"
CLOSE = "import matplotlib.pyplot as plt; plt.close('all')"

# fmt: off
PILLOW = Family("pillow", (
    *(K(f"Image, mode {mode}", f"from PIL import Image\nx = Image.new('{mode}', (3, 2))", f"x.putpixel((1, 1), {pixel})", look="x.mode, x.size, x.getpixel((1, 1)), x.tobytes()") for mode, pixel in (("L", 9), ("RGB", (1, 2, 3)), ("RGBA", (1, 2, 3, 4)), ("1", 255), ("I", 70000), ("F", 1.5), ("CMYK", (1, 2, 3, 4)))),
    K("Image, mode P with a palette", "from PIL import Image\nx = Image.new('P', (2, 2))\nx.putpalette([0, 0, 0, 9, 9, 9])", "x.putpixel((0, 0), 1)", look="x.tobytes(), x.getpalette()[:6]"),
    K("Image with info", "from PIL import Image\nx = Image.new('L', (1, 1))\nx.info['dpi'] = [72]", "x.info['dpi'].append(1)", look="x.info", inner="x.info"),
    K("Image of a PNG file in memory", "from PIL import Image\nimport io\nb = io.BytesIO()\nImage.new('RGB', (2, 2), 'red').save(b, 'png')\nb.seek(0)\nx = Image.open(b)", "p = x.load(); del p", look="x.size, x.mode, x.tobytes(), x.im is not None", once=True),
    K("ImageDraw", "from PIL import Image, ImageDraw\nim = Image.new('L', (3, 3))\nx = ImageDraw.Draw(im)", "x.point((1, 1), 9)", look="im.tobytes(), x._image is im"),
    K("ImageFont", "from PIL import ImageFont\nx = ImageFont.load_default_imagefont()", look="x.getbbox('a')", behind="x.font: ImagingFont"),
), needs=("PIL",))

MATPLOTLIB = Family("matplotlib", (
    K("Figure", f"{PLT}x, ax = plt.subplots()", "x.suptitle('t'); x.axes[0].plot([1, 2])", look="x._suptitle and x._suptitle.get_text(), [len(a.lines) for a in x.axes], x.number", inner="x.axes[0]", after=CLOSE),
    K("Axes", f"{PLT}fig, x = plt.subplots()", "x.plot([1, 2], label='l'); x.set_title('t'); x.set_xlim(0, 9)", look="x.get_title(), [l.get_ydata().tolist() for l in x.lines], x.get_xlim(), x.figure is fig", inner="x.figure", after=CLOSE),
    K("Axes, shared and in a grid", f"{PLT}fig, x = plt.subplots(2, 2, sharex=True)", "x[0, 0].set_xlim(0, 5)", look="[a.get_xlim() for a in x.ravel()]", inner="x[1, 1]", after=CLOSE),
    K("lines, bars, images", f"{PLT}fig, ax = plt.subplots()\nx = [ax.plot([1, 2])[0], ax.bar([1], [2]), ax.imshow([[1, 2]])]", "x[0].set_ydata([5, 6]); x[1][0].set_height(9); x[2].set_clim(0, 7)", look="x[0].get_ydata(), x[1][0].get_height(), x[2].get_clim(), x[0] in ax.lines", inner="x[0]", after=CLOSE),
    K("polar Axes", f"{PLT}fig = plt.figure()\nx = fig.add_subplot(projection='polar')", "x.plot([0, 1], [1, 2])", look="len(x.lines), x.name", after=CLOSE),
    K("3d Axes", f"{PLT}fig = plt.figure()\nx = fig.add_subplot(projection='3d')", "x.plot([0, 1], [1, 2], [3, 4])", look="len(x.lines), x.name", after=CLOSE),
    K("Figure outside pyplot", "from matplotlib.figure import Figure\nx = Figure()\nx.subplots()", "x.axes[0].set_title('t')", look="[a.get_title() for a in x.axes]", inner="x.axes[0]"),
    K("rcParams", "import matplotlib\nx = matplotlib.rcParams\nwas = x['lines.linewidth']", "x['lines.linewidth'] = was + 5", look="x['lines.linewidth'] - was, x is matplotlib.rcParams", after="x['lines.linewidth'] = was", wrong="there back", known="there it is a copy"),
    K("colour map", "import matplotlib\nx = matplotlib.colormaps['viridis'].copy()", "x.colorbar_extend = 'both'", look="x(.5), x.colorbar_extend, x.name"),
    K("ListedColormap, Normalize, LogNorm", "from matplotlib import colors\nx = [colors.ListedColormap(['r', 'b']), colors.Normalize(0, 5), colors.LogNorm(1, 10)]", "x[1].vmax = 10; x[2].vmin = 2", look="x[0](0), float(x[1](5)), x[2].vmin", inner="x[1]"),
    K("ScalarMappable", "from matplotlib import cm\nx = cm.ScalarMappable(cmap='viridis')", "x.set_clim(0, 2)", look="x.get_clim(), x.to_rgba(1)", inner="x.norm"),
    K("Path, Affine2D", "from matplotlib.path import Path\nfrom matplotlib.transforms import Affine2D\nx = [Path([[0, 0], [1, 1]]), Affine2D().scale(2)]", "x[0].vertices[0, 0] = 5; x[1].rotate_deg(90)", look="x[0].vertices.tolist(), x[1].get_matrix().round(6).tolist()", inner="x[1]"),
    K("animation", f"{PLT}from matplotlib.animation import FuncAnimation\nfig, ax = plt.subplots()\ndef f(i): return ax.lines\nx = FuncAnimation(fig, f, frames=2)\nx._draw_was_started = True", "x.extra = 1", look="x._func is f, hasattr(x, 'extra')", after=CLOSE),
), needs=("matplotlib",))
# fmt: on
