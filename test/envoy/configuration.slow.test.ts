/** Validates the configurations with Envoy itself. */
import { execFile } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { findEnvoy } from "../../envoy/edge.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { describeEdge, makeCertificate } from "./edge-tools.ts";

const root = join(import.meta.dirname, "../..");
const allFiles = ["envoy.yaml", "services.yaml", "protect.yaml"] as const;

describeEdge("the committed configuration", () => {
  it.each(allFiles)("of %s is valid", async (file) => {
    const directory = makeTemporaryDirectory();
    symlinkSync(join(root, "envoy"), join(directory, "envoy"));
    mkdirSync(join(directory, "data/tls"), { recursive: true });
    makeCertificate(join(directory, "data/tls"));
    const args = ["--mode", "validate", "-c", `envoy/${file}`];
    const { stdout } = await promisify(execFile)(findEnvoy() ?? "envoy", args, { cwd: directory });
    expect(stdout).toContain("OK");
  });
});
