//! Colour arithmetic: contrast, lightness, mixing, and which colours can be distinguished.
//!
//! The namesake of `web/shared/color.js` and `web/shared/palette.js`, held to them by
//! `web/test/golden.json`.
//!
//! A host chooses colours of its own, and a dashboard must stay readable with any of them:
//!
//! ```text
//! painted("rgb(0 0 0 / 50%)", white)           #808080    half of what lies below shows through
//! contrast(#6b6e78, white)                     5.09       enough for text, which needs 4.5
//! contrast(#d07f0e, white)                     3.12       enough for marks, which need 3, not for text
//! readable_on(#ffff00, white, 4.5)             #797900    darker, of the same hue
//! apart(#315ed9, #025278)                      13.5       distinguishable; below 12 it would be a guess
//! ```

/// Red, green and blue, 0 to 255 each.
pub type Rgb = [u8; 3];

/// Linear sRGB as seen with no deficiency and without red, green or blue cones, row by row.
/// Source: Machado et al., 2009, severity 1.
/// Three rows of three: the new red of the second one is `0.152286 r + 1.052583 g - 0.204868 b`.
const VISIONS: [[f64; 9]; 4] = [
    [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
    [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
    [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
    [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
];
/// Less than this between two series is a guess, not a reading.
const APART_MIN: f64 = 12.0;
/// Surfaces below this luminance are dark: white reads better on them than black.
/// At 0.179, white and black have the same contrast: `1.05 / 0.229` and `0.229 / 0.05` are both about 4.6.
const DARK_LUMINANCE: f64 = 0.179;
/// A colour as text, at most.
/// In bytes: `rgb(100% 100% 100% / 50%)` has 25.
const CHARS_MAX: usize = 80;

/// sRGB channel to linear light: 0 to 0.0, 255 to 1.0, and 128 to 0.216.
fn to_linear(channel: u8) -> f64 {
    let c = f64::from(channel) / 255.0;
    if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

/// The inverse of [`to_linear`], clamped to 0 to 255.
fn to_channel(c: f64) -> u8 {
    let v = if c <= 0.003_130_8 { c * 12.92 } else { 1.055 * c.max(0.0).powf(1.0 / 2.4) - 0.055 };
    (v.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Any CSS colour as it looks over a surface; nothing for what is none.
/// `#0f766e` is `[15, 118, 110]` over anything; `transparent` is the colour below. `url(x)`, `var(--a)`, an empty
/// text and texts of more than 80 bytes are `None`.
pub fn painted(text: &str, under: Rgb) -> Option<Rgb> {
    if text.len() > CHARS_MAX {
        return None;
    }
    let color = csscolorparser::parse(text).ok()?;
    let alpha = f64::from(color.a).clamp(0.0, 1.0);
    let over = |channel: f32, below: u8| {
        let channel = f64::from(channel).clamp(0.0, 1.0) * 255.0;
        (channel * alpha + f64::from(below) * (1.0 - alpha)).round() as u8
    };
    Some([over(color.r, under[0]), over(color.g, under[1]), over(color.b, under[2])])
}

/// `#rrggbb`.
/// `[15, 118, 110]` is `#0f766e`.
pub fn hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Relative luminance, WCAG 2.
/// White is 1, black is 0, and `#315ed9` is 0.137: green counts most, blue least.
pub fn luminance(rgb: Rgb) -> f64 {
    let [r, g, b] = rgb.map(to_linear);
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// Contrast ratio 1 to 21, WCAG 2.
/// Black on white is 21, a colour on itself 1. The order does not matter.
pub fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Whether a surface takes the dark palette.
/// `#757575` is dark with 0.178, `#767676` is light with 0.181.
pub fn is_dark(rgb: Rgb) -> bool {
    luminance(rgb) < DARK_LUMINANCE
}

/// sRGB to OKLab. Source: Björn Ottosson, "A perceptual color space for image processing", 2020.
/// `[lightness, a, b]`: lightness from 0 to 1, `a` from green to red, `b` from blue to yellow.
fn to_oklab(rgb: Rgb) -> [f64; 3] {
    let [r, g, b] = rgb.map(to_linear);
    let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    [
        0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
        1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
        0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
    ]
}

/// OKLab to sRGB, clipped.
fn from_oklab([light, a, b]: [f64; 3]) -> Rgb {
    let l = (light + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (light - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (light - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
    [
        to_channel(4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s),
        to_channel(-1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s),
        to_channel(-0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701 * s),
    ]
}

/// So many parts of a hundred of one colour, the others of another, as CSS `color-mix(in oklab)`.
/// `mix(text, 8.0, card)` is the colour of grid lines: a little of the text on the card.
pub fn mix(one: Rgb, percent: f64, other: Rgb) -> Rgb {
    let (one, other) = (to_oklab(one), to_oklab(other));
    let part = percent / 100.0;
    from_oklab([0, 1, 2].map(|at| one[at] * part + other[at] * (1.0 - part)))
}

/// The colour nearest in lightness that reaches a contrast on a surface; black or white may be the best
/// there is.
/// Black on black with a ratio of 3 becomes `[91, 91, 91]`, with 4.5 `[119, 119, 119]`. On the red
/// `#e11d48`, with which it has a contrast of 4.47, it turns to `[252, 252, 252]` for 4.5: dark surfaces take light text.
pub fn readable_on(rgb: Rgb, surface: Rgb, ratio: f64) -> Rgb {
    if contrast(rgb, surface) >= ratio {
        return rgb;
    }
    let [from, a, b] = to_oklab(rgb);
    // A hundredth of lightness at a time, away from the surface.
    let away = if is_dark(surface) { 0.01 } else { -0.01 };
    let mut best = rgb;
    let mut light = from + away;
    while (0.0..=1.0).contains(&light) {
        // Chroma shrinks towards black and white, or clipping would turn the hue.
        let keep = 1f64.min(light / from.max(0.01)).min((1.0 - light) / (1.0 - from).max(0.01));
        best = from_oklab([light, a * keep, b * keep]);
        if contrast(best, surface) >= ratio {
            break;
        }
        light += away;
    }
    best
}

/// CIE L*a*b* under D65 of a colour as one kind of vision sees it.
/// Differences are computed here: in sRGB, equal steps do not look equal.
fn to_lab(rgb: Rgb, vision: &[f64; 9]) -> [f64; 3] {
    let c = rgb.map(to_linear);
    let [r, g, b] = [0, 3, 6].map(|at| {
        (vision[at] * c[0] + vision[at + 1] * c[1] + vision[at + 2] * c[2]).clamp(0.0, 1.0)
    });
    let [x, y, z] = [
        (0.412_456_4 * r + 0.357_576_1 * g + 0.180_437_5 * b) / 0.950_47,
        0.212_672_9 * r + 0.715_152_2 * g + 0.072_175 * b,
        (0.019_333_9 * r + 0.119_192 * g + 0.950_304_1 * b) / 1.088_83,
    ]
    .map(|t| if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// Colour difference CIEDE2000. Source: Sharma, Wu, Dalal, 2005.
/// 0 for equal colours, 100 for black and white. The hue is an angle: 350° and 10° are 20° apart, not 340°.
fn ciede2000([l1, a1, b1]: [f64; 3], [l2, a2, b2]: [f64; 3]) -> f64 {
    let pull = |c: f64| (c.powi(7) / (c.powi(7) + 25f64.powi(7))).sqrt();
    let g = 0.5 * (1.0 - pull(f64::midpoint(a1.hypot(b1), a2.hypot(b2))));
    let (p1, p2) = (a1 * (1.0 + g), a2 * (1.0 + g));
    let (c1, c2) = (p1.hypot(b1), p2.hypot(b2));
    let hue = |b: f64, a: f64| {
        if a == 0.0 && b == 0.0 { 0.0 } else { (b.atan2(a).to_degrees() + 360.0) % 360.0 }
    };
    let (h1, h2) = (hue(b1, p1), hue(b2, p2));
    let grey = c1 * c2 == 0.0;
    let mut turned = if grey { 0.0 } else { h2 - h1 };
    if turned.abs() > 180.0 {
        turned -= turned.signum() * 360.0;
    }
    let sum = h1 + h2;
    let h = match () {
        () if grey => sum,
        () if (h1 - h2).abs() <= 180.0 => sum / 2.0,
        () if sum < 360.0 => f64::midpoint(sum, 360.0),
        () => (sum - 360.0) / 2.0,
    };
    let (l, c) = (f64::midpoint(l1, l2), f64::midpoint(c1, c2));
    let cos = |degrees: f64| degrees.to_radians().cos();
    let t = 1.0 - 0.17 * cos(h - 30.0) + 0.24 * cos(2.0 * h) + 0.32 * cos(3.0 * h + 6.0)
        - 0.2 * cos(4.0 * h - 63.0);
    let from_middle = (l - 50.0).powi(2);
    let lightness = (l2 - l1) / (1.0 + 0.015 * from_middle / (20.0 + from_middle).sqrt());
    let chroma = (c2 - c1) / (1.0 + 0.045 * c);
    let hues = 2.0 * (c1 * c2).sqrt() * (turned / 2.0).to_radians().sin() / (1.0 + 0.015 * c * t);
    let blue = (60.0 * (-((h - 275.0) / 25.0).powi(2)).exp()).to_radians().sin();
    let turn = -blue * 2.0 * pull(c);
    (lightness.powi(2) + chroma.powi(2) + hues.powi(2) + turn * chroma * hues).sqrt()
}

/// How far apart two colours are for the eyes that see them closest.
/// `apart(black, white)` is 100, `apart(black, #17181c)` 5.3. Red and green are 19.4 apart: the eyes
/// without green cones see them closer than others do.
pub fn apart(a: Rgb, b: Rgb) -> f64 {
    let seen = |vision| ciede2000(to_lab(a, vision), to_lab(b, vision));
    VISIONS.iter().map(seen).fold(f64::INFINITY, f64::min)
}

/// The colours behind a primary one: those that could be taken for it go to the end.
/// Behind the teal `#0f766e`, `#b72d56`, `#025278` and `#4d7102` come last, each group in its order; so the first
/// series of a chart are those that differ from the primary one.
pub fn rotate(primary: Rgb, others: &[Rgb]) -> Vec<Rgb> {
    let (mut rotated, close): (Vec<Rgb>, Vec<Rgb>) =
        others.iter().partition(|color| apart(primary, **color) >= APART_MIN);
    rotated.extend(close);
    rotated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colors_are_painted_and_what_is_seen_through_shows() {
        let white = [255; 3];
        assert_eq!(painted("#0f766e", white), Some([15, 118, 110]));
        assert_eq!(painted("rgb(0 0 0 / 50%)", white), Some([128; 3]));
        assert_eq!(painted("transparent", [1, 2, 3]), Some([1, 2, 3]));
        assert_eq!(painted("hsl(120, 100%, 50%)", white), Some([0, 255, 0]));
        for odd in ["", "#12", "url(x)", "var(--a)", "rgb(nan nan nan)", &"#".repeat(99), "é"] {
            assert_eq!(painted(odd, white), None, "{odd}");
        }
    }
}
