# %% [markdown]
# needs: PIL

# %%
from PIL import Image, ImageDraw, ImageFilter
image = Image.new("RGB", (16, 16), "navy")
pen = ImageDraw.Draw(image)
layers = {"base": image, "top": image.copy()}
print(image.getpixel((3, 3)))

# %%
pen.rectangle((2, 2, 6, 6), fill=(255, 0, 0))
print(layers["base"].getpixel((3, 3)), layers["top"].getpixel((3, 3)))

# %%
layers["top"].paste(image.crop((2, 2, 5, 5)), (10, 10))
image.info["title"] = "box"
pixels = image.load()
pixels[15, 15] = (1, 2, 3)
print(layers["top"].getpixel((11, 11)), image.getpixel((15, 15)))

# %%
pen.line((0, 0, 15, 0), fill="white")
small = image.filter(ImageFilter.BoxBlur(1)).resize((2, 2))
print(list(small.getdata())[:1], layers["base"] is image, image.info)

# %%
indexed = image.quantize(4)
indexed.putpalette([0, 0, 0, 255, 255, 255, 9, 9, 9, 7, 7, 7])
print(indexed.mode, indexed.getpalette()[:6], image.getpixel((0, 0)))

# %%
pixels[0, 0] = (7, 7, 7)
print(image.getpixel((0, 0)), indexed.size)
