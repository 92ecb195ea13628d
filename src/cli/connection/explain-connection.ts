/** Explains in one sentence why a connection failed and what to do. */
import { connect } from "node:tls";
import { ConnectError } from "@connectrpc/connect";
import { CliError, exitCodes, findReason } from "../exit-codes.ts";
import type { ApiClient } from "./api-client.ts";

/** Timeout in milliseconds for probing whether a server that hung up expects TLS. */
const probeMs = 2000;
/** Maximum characters of certificate names to quote; they are untrusted input. */
const maxNameCharacters = 200;

/** Node.js error codes for a certificate that no trusted CA signed. */
const untrusted: ReadonlySet<string> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "CERT_UNTRUSTED",
  "CERT_SIGNATURE_FAILURE",
]);

/** OpenSSL error codes for an answer that is not TLS. */
const notTls: ReadonlySet<string> = new Set([
  "EPROTO",
  "ERR_SSL_WRONG_VERSION_NUMBER",
  "ERR_SSL_PACKET_LENGTH_TOO_LONG",
  "ERR_SSL_UNEXPECTED_MESSAGE",
]);

/** Details of a failed connection. */
interface Failure {
  /** For example ECONNREFUSED; empty if unknown. */
  readonly code: string;
  readonly message: string;
  /** The names in the server's certificate; empty if unknown. */
  readonly names: string;
}

/** @returns undefined for errors that do not come from the connection */
export async function explainConnection(
  error: unknown,
  { url, caSource }: Pick<ApiClient, "url" | "caSource">,
): Promise<CliError | undefined> {
  if (!(error instanceof ConnectError) || findReason(error) !== undefined || url === "") return undefined;
  const sentence = await describeFailure(readFailure(error), new URL(url), caSource);
  return sentence === undefined ? undefined : new CliError(exitCodes.unreachable, sentence);
}

async function describeFailure(
  { code, message, names }: Failure,
  { origin, protocol, host, hostname }: URL,
  caSource: string | undefined,
): Promise<string | undefined> {
  if (code === "ECONNREFUSED")
    return `${origin} cannot be reached: nothing listens there (ECONNREFUSED); start a server with qsp serve, or set another URL with --url`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `${origin} cannot be reached: the name ${hostname} has no address (${code}); check the spelling in --url, and the network`;
  if (["ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL"].includes(code))
    return `${origin} cannot be reached: no route to ${hostname} (${code}); check the address in --url, the network and firewalls`;
  if (protocol === "http:")
    return (await answersTls(host)) ? `${origin} expects TLS; use --url https://${host}` : undefined;
  if (notTls.has(code))
    return `${origin} answers without TLS (${code}); use --url http://${host}, or start the server with --tls-cert`;
  if (untrusted.has(code)) {
    const others =
      caSource === undefined
        ? "give the certificate of its CA with --ca FILE or QSP_CA"
        : `the CA from ${caSource} did not issue it; give this server's CA with --ca FILE, or both CAs in one file if it has two certificates`;
    return `${origin} has a certificate that is not trusted (${code}); ${others}`;
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return `${origin} has a certificate for different names${names === "" ? "" : `: ${names}`} (${code}); use one of them in --url, or issue one for ${hostname} with qsp ca issue`;
  if (code === "CERT_HAS_EXPIRED")
    return `${origin} has a certificate that has expired, or its CA has (${code}); renew it, for example with qsp ca issue, and check this machine's clock`;
  if (code === "CERT_NOT_YET_VALID")
    return `${origin} has a certificate that is not valid yet (${code}); check the clocks of both machines`;
  if (/^(CERT_|ERR_SSL_|ERR_TLS_|UNABLE_TO_)/.test(code))
    return `${origin} and this client cannot agree on TLS: ${message} (${code}); the server needs TLS 1.2 or newer with HTTP/2, and a valid certificate`;
  return undefined;
}

/** Finds the root cause of an error. If several addresses were tried, the first one counts. */
function readFailure(error: Error): Failure {
  let cause: unknown = error.cause;
  while (cause instanceof Error && !("code" in cause && typeof cause.code === "string"))
    cause = cause instanceof AggregateError ? cause.errors[0] : cause.cause;
  if (!(cause instanceof Error)) return { code: "", message: error.message, names: "" };
  const code = "code" in cause ? String(cause.code) : "";
  // OpenSSL's full message contains a thread number and a source path.
  const reason = "reason" in cause && typeof cause.reason === "string" ? cause.reason : cause.message;
  return { code, message: reason.trim(), names: readNames(cause) };
}

/** Returns the names in the certificate: "DNS:localhost, IP Address:127.0.0.1". */
function readNames(cause: Error): string {
  const cert = "cert" in cause ? cause.cert : undefined;
  if (typeof cert !== "object" || cert === null || !("subjectaltname" in cert)) return "";
  return String(cert.subjectaltname).slice(0, maxNameCharacters);
}

/** Returns whether a server completes a TLS handshake. Sends no data and validates no certificate. */
function answersTls(host: string): Promise<boolean> {
  // Port 80 is right as the default: the failed attempt was without TLS.
  const { hostname, port } = new URL(`http://${host}`);
  return new Promise((resolve) => {
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port || 80),
      rejectUnauthorized: false,
      ALPNProtocols: ["h2", "http/1.1"],
    });
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(probeMs, () => end(false));
    socket.once("secureConnect", () => end(true));
    socket.on("error", () => end(false));
    socket.once("close", () => end(false));
  });
}
