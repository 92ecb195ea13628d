/** Recorded handshakes of Go, and what others read in them. record/ has the programs that made them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Recording, readRecording } from "../../page/views/handshake/recording.ts";

/** What Go's crypto/tls reports about its own connection (tls.ConnectionState). */
interface GoReading {
  readonly didResume: boolean;
  readonly offeredGroups: readonly string[];
  readonly serialNumbers: readonly string[];
}

interface Recorded {
  readonly name: string;
  readonly recording: Recording;
  readonly go: GoReading;
  /** What tshark reads: a name and hexadecimal digits. */
  readonly tshark: readonly string[];
}

function read(name: string) {
  return JSON.parse(readFileSync(join(import.meta.dirname, "recordings", name), "utf8"));
}

const tshark: readonly { readonly fields: readonly string[] }[] = read("go.tshark.json");

/** X25519MLKEM768; HelloRetryRequest to P-384 with a client certificate and RSA; resumption. */
export const goRecordings: readonly Recorded[] = read("go.json").map(
  ({ name, reading, ...recording }: { readonly name: string; readonly reading: GoReading }, at: number) => ({
    name,
    recording: readRecording(JSON.stringify(recording)),
    go: reading,
    tshark: tshark[at]?.fields ?? [],
  }),
);
