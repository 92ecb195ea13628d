/** General server settings. */
import {
  defineChoice,
  defineCommand,
  defineHostNames,
  defineInteger,
  defineNames,
  defineNetworks,
  defineOrigin,
  defineOrigins,
  definePostgresUrl,
  defineSecret,
  defineSwitch,
  defineText,
} from "./setting.ts";

/** The settings, in the order of the help text. */
export const generalSettings = {
  host: defineText("host", "127.0.0.1", "address", "Address to listen on."),
  port: defineInteger(
    "port",
    { fallback: 8080, min: 0, max: 65_535 },
    "Port to listen on; 0 picks a free one and prints it.",
  ),
  reusePort: defineSwitch(
    "reuse-port",
    "Shares the port with other servers of the same store that have this setting: the system assigns each connection to one of them (SO_REUSEPORT; Linux). Not available with the vpn service, whose sessions belong to one server.",
  ),
  openToNetwork: defineSwitch(
    "danger-open-to-network",
    "Allows a non-loopback address with --auth open, so that anyone on the network may call without a token.",
  ),
  dataDir: defineText("data-dir", "./data", "directory", "Directory of the store and the master key."),
  databaseUrl: definePostgresUrl(
    "database-url",
    "PostgreSQL 15 or newer, as postgres://user:password@host/database; by default a file in the data directory.",
  ),
  requireStore: defineSwitch(
    "require-store",
    "Refuses to start if the store does not exist, instead of creating it: an empty store in place of a lost one would contain no keys and no users.",
  ),
  masterKeyFile: defineText(
    "master-key-file",
    "",
    "file",
    "File with the key that seals all other keys, 64 hexadecimal digits; by default master.key in the data directory.",
  ),
  masterKey: defineSecret("master-key", "The master key itself, instead of a file."),
  masterKeyNext: defineSecret(
    "master-key-next",
    "The next master key during a rotation; see qsp master-key rotate.",
  ),
  masterKeyCommand: defineCommand(
    "master-key-command",
    "Program that prints the master key as 64 hexadecimal digits, with its arguments, instead of a file. Runs at the start, without a shell, for at most 30 seconds.",
  ),
  masterKeyNextCommand: defineCommand(
    "master-key-next-command",
    "Program that prints the next master key during a rotation; see qsp master-key rotate.",
  ),
  services: defineNames("services", "all", "Services to run, by package: all, or names separated by commas."),
  auth: defineChoice(
    "auth",
    "open",
    ["open", "token"],
    "Who may call: open allows anyone, except for calls that always need a token; token allows users (qsp user add). If the store has users or clients, there is no default.",
  ),
  issuerUrl: defineOrigin(
    "issuer-url",
    "Public URL of this server, which OAuth 2 access tokens name as their issuer; by default localhost with the port.",
  ),
  accessTokenAlgorithm: defineChoice(
    "access-token-algorithm",
    "ML-DSA-65",
    ["ML-DSA-65", "ML-DSA-44"],
    "Algorithm that signs OAuth 2 access tokens.",
  ),
  tlsCert: defineText(
    "tls-cert",
    "",
    "files",
    "PEM certificate files for TLS 1.3, separated by commas; if their algorithms differ, each client gets the one it prefers.",
  ),
  tlsKey: defineText("tls-key", "", "files", "PEM key files of the certificates, in the same order."),
  cryptoProvider: defineChoice(
    "crypto-provider",
    "auto",
    ["auto", "native", "openssl"],
    "Cryptographic provider: native (AWS-LC, fastest; npm run native builds it), openssl (Node's), or auto: native if it is built and works, otherwise openssl.",
  ),
  trustedProxies: defineNetworks(
    "trusted-proxies",
    "Proxies whose X-Forwarded-For, X-Forwarded-Proto and X-TLS headers are trusted: addresses or networks such as 10.0.0.0/8, separated by commas.",
  ),
  allowedHosts: defineHostNames(
    "allowed-hosts",
    "Host names to serve, separated by commas; .example.com for all its subdomains, * for any. Default: any name with --auth token, loopback names with --auth open, which always include them.",
  ),
  metrics: defineChoice(
    "metrics",
    "auto",
    ["auto", "open", "token", "off"],
    "Who may read /metrics: open allows anyone, token allows auditors and admins; auto follows --auth.",
  ),
  corsOrigins: defineOrigins(
    "cors-origins",
    "Origins whose pages may call, such as https://console.example.com, separated by commas; by default only the server's own.",
  ),
  logLevel: defineChoice(
    "log-level",
    "info",
    ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
    "Minimum log level: trace, debug, info, warn, error, fatal or silent. Logs are JSON lines on standard error.",
  ),
} as const;
