import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import * as cells from "../../page/home/cells.ts";

/** Positions of a path's squares: "column row". */
function placesOf(path: string): string[] {
  return [...path.matchAll(/M(\d+) (\d+)/g)].map(([, column, row]) => `${column} ${row}`);
}

describe("the parts of ML-DSA-65 values", () => {
  it("add up to a signature and a public key", () => {
    expect(cells.countBytes(cells.signatureParts)).toBe(ml_dsa65.lengths.signature);
    expect(cells.countBytes(cells.publicKeyParts)).toBe(ml_dsa65.lengths.publicKey);
  });

  it("name each byte, including the first and last of each part", () => {
    const names = [0, 47, 48, 3247, 3248, 3308].map((index) => cells.nameByte(index, cells.signatureParts));
    const parts = ["the challenge", "the response", "the hint"];
    expect(names).toEqual(parts.flatMap((part) => [part, part]));
  });
});

describe("drawBytes", () => {
  it("draws each byte once, at its position, shaded by its value, in its part's colour", () => {
    const parts = [
      { name: "a", bytes: 2 },
      { name: "b", bytes: 3 },
    ];
    const drawn = cells
      .drawBytes(Uint8Array.of(0, 255, 255, 0, 128), parts, 2)
      .filter(({ path }) => path !== "");
    const shown = drawn.map(({ part, level, path }) => `${part} ${level}: ${placesOf(path)}`);
    expect(shown).toEqual(["0 0: 0 0", "0 5: 1 0", "1 0: 1 1", "1 3: 0 2", "1 5: 0 1"]);
  });
});

describe("drawSquares", () => {
  it("draws as many squares as bytes, row by row", () => {
    expect(placesOf(cells.drawSquares(5, 2))).toEqual(["0 0", "1 0", "0 1", "1 1", "0 2"]);
    expect(cells.countRows(5, 2)).toBe(3);
  });
});

describe("findByte", () => {
  it("finds the square under the pointer, and none beyond the last one", () => {
    expect(cells.findByte(0.5, 0.5, 2, 5)).toBe(0);
    expect(cells.findByte(1.99, 1.01, 2, 5)).toBe(3);
    expect(cells.findByte(1.5, 2.5, 2, 5)).toBeUndefined();
    expect(cells.findByte(-0.1, 0, 2, 5)).toBeUndefined();
    expect(cells.findByte(2, 0, 2, 5)).toBeUndefined();
  });
});
