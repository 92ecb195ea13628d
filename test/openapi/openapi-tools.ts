/** PyPI and Maven Central programs that read OpenAPI descriptions. Their versions are pinned in .ci/run. */
import { existsSync } from "node:fs";
import { join } from "node:path";

const directory = process.env.QSP_OPENAPI_TOOLS ?? "/opt/qsp-openapi";

/** Returns the path of a program in the Python environment. */
export function pythonTool(name: string): string {
  return join(directory, "bin", name);
}

/** Generates clients in many languages. */
export const openapiGenerator = join(directory, "openapi-generator-cli.jar");

/**
 * Returns whether to skip a test because a file is missing; with QSP_TEST_REQUIRE_ALL=1 the test runs and
 * fails.
 */
export function isToolMissing(path: string): boolean {
  return process.env.QSP_TEST_REQUIRE_ALL !== "1" && !existsSync(path);
}
