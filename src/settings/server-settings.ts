/** Converts settings to server options. */
import { type Config, listFiles, maxHeaderMs, maxReceiveMs } from "../config.ts";
import type { ServerOptions } from "../server/options.ts";
import { createHostCheck } from "../server/request-head.ts";
import type { TlsFiles } from "../server/tls.ts";

export function serverSettings(config: Config) {
  const { auth, allowedHosts, host } = config;
  const isOpen = auth === "open";
  return {
    limits: {
      maxMetadataBytes: config.maxMetadataBytes,
      maxMessageBytes: config.maxMessageBytes,
      maxMessageElements: config.maxMessageElements,
      maxUnknownFields: config.maxUnknownFields,
      maxHeaderMs,
      maxReceiveMs,
      maxCallMs: config.maxCallMs,
      maxDrainMs: config.maxDrainMs,
      maxCalls: config.maxCalls,
      maxStreams: config.maxStreams,
      // With --auth open, all callers on the machine count as one client.
      maxCallsPerUser: isOpen ? 0 : config.maxCallsPerUser,
      maxStreamsPerUser: isOpen ? 0 : config.maxStreamsPerUser,
      maxCallsPerSecond: isOpen ? 0 : config.maxCallsPerSecond,
      maxConnections: config.maxConnections,
      maxConnectionsPerClient: config.maxConnectionsPerClient ?? Math.ceil(config.maxConnections / 4),
      maxConnectionsPerSecond: config.maxConnectionsPerSecond,
      maxBufferedBytes: config.maxBufferedBytes,
      maxBufferedBytesPerClient: config.maxBufferedBytesPerClient,
      maxWriteMs: config.maxWriteMs,
    },
    isHostAllowed: isOpen || allowedHosts.length > 0 ? createHostCheck(allowedHosts, host) : undefined,
    metricsAccess: config.metrics === "auto" ? auth : config.metrics,
    trustedProxies: config.trustedProxies,
    tls: readTlsFiles(config),
    corsOrigins: config.corsOrigins,
  } satisfies Pick<ServerOptions, "limits"> & Partial<ServerOptions>;
}

/** Pairs the certificates with their keys. */
function readTlsFiles({ tlsCert, tlsKey }: Config): TlsFiles[] {
  const keys = listFiles(tlsKey);
  return listFiles(tlsCert).map((certificate, i) => ({ certificate, key: keys[i] ?? "" }));
}
