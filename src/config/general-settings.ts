/** The general settings of a server. */
import {
  defineChoice,
  defineHostNames,
  defineInteger,
  defineNames,
  defineNetworks,
  defineOrigins,
  definePostgresUrl,
  defineSecret,
  defineSwitch,
  defineText,
} from "./setting.ts";

/** The settings, in the order in which the help shows them. */
export const generalSettings = {
  host: defineText("host", "127.0.0.1", "address", "Address to listen on."),
  port: defineInteger("port", "8080", 0, 65_535, "Port to listen on; 0 picks a free one and prints it."),
  openToNetwork: defineSwitch(
    "danger-open-to-network",
    "Allows an address other than loopback while anyone may call without a token.",
  ),
  dataDir: defineText("data-dir", "./data", "directory", "Where the store and the master key are."),
  databaseUrl: definePostgresUrl(
    "database-url",
    "PostgreSQL 15 or newer, as postgres://user:password@host/database; by default a file in the data directory.",
  ),
  masterKeyFile: defineText(
    "master-key-file",
    "",
    "file",
    "The key that seals all others, 64 hexadecimal digits; by default master.key in the data directory.",
  ),
  masterKey: defineSecret("master-key", "The key itself, instead of a file."),
  masterKeyNext: defineSecret(
    "master-key-next",
    "The key that it is being changed to; see qsp master-key rotate.",
  ),
  services: defineNames(
    "services",
    "all",
    "Which services to run, by package: all, or names joined by commas.",
  ),
  auth: defineChoice(
    "auth",
    "open",
    ["open", "token"],
    "Who may call: open lets anyone, and tokens guard what always needs one; token lets users (qsp user add).",
  ),
  tlsCert: defineText(
    "tls-cert",
    "",
    "files",
    "Certificates in PEM for TLS 1.3, joined by commas; of several kinds each client gets the one it prefers.",
  ),
  tlsKey: defineText("tls-key", "", "files", "Their keys, in the same order."),
  cryptoProvider: defineChoice(
    "crypto-provider",
    "auto",
    ["auto", "native", "openssl", "noble"],
    "Who computes: native (AWS-LC, fastest; npm run native builds it), openssl (of Node), noble (JavaScript); auto is native if it is built and works, otherwise openssl.",
  ),
  trustedProxies: defineNetworks(
    "trusted-proxies",
    "Proxies whose X-Forwarded-For is believed: addresses, networks as 10.0.0.0/8, joined by commas.",
  ),
  allowedHosts: defineHostNames(
    "allowed-hosts",
    "Host names to answer for, joined by commas; .example.com for all below it, * for any. With --auth open: besides those of loopback.",
  ),
  metrics: defineChoice(
    "metrics",
    "auto",
    ["auto", "open", "token", "off"],
    "Who may read /metrics: open for anyone, token for auditors and admins; auto is open with --auth open, and token with --auth token.",
  ),
  corsOrigins: defineOrigins(
    "cors-origins",
    "Origins whose pages may call, as https://console.example.com, joined by commas; by default none but our own.",
  ),
  logLevel: defineChoice(
    "log-level",
    "info",
    ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
    "What to log, as JSON on standard error.",
  ),
} as const;
