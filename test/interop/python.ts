/** The Python that tests run, with the packages that they import. */
import { spawnSync } from "node:child_process";

/** Where .ci/run installs it; QSP_TEST_PYTHON overrides it. */
const candidates = [process.env.QSP_TEST_PYTHON, "/opt/qsp-python/bin/python", "python3"];

/**
 * Finds a Python that can import a module. With QSP_TEST_REQUIRE_ALL=1 it always returns one, so that tests run and fail.
 *
 * @param module such as "cryptography.hazmat.primitives.asymmetric.mldsa"
 * @returns undefined if its tests should be skipped
 */
export function findPython(module: string): string | undefined {
  const named = candidates.flatMap((candidate) => candidate || []);
  const found = named.find((python) => spawnSync(python, ["-c", `import ${module}`]).status === 0);
  return found ?? (process.env.QSP_TEST_REQUIRE_ALL === "1" ? named[0] : undefined);
}
