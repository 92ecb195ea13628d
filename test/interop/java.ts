/** Java programs used by tests, with their libraries. .ci/run pins the versions. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { isMissing } from "./tools.ts";

const directory = process.env.QSP_JAVA_LIBRARIES || "/opt/qsp-java";
const jars = ["bcpkix", "bcprov", "bcutil"].map((name) => join(directory, `${name}-jdk18on.jar`));

/** Class path with Bouncy Castle. */
export const bouncyCastle = jars.join(delimiter);

/** Returns whether to skip tests with Bouncy Castle; with QSP_TEST_REQUIRE_ALL=1 they run and fail. */
export function isBouncyCastleMissing(): boolean {
  if (isMissing("java")) return true;
  return process.env.QSP_TEST_REQUIRE_ALL !== "1" && !jars.every((jar) => existsSync(jar));
}
