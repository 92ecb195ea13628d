/** Generates the vectors of our own formats: `node test/vectors/own/generate.ts` writes them beside this file. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { auditEntryVectors, checkpointVectors } from "./audit.ts";
import { blockVectors } from "./block.ts";
import { compositeVectors } from "./composite.ts";
import { firmwareVectors, telemetryVectors } from "./devices.ts";
import { encryptionVectors } from "./encryption.ts";
import { gatewayKeyVectors, handshakeVectors } from "./handshake.ts";
import { keyShareVectors } from "./key-share.ts";
import { metadataVectors, publicKeyVectors, tokenVectors } from "./names.ts";
import { proposalVectors } from "./proposal.ts";
import type { VectorSet } from "./vector-set.ts";

/** The functions that generate the vectors, one for each file. */
const makers: readonly (() => VectorSet)[] = [
  auditEntryVectors,
  blockVectors,
  checkpointVectors,
  compositeVectors,
  encryptionVectors,
  firmwareVectors,
  gatewayKeyVectors,
  handshakeVectors,
  keyShareVectors,
  metadataVectors,
  proposalVectors,
  publicKeyVectors,
  telemetryVectors,
  tokenVectors,
];

/** The content of every file, by its name. */
export function renderVectorFiles(): ReadonlyMap<string, string> {
  const sets = makers.map((make) => make());
  return new Map(sets.map((set) => [`${set.name}.json`, `${JSON.stringify(set, undefined, 2)}\n`]));
}

if (import.meta.main) {
  for (const [name, text] of renderVectorFiles()) writeFileSync(join(import.meta.dirname, name), text);
}
