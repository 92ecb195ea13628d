/** Compares the server's reading of connections with Go's crypto/tls, as a server and as a client. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readClientHello } from "../../src/server/client-hello.ts";
import { isMissing, run } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { captureClientHello, startTlsServer, type TlsServer, tlsFile } from "./tls-clients.ts";

/** Timeout in milliseconds for tests that compile and start programs on busy machines. */
const timeout = 300_000;

/**
 * With "hello", reads a ClientHello in base64 from standard input and prints its lists. With a URL and the file
 * of a CA, connects twice for each list of groups, the second time with a ticket, and prints what it knows of
 * each connection and what the server answered.
 */
const program = `package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func read() {
	hello := must(base64.StdEncoding.DecodeString(string(must(io.ReadAll(os.Stdin)))))
	client, server := net.Pipe()
	go client.Write(hello)
	_ = tls.Server(server, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{
			"groups": info.SupportedCurves, "signatureAlgorithms": info.SignatureSchemes,
		}))
		os.Exit(0)
		return nil, nil
	}}).Handshake()
}

func connect(url, ca string) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(ca)))
	out := json.NewEncoder(os.Stdout)
	for _, groups := range [][]tls.CurveID{
		nil, {tls.X25519MLKEM768}, {tls.X25519}, {tls.CurveP384}, {tls.CurveP256, tls.CurveP384},
	} {
		config := &tls.Config{RootCAs: pool, CurvePreferences: groups, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
		for range 2 {
			transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
			response := must((&http.Client{Transport: transport}).Get(url))
			body := must(io.ReadAll(response.Body))
			state := response.TLS
			must(0, out.Encode(map[string]any{
				"group": state.CurveID, "cipherSuite": tls.CipherSuiteName(state.CipherSuite), "alpn": state.NegotiatedProtocol,
				"isRetried": state.HelloRetryRequest, "isResumed": state.DidResume, "report": json.RawMessage(body),
			}))
			transport.CloseIdleConnections()
		}
	}
}

func main() {
	if os.Args[1] == "hello" {
		read()
	} else {
		connect(os.Args[1], os.Args[2])
	}
}
`;

/** A connection as Go sees it, and the server's report. */
interface Connection {
  readonly group: number;
  readonly cipherSuite: string;
  readonly alpn: string;
  readonly isRetried: boolean;
  readonly isResumed: boolean;
  readonly report: Readonly<Record<string, unknown>>;
}

/** IANA: TLS Supported Groups. */
const names: Readonly<Record<number, string>> = { 4588: "X25519MLKEM768", 29: "x25519", 24: "secp384r1" };

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

  async function runGo(args: readonly string[], input = ""): Promise<unknown[]> {
    const { code, stdout, stderr } = await run("go", ["run", "-C", directory, ".", ...args], input);
    if (code !== 0) throw new Error(stderr);
    return stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  }

  it("reads the same lists in a ClientHello", async () => {
    const hello = await captureClientHello();
    const read = readClientHello(hello);
    if (typeof read !== "object") throw new Error("the ClientHello was not read");
    const [expected] = await runGo(["hello"], hello.toString("base64"));
    expect({ groups: [...read.groups], signatureAlgorithms: [...read.signatureAlgorithms] }).toEqual(
      expected,
    );
    expect(read.groups).toContain(4588);
  });

  it("agrees with the server's report for each group, after a HelloRetryRequest and a resumption", async () => {
    const url = `https://localhost:${server.port}/api/grpc/connection`;
    const connections = (await runGo([url, tlsFile(server.dataDir, "ca.crt")])) as Connection[];
    for (const { group, cipherSuite, alpn, report } of connections)
      expect(report).toMatchObject({ tls: true, group: names[group], cipherSuite, alpn, version: "TLS 1.3" });
    const seen = connections.map(({ group, isRetried, isResumed }) => [group, isRetried, isResumed]);
    const both = (group: number, isRetried: boolean) =>
      [false, true].map((isResumed) => [group, isRetried, isResumed]);
    expect(seen).toEqual(
      [both(4588, false), both(4588, false), both(29, false), both(24, false), both(24, true)].flat(),
    );
  });
});
