#!/usr/bin/env python3
"""Makes the fonts of reports from the variable font of the pages.

A drawing on the server has no browser that picks a weight from a variable font or a figure style from a
feature, so three weights are cut out, with figures of one width in the place of the others. Run in a folder
where `npm pack @fontsource-variable/inter` was unpacked, with fonttools and brotli installed:

    python3 make.py package/files /where/they/go
"""

import sys
from pathlib import Path

from fontTools.merge import Merger
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

SUBSETS = ["latin", "latin-ext", "vietnamese", "greek", "cyrillic"]
WEIGHTS = {"Regular": 400, "Medium": 500, "SemiBold": 600}


def tabular(font):
    """Puts the figures of the feature `tnum` in the place of the usual ones."""
    swaps = {}
    if "GSUB" in font:
        table = font["GSUB"].table
        for record in table.FeatureList.FeatureRecord:
            if record.FeatureTag == "tnum":
                for index in record.Feature.LookupListIndex:
                    for sub in table.LookupList.Lookup[index].SubTable:
                        swaps.update(getattr(sub, "mapping", {}) or getattr(sub, "ExtSubTable", sub).mapping)
    for cmap in font["cmap"].tables:
        # Only figures: signs and dashes of figure width would tear words apart.
        for code in set(range(ord("0"), ord("9") + 1)) & set(cmap.cmap):
            cmap.cmap[code] = swaps.get(cmap.cmap[code], cmap.cmap[code])
    return len(swaps)


def cut(path, weight):
    font = instantiateVariableFont(TTFont(path), {"wght": weight})
    swapped = tabular(font)
    options = Options(layout_features=["kern", "mark", "mkmk", "ccmp"], hinting=False, notdef_outline=True)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=font.getBestCmap().keys())
    subsetter.subset(font)
    for name in ("STAT", "DSIG"):
        if name in font:
            del font[name]
    return font, swapped


def main(source, target):
    for style, weight in WEIGHTS.items():
        parts = []
        for subset in SUBSETS:
            font, swapped = cut(Path(source) / f"inter-{subset}-wght-normal.woff2", weight)
            font.flavor = None
            part = Path(target) / f"{style}-{subset}.ttf"
            font.save(part)
            parts.append(part)
            if subset == "latin" and not swapped:
                raise SystemExit("the font has no figures of one width")
        merged = Merger().merge([str(part) for part in parts])
        merged["OS/2"].usWeightClass = weight
        for record in merged["name"].names:
            if record.nameID in (1, 16):
                record.string = "Inter"
            elif record.nameID in (2, 17):
                record.string = style
            elif record.nameID in (4, 6):
                record.string = f"Inter-{style}"
        merged.save(Path(target) / f"Inter-{style}.ttf")
        for part in parts:
            part.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:3])
