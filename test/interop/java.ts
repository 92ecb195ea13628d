/** Java programs of the tests, with the libraries that they import. Their versions are pinned in .ci/run. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { isMissing } from "./tools.ts";

const directory = process.env.QSP_JAVA_LIBRARIES || "/opt/qsp-java";
const jars = ["bcpkix", "bcprov", "bcutil"].map((name) => join(directory, `${name}-jdk18on.jar`));

/** The class path with Bouncy Castle. */
export const bouncyCastle = jars.join(delimiter);

/** Tells whether tests of Bouncy Castle are to be skipped; with QSP_TEST_REQUIRE_ALL=1 they run, and fail. */
export function isBouncyCastleMissing(): boolean {
  if (isMissing("java")) return true;
  return process.env.QSP_TEST_REQUIRE_ALL !== "1" && !jars.every((jar) => existsSync(jar));
}
