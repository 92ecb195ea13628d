import os from "node:os";
import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: vitest reads the default export
export default defineConfig({
  test: {
    globalSetup: "test/postgres/global-setup.ts",
    // One more than vitest would take: most tests wait for programs that they started.
    maxWorkers: Math.max(2, os.availableParallelism()),
  },
});
