import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { maxSmallFileBytes, readFileWithin } from "../../read-file.ts";

/** Gateway port in envoy/envoy.yaml. */
const gatewayPort = 8443;

/** Certificates that clients must trust. */
interface Trust {
  /** Paths of the CA certificates; every client accepts the first one. */
  readonly certificates: readonly string[];
  /** Host names in a server certificate that they signed. */
  readonly names?: readonly string[];
}

/** Lists shell commands whose clients trust the CA. */
export function describeTrust({ certificates, names = [] }: Trust): string {
  const [first = ""] = certificates;
  const path = quote(first);
  const host = chooseHost(names);
  return `Clients that trust it, with the port of Envoy's gateway (a server without it has 8080):

  curl --cacert ${path} https://${host}:${gatewayPort}/readyz
  grpcurl -cacert ${path} ${host}:${gatewayPort} list
  NODE_EXTRA_CA_CERTS=${path} node client.js

SHA-256 fingerprints; compare them on the client:
${certificates.map((each) => `  ${computeFingerprint(each)}  ${each}`).join("\n")}`;
}

function chooseHost(names: readonly string[]): string {
  const name = names.find((each) => !each.startsWith("*")) ?? names[0]?.replace("*", "www") ?? "localhost";
  return isIP(name) === 6 ? `[${name}]` : name;
}

function computeFingerprint(path: string): string {
  return new X509Certificate(readFileWithin(path, maxSmallFileBytes)).fingerprint256;
}

/** Quotes a path for a POSIX shell. */
function quote(path: string): string {
  return /^[\w./:@-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
