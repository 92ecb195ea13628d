/**
 * Draws the preview picture for links to the console, 1200×630: the home page's signature and the ones that
 * it replaces, to scale. Run it after a change, and commit the file: node console/test/draw-share-picture.ts
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { classicalAlgorithms } from "../page/classical.ts";
import { drawBytes, drawSquares, signatureParts } from "../page/home/cells.ts";
import { toUtf8 } from "../page/values.ts";
import { openBrowser } from "./browser.ts";

const size = { width: 1200, height: 630 };
const unit = 7;
const columns = 104;
const colours = [
  ["#3b321c", "#5f4e28", "#866d35", "#ae8d42", "#d6ac4f", "#ffc65c"],
  ["#14272c", "#1c3f47", "#256570", "#2f8a98", "#3eaec0", "#4fd3e4"],
  ["#2d2538", "#4a3b5e", "#675284", "#866aaa", "#a682d4", "#c79bff"],
];

// Deterministic: the key comes from a fixed seed, and the signature is not randomized.
const { secretKey } = ml_dsa65.keygen(new Uint8Array(32));
const signature = ml_dsa65.sign(toUtf8("Pay 100 to Ada"), secretKey, { extraEntropy: false });
const shades = drawBytes(signature, signatureParts, columns)
  .map(({ part, level, path }) => `<path fill="${colours[part]?.[level]}" d="${path}"/>`)
  .join("");
const replaced = classicalAlgorithms
  .filter(({ signatureBytes }) => signatureBytes !== undefined)
  .map(({ name, signatureBytes = 0 }, at) => {
    const x = 850 + (at % 2) * 160;
    const y = 262 + Math.floor(at / 2) * 120;
    const squares = drawSquares(signatureBytes, signatureBytes > 128 ? 16 : 8);
    return `<text x="${x}" y="${y - 12}" class="name">${name}</text>
      <path transform="translate(${x} ${y}) scale(${unit})" fill="#7d8a92" d="${squares}"/>`;
  })
  .join("");
const picture = `<!doctype html><style>
  body { margin: 0; background: #0b1114 }
  text { fill: #e6eaec; font: 600 46px "DejaVu Sans", sans-serif; letter-spacing: -1px }
  .accent { fill: #67d5df }
  .name { font-size: 20px; letter-spacing: 0 }
  .soft { fill: #a3b0b7; font-size: 22px; font-weight: 400; letter-spacing: 0 }
</style>
<svg width="${size.width}" height="${size.height}">
  <text x="56" y="86">Today’s signatures will not survive</text>
  <text x="56" y="144">quantum computers. <tspan class="accent">This one is built to.</tspan></text>
  <text x="56" y="218" class="soft">ML-DSA-65, 3,309 bytes: try to forge it</text>
  <g transform="translate(56 240) scale(${unit})">${shades}</g>
  ${replaced}
  <text x="56" y="582" class="soft">Quantum-Safe Playground: ML-DSA, ML-KEM and SLH-DSA, at work and byte by byte</text>
</svg>`;

const browser = await openBrowser();
const page = await browser.newPage({ viewport: size });
await page.setContent(picture);
const file = join(import.meta.dirname, "../page/share.png");
await writeFile(file, await page.screenshot());
await browser.close();
