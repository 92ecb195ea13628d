/**
 * A cryptography bill of materials: CycloneDX 1.7 (ECMA-424). The document is written in parts, because an
 * owner may have any number of keys.
 */
import { randomUUID } from "node:crypto";
import { readCertificates } from "../../crypto/certificate-files.ts";
import { readVersion } from "../../program-files.ts";
import { maxSmallFileBytes, readFileWithin } from "../../read-file.ts";
import type { Principal } from "../../records/ownership.ts";
import { type Asset, describeCertificate, describeKey, listUnique, sealing } from "./cbom-assets.ts";
import { type KmsStore, readKeys } from "./store.ts";

export interface CbomDeps {
  readonly keys: Pick<KmsStore, "list">;
  readonly now: () => Date;
  /** PEM files of the certificate chains that this server presents. */
  readonly certificateFiles: readonly string[];
}

/** Keys per part: few, so that other calls get their turns between the parts. A key takes up to 3 KB. */
const partKeys = 200;

const contentType = "application/vnd.cyclonedx+json; version=1.7";

/**
 * Writes the bill of materials of the keys in a caller's key list, their algorithms and the server's
 * certificates. Reads the keys once for their components and a second time for their dependencies, so that
 * memory use does not depend on their number.
 *
 * @returns the parts of one JSON document
 */
export async function* writeCbom(deps: CbomDeps, principal: Principal) {
  const server = describeServer(deps.certificateFiles.flatMap(readChain));
  const algorithms = new Map<string, Asset>();
  let written = 0;
  const components = createElements(({ component }) => component);
  const collect = ({ dependsOn }: Asset): void => {
    for (const asset of dependsOn) {
      algorithms.set(asset.ref, asset);
      collect(asset);
    }
  };
  const write = (assets: readonly Asset[]): string => {
    assets.forEach(collect);
    return components(assets);
  };
  // The first part contains keys, so that a call that cannot read them fails before it has sent anything.
  let opening = openDocument(deps.now(), server) + write(server.dependsOn);
  for await (const keys of readKeys(deps.keys, partKeys, { principal })) {
    yield toPart(opening + write(keys.map(describeKey)));
    written += keys.length;
    opening = "";
  }
  yield toPart(`${components([...algorithms.values()])}],"dependencies":[\n`);
  const dependencies = createElements(({ ref, dependsOn }) => ({
    ref,
    dependsOn: dependsOn.map((asset) => asset.ref),
  }));
  yield toPart(dependencies([server, ...server.dependsOn, ...algorithms.values()]));
  for await (const keys of readKeys(deps.keys, partKeys, { principal })) {
    // Keys that were created in the meantime have no component.
    yield toPart(dependencies(keys.slice(0, written).map(describeKey)));
    written -= keys.length;
    if (written <= 0) break;
  }
  yield toPart("]}\n");
}

function toPart(text: string) {
  return { contentType, data: Buffer.from(text) };
}

/** Writes the document up to its first component. */
function openDocument(now: Date, server: Asset): string {
  const head = JSON.stringify({
    bomFormat: "CycloneDX",
    specVersion: "1.7",
    serialNumber: `urn:uuid:${randomUUID()}`,
    version: 1,
    metadata: {
      timestamp: now.toISOString(),
      lifecycles: [{ phase: "operations" }],
      component: server.component,
    },
  });
  return `${head.slice(0, -1)},"components":[\n`;
}

function describeServer(certificates: readonly Asset[]): Asset {
  const [ref, version] = ["quantum-safe-playground", readVersion()];
  return {
    ref,
    component: { type: "application", "bom-ref": ref, name: ref, version },
    dependsOn: listUnique([sealing, ...certificates]),
  };
}

/**
 * Reads a certificate chain.
 *
 * @throws Error if the file was damaged after the server read it: a bill that omits it would be wrong
 */
function readChain(path: string): Asset[] {
  return readCertificates(readFileWithin(path, maxSmallFileBytes).toString()).map(describeCertificate);
}

/** Creates a writer of the elements of a JSON array, one per line. */
function createElements(toElement: (asset: Asset) => object): (assets: readonly Asset[]) => string {
  let isFirst = true;
  return (assets) => {
    if (assets.length === 0) return "";
    const lines = assets.map((asset) => JSON.stringify(toElement(asset))).join(",\n");
    const separator = isFirst ? "" : ",\n";
    isFirst = false;
    return separator + lines;
  };
}
