import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { expectedOutcomes, slowFiles, testFiles } from "./official-files.ts";
import { vectorsFolder } from "./vector-files.ts";

const files = Object.keys(expectedOutcomes);

describe("the folder of official vectors", () => {
  it("is set by QSP_TEST_VECTORS if QSP_TEST_REQUIRE_ALL is 1", () => {
    expect(vectorsFolder !== undefined || process.env.QSP_TEST_REQUIRE_ALL !== "1").toBe(true);
  });

  it.skipIf(vectorsFolder === undefined)("holds the files of the table, 1,936 tests in all", () => {
    const found = readdirSync(vectorsFolder ?? "").filter((name) => name.endsWith(".json"));
    expect(found.sort()).toEqual(files);
    const total = Object.values(expectedOutcomes)
      .flat()
      .reduce((sum, count) => sum + count, 0);
    expect(total).toBe(1936);
  });
});

testFiles(files.filter((file) => !slowFiles.includes(file)));
