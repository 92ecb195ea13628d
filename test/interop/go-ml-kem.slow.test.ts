/** ML-KEM keys that the services make, opened from their seeds by Go's crypto/mlkem, which takes nothing else. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { settingsIn, startApp } from "../services/devices-and-tunnels.ts";
import { confirmAsPeer } from "../services/vpn-peer.ts";
import { base64 } from "../support/bytes.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { isMissing, run } from "./tools.ts";

/** Reads {algorithm, seed, ciphertext} per line, and prints {publicKey, sharedSecret} per line. */
const program = `package main

import (
	"crypto/mlkem"
	"encoding/json"
	"fmt"
	"os"
)

type order struct {
	Algorithm  string
	Seed       []byte
	Ciphertext []byte
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for in.More() {
		var o order
		must(0, in.Decode(&o))
		var publicKey, sharedSecret []byte
		if o.Algorithm == "ML-KEM-768" {
			key := must(mlkem.NewDecapsulationKey768(o.Seed))
			publicKey, sharedSecret = key.EncapsulationKey().Bytes(), must(key.Decapsulate(o.Ciphertext))
		} else {
			key := must(mlkem.NewDecapsulationKey1024(o.Seed))
			publicKey, sharedSecret = key.EncapsulationKey().Bytes(), must(key.Decapsulate(o.Ciphertext))
		}
		must(0, out.Encode(map[string][]byte{"publicKey": publicKey, "sharedSecret": sharedSecret}))
	}
}
`;

interface Opened {
  readonly publicKey: string;
  readonly sharedSecret: string;
}

/** Opens ciphertexts with Go, each with the key of a seed. */
async function openWithGo(
  orders: readonly {
    readonly algorithm: string;
    readonly seed: Uint8Array | undefined;
    readonly ciphertext: Uint8Array;
  }[],
): Promise<Opened[]> {
  const directory = makeTemporaryDirectory();
  writeFileSync(join(directory, "go.mod"), "module mlkem\n\ngo 1.24\n");
  writeFileSync(join(directory, "main.go"), program);
  const input = orders.map(({ algorithm, seed = new Uint8Array(), ciphertext }) =>
    JSON.stringify({
      algorithm,
      seed: Buffer.from(seed).toString("base64"),
      ciphertext: Buffer.from(ciphertext).toString("base64"),
    }),
  );
  const { code, stdout, stderr } = await run("go", ["run", "-C", directory, "."], input.join("\n"));
  if (code !== 0) throw new Error(stderr);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

describe.skipIf(isMissing("go"))("Go's crypto/mlkem", { timeout: 300_000 }, () => {
  it("opens what PqcService.ExchangeKeys and VpnService.Handshake encapsulate, with the seeds they give", async () => {
    const { vpn, url } = await startApp(settingsIn(makeTemporaryDirectory()));
    const pqc = createClient(PqcService, createGrpcTransport({ baseUrl: url }));
    const exchanged = [
      await pqc.exchangeKeys({ algorithm: "ML-KEM-768" }),
      await pqc.exchangeKeys({ algorithm: "ML-KEM-1024" }),
    ];
    const { tunnelId, publicKey, privateKeySeed } = await vpn.registerPeer({});
    const { ciphertext, transcript, keyConfirmation } = await vpn.handshake({ tunnelId });
    const opened = await openWithGo([
      ...exchanged.map(({ algorithm, decapsulationKeySeed: seed, encapsulatedKey }) => ({
        algorithm,
        seed,
        ciphertext: encapsulatedKey,
      })),
      { algorithm: "ML-KEM-1024", seed: privateKeySeed, ciphertext },
    ]);
    const ofTunnel = opened.at(-1);
    expect(opened.slice(0, -1)).toEqual(
      exchanged.map((answer) => ({
        publicKey: base64(answer.publicKey),
        sharedSecret: base64(answer.sharedSecret),
      })),
    );
    expect(ofTunnel?.publicKey).toBe(base64(publicKey));
    const sessionKey = Buffer.from(ofTunnel?.sharedSecret ?? "", "base64");
    expect(Uint8Array.from(keyConfirmation)).toEqual(confirmAsPeer(sessionKey, transcript));
  });
});
