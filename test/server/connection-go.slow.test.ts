/** Compares the server's reading of connections with Go's crypto/tls. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isMissing, run } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { startTlsServer, type TlsServer, tlsFile } from "./tls-clients.ts";

/** Timeout in milliseconds for tests that compile and start programs on busy machines. */
const timeout = 300_000;

/**
 * Connects to a URL twice for each list of groups, the second time with a ticket, and prints what it knows of each
 * connection and what the server answered. Trusts the CA of a file.
 */
const program = `package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	url, ca := os.Args[1], os.Args[2]
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(ca)))
	out := json.NewEncoder(os.Stdout)
	for _, groups := range [][]tls.CurveID{
		{tls.X25519MLKEM768, tls.X25519}, {tls.X25519}, {tls.CurveP384}, {tls.CurveP256, tls.CurveP384},
	} {
		config := &tls.Config{RootCAs: pool, CurvePreferences: groups, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
		for range 2 {
			transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
			response := must((&http.Client{Transport: transport}).Get(url))
			body := must(io.ReadAll(response.Body))
			state := response.TLS
			must(0, out.Encode(map[string]any{
				"offered": groups, "group": state.CurveID, "cipherSuite": tls.CipherSuiteName(state.CipherSuite), "alpn": state.NegotiatedProtocol,
				"isRetried": state.HelloRetryRequest, "isResumed": state.DidResume, "report": json.RawMessage(body),
			}))
			transport.CloseIdleConnections()
		}
	}
}
`;

/** A connection as Go sees it, and the server's report. */
interface Connection {
  readonly offered: readonly number[];
  readonly group: number;
  readonly cipherSuite: string;
  readonly alpn: string;
  readonly isRetried: boolean;
  readonly isResumed: boolean;
  readonly report: Readonly<Record<string, unknown>>;
}

/** IANA: TLS Supported Groups. */
const names: Readonly<Record<number, string>> = {
  4588: "X25519MLKEM768",
  29: "x25519",
  23: "secp256r1",
  24: "secp384r1",
};

describe.skipIf(isMissing("go"))("Go's crypto/tls (needs Go 1.26)", { timeout }, () => {
  const atEnd = endAfterAll();
  let directory: string;
  let server: TlsServer;
  beforeAll(async () => {
    directory = makeTemporaryDirectory(afterAll);
    writeFileSync(join(directory, "go.mod"), "module connection\n\ngo 1.26\n");
    writeFileSync(join(directory, "main.go"), program);
    server = await startTlsServer(atEnd);
  }, timeout);

  it("agrees with the server's report for each list of groups, after a HelloRetryRequest and a resumption", async () => {
    const url = `https://localhost:${server.port}/api/grpc/connection`;
    const ca = tlsFile(server.dataDir, "ca.crt");
    const { code, stdout, stderr } = await run("go", ["run", "-C", directory, ".", url, ca]);
    expect(code, stderr).toBe(0);
    const lines = stdout.trim().split("\n");
    const connections = lines.map((line) => JSON.parse(line) as Connection);
    for (const { offered, group, cipherSuite, alpn, report } of connections) {
      expect(report).toMatchObject({ tls: true, group: names[group], cipherSuite, alpn, version: "TLS 1.3" });
      expect(report.offeredGroups).toEqual(offered.map((number) => names[number]));
    }
    const seen = connections.map(({ group, isRetried, isResumed }) => [group, isRetried, isResumed]);
    const both = (group: number, isRetried: boolean) =>
      [false, true].map((isResumed) => [group, isRetried, isResumed]);
    expect(seen).toEqual([both(4588, false), both(29, false), both(24, false), both(24, true)].flat());
  });
});
