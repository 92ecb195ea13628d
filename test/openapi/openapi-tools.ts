/** Programs from PyPI and Maven Central that read OpenAPI descriptions. Their versions are pinned in .ci/run. */
import { existsSync } from "node:fs";
import { join } from "node:path";

const directory = process.env.QSP_OPENAPI_TOOLS ?? "/opt/qsp-openapi";

/** The path of a program of the Python environment. */
export function pythonTool(name: string): string {
  return join(directory, "bin", name);
}

/** The program that generates clients in many languages. */
export const openapiGenerator = join(directory, "openapi-generator-cli.jar");

/** Tells whether a test is to be skipped because a file is missing; with QSP_TEST_REQUIRE_ALL=1 it runs, and fails. */
export function isToolMissing(path: string): boolean {
  return process.env.QSP_TEST_REQUIRE_ALL !== "1" && !existsSync(path);
}
