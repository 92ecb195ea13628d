import { describe, expect, it } from "vitest";
import { slowFiles, testFiles } from "./official-files.ts";
import { readVectorFile, vectorFiles, vectorsFolder } from "./procedures.ts";

describe("the folder of official vectors", () => {
  it("is set by QSP_TEST_VECTORS if QSP_TEST_REQUIRE_ALL is 1", () => {
    expect(vectorsFolder !== undefined || process.env.QSP_TEST_REQUIRE_ALL !== "1").toBe(true);
  });

  it.skipIf(vectorsFolder === undefined)("holds 1,936 tests in 61 files", () => {
    const counts = vectorFiles.map((file) => readVectorFile(vectorsFolder ?? "", file).vectors.length);
    expect(counts).toHaveLength(61);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1936);
  });
});

testFiles(vectorFiles.filter((file) => !slowFiles.includes(file)));
