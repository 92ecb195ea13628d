import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { maxSmallFileBytes, readFileWithin } from "../../read-file.ts";

/** Gateway port in envoy/envoy.yaml. */
const gatewayPort = 8443;

/** Certificates that clients must trust. */
interface Trust {
  /** Paths of the CA certificates: ECDSA, which every client accepts, and ML-DSA. */
  readonly certificates: readonly string[];
  /** Host names in a server certificate that they signed. */
  readonly names?: readonly string[];
}

/** Lists shell commands whose clients trust the CA. */
export function describeTrust({ certificates, names = [] }: Trust): string {
  const [path = "", ...others] = certificates.map(quote);
  const host = chooseHost(names);
  return `Clients that trust it, with the port of Envoy's gateway (a server without it has 8080):

  curl --cacert ${path} https://${host}:${gatewayPort}/readyz
  grpcurl -cacert ${path} ${host}:${gatewayPort} list
  NODE_EXTRA_CA_CERTS=${path} node client.js
${others.length === 0 ? "" : describeBoth([path, ...others], `https://${host}:${gatewayPort}/readyz`)}
SHA-256 fingerprints; compare them on the client:
${certificates.map((each) => `  ${computeFingerprint(each)}  ${each}`).join("\n")}`;
}

/** A server with two certificates sends such a client the second one, even if it trusts only the first CA. */
function describeBoth(paths: readonly string[], url: string): string {
  return `
If the server has both certificates, clients that support ML-DSA-65, such as those with OpenSSL 3.5, must trust both CAs:

  cat ${paths.join(" ")} > ca-both.crt
  curl --cacert ca-both.crt ${url}
`;
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
