/** Describes a client's connection: what TLS agreed, and what the client had offered. */
import type { IncomingHttpHeaders } from "node:http";
import { TLSSocket } from "node:tls";
import type { ConnectionReport } from "../calls/call-values.ts";
import { isHybridGroup, nameGroup, nameSignatureAlgorithm, normalizeGroup } from "../crypto/tls-names.ts";
import { readGroup } from "../crypto/tls-session.ts";
import { createAddressCheck, plain } from "./client-address.ts";
import { findOffers } from "./client-hello.ts";
import type { Exchange } from "./exchange.ts";

/** Describes the connection of an exchange, or of the client in front of a trusted proxy. */
export type ReadConnection = (exchange: Pick<Exchange, "peer" | "socket" | "headers">) => ConnectionReport;

/** @param trusted proxies, as in `createReadClient` */
export function createReadConnection(trusted: readonly string[]): ReadConnection {
  const isTrusted = createAddressCheck(trusted);
  return ({ peer = "", socket, headers }) => {
    if (headers["x-forwarded-proto"] !== undefined && isTrusted(plain(peer))) return readProxied(headers);
    return socket instanceof TLSSocket ? describeTls(socket) : { tls: false };
  };
}

function describeTls(socket: TLSSocket): ConnectionReport {
  const offers = findOffers(socket);
  return {
    tls: true,
    version: formatVersion(socket.getProtocol() ?? undefined),
    ...describeGroup(readGroup(socket)),
    cipherSuite: socket.getCipher()?.standardName,
    alpn: socket.alpnProtocol || undefined,
    offeredGroups: Array.from(offers?.groups ?? [], nameGroup),
    offeredSignatureAlgorithms: Array.from(offers?.signatureAlgorithms ?? [], nameSignatureAlgorithm),
    terminatedBy: "server",
  };
}

/** Reads the headers in which a proxy describes its client's connection. */
function readProxied(headers: IncomingHttpHeaders): ConnectionReport {
  if (readWord(headers, "x-forwarded-proto") !== "https") return { tls: false };
  return {
    tls: true,
    version: formatVersion(readWord(headers, "x-tls-version")),
    ...describeGroup(readWord(headers, "x-tls-group")),
    cipherSuite: readWord(headers, "x-tls-cipher-suite"),
    terminatedBy: "proxy",
  };
}

/** Proxies send "-", or nothing, for an unknown value. */
function readWord(headers: IncomingHttpHeaders, name: string): string | undefined {
  return /^[A-Za-z0-9][\w.:/-]{0,63}$/.exec(String(headers[name] ?? ""))?.[0];
}

function describeGroup(name: string | undefined): Pick<ConnectionReport, "group" | "hybrid"> {
  if (name === undefined) return {};
  const group = normalizeGroup(name);
  return { group, hybrid: isHybridGroup(group) };
}

/** Converts OpenSSL's name for a version, "TLSv1.3", to the name in RFC 8446. */
function formatVersion(name: string | undefined): string | undefined {
  return name?.replace(/^TLSv/, "TLS ");
}
