/**
 * The handshake, byte by byte: the visitor's connection, and a recorded TLS 1.3 handshake that the browser
 * decrypts, explains and checks.
 */

import { useEffect, useMemo, useState } from "preact/hooks";
import { PqcService, type RecordHandshakeResponse } from "#gen/pqc/pqc_service_pb.ts";
import { type Caller, withoutToken } from "../../caller.ts";
import { Failure } from "../../failure.ts";
import { useForm } from "../../form.ts";
import { Legend } from "../../home/byte-picture.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Choice } from "../../parts/fields.tsx";
import { Lead } from "../../parts/lead.tsx";
import { saveFile } from "../../save-file.ts";
import { requireSecureOrigin } from "../../stories/tunnel/handshake.ts";
import { useTask } from "../../task.ts";
import { narrow, useMedia } from "../../use-media.ts";
import { formatBytes, formatNumber } from "../../values.ts";
import { type ByteFlip, changeRecord, checkRecording } from "./checks.ts";
import { Connection } from "./connection.tsx";
import { type ByteChange, columns, Flight } from "./flight.tsx";
import { Inspector } from "./inspector.tsx";
import { KeySchedule } from "./key-schedule.tsx";
import { chooseFirst, findSelected, type Reading, readHandshake, type Selection } from "./reading.ts";
import {
  maxFileBytes,
  type Recording,
  RecordingError,
  readRecording,
  splitRecords,
  writeRecording,
} from "./recording.ts";
import { Shares } from "./shares.tsx";

const hybrid = "X25519MLKEM768";
const groups = [hybrid, "X25519", "P-384"];
const certificates = ["ECDSA-P256", "ML-DSA-65"];

export function Page() {
  return (
    <div class="handshake">
      <div class="opening">
        <Lead title="The handshake, byte by byte">
          Before the first byte of a page, browser and server agree on keys: a TLS 1.3 handshake. Here is one,
          with every byte explained. Click any square, flip a bit, and see which check fails.
        </Lead>
        <Connection />
      </div>
      <Laboratory />
    </div>
  );
}

/** A handshake to take apart, from the server or from a file. */
function Laboratory() {
  const { values, bind } = useForm({ group: hybrid, certificate: "ECDSA-P256" });
  const [reading, setReading] = useState<Reading>();
  const [classicalSize, setClassicalSize] = useState<number>();
  const [selected, setSelected] = useState<Selection>({ record: 0, at: 0, depth: 0 });
  const [change, setChange] = useState<ByteChange>();
  const [loading, comparing, checking] = [useTask(), useTask(), useTask()];
  const width = useMedia(narrow) ? columns.narrow : columns.wide;

  const flip = (next: ByteFlip | undefined): void =>
    void checking.run(async () => {
      if (next === undefined || reading === undefined) return undefined;
      const changed = await changeRecord(reading.opened, next);
      return { flip: next, checks: await checkRecording(changed, reading.opened) };
    }, setChange);
  const show = (next: Reading): void => {
    setReading(next);
    setSelected(chooseFirst(next));
    flip(undefined);
  };
  /** Also drops the size for an earlier recording that is still being measured. */
  const compare = (measure: (caller: Caller) => Promise<number | undefined>): void => {
    setClassicalSize(undefined);
    void comparing.run(measure, setClassicalSize);
  };
  const record = (): void => {
    void loading.run(async (caller) => readHandshake(await recordHandshake(caller, values)), show);
    const classical = { ...values, group: "X25519" };
    compare(async (caller) =>
      values.group === hybrid ? sumSizes(await recordHandshake(caller, classical)) : undefined,
    );
  };
  const open = (file: File): void => {
    compare(async () => undefined);
    void loading.run(async () => readHandshake(await readFile(file)), show);
  };
  useEffect(record, [values]);

  const path = useMemo(() => (reading ? findSelected(reading, selected) : []), [reading, selected]);
  const select = (next: Selection): void => {
    setSelected(next);
    if (change && (change.flip.record !== next.record || change.flip.at !== next.at)) flip(undefined);
  };
  return (
    <>
      <section class="stage bench" aria-labelledby="bench">
        <h2 id="bench">A handshake to take apart</h2>
        <div class="fields">
          <Choice label="Key exchange" options={groups} {...bind("group")} />
          <Choice label="Certificate" options={certificates} {...bind("certificate")} />
          <button type="button" onClick={record}>
            Record a new one
          </button>
          <OpenButton onOpen={open} />
          {reading && <SaveLink recording={reading.recording} />}
        </div>
        <p class="telling" role="status">
          {reading
            ? sumUp(reading, classicalSize)
            : loading.isRunning
              ? "The server is making a handshake with itself …"
              : ""}
        </p>
        {loading.failure && <FailureNote failure={loading.failure} />}
        {reading?.opened.obstacle && <p class="note">{reading.opened.obstacle}</p>}
        {reading && (
          <div class="bench-parts">
            <div class="pictures scale">
              <Shares reading={reading} width={width} onSelect={select} />
              <Legend entries={legend} />
              <Flight
                reading={reading}
                selected={selected}
                field={path.at(-1)}
                change={change}
                width={width}
                onSelect={select}
              />
            </div>
            <Inspector
              reading={reading}
              selected={selected}
              path={path}
              change={change}
              onSelect={select}
              onFlip={flip}
            />
          </div>
        )}
      </section>
      {reading && <KeySchedule reading={reading} />}
    </>
  );
}

/** The server limits recordings for all callers together (RecordHandshake). */
const maxAttempts = 5;
const retryMs = 1100;

/** @throws Failure */
async function recordHandshake(
  { call }: Caller,
  parameters: { readonly group: string; readonly certificate: string },
): Promise<Recording> {
  requireSecureOrigin();
  const make = async (attempt: number): Promise<RecordHandshakeResponse> => {
    try {
      return await call(PqcService.method.recordHandshake, parameters, withoutToken);
    } catch (failure) {
      if (!(failure instanceof Failure) || failure.reason !== "RATE_LIMITED" || attempt === maxAttempts)
        throw failure;
      await new Promise((resolve) => setTimeout(resolve, retryMs));
      return make(attempt + 1);
    }
  };
  const { records, keyLog } = await make(1);
  const copied = records.map(({ fromClient, bytes }) => ({ fromClient, bytes: Uint8Array.from(bytes) }));
  return { records: splitRecords(copied), keyLog };
}

/** @throws Failure for a file that is not a recording */
async function readFile(file: File): Promise<Recording> {
  requireSecureOrigin();
  try {
    if (file.size > maxFileBytes)
      throw new RecordingError(`The file has more than ${formatBytes(maxFileBytes)}.`);
    return readRecording(await file.text());
  } catch (error) {
    if (error instanceof RecordingError) throw new Failure("FILE_INVALID", "BROWSER", error.message);
    throw error;
  }
}

function OpenButton({ onOpen }: { readonly onOpen: (file: File) => void }) {
  return (
    <label class="file-button">
      Open a recording
      <input
        type="file"
        class="unseen"
        accept=".json,application/json"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? [];
          if (file) onOpen(file);
          // The same file may be opened again.
          currentTarget.value = "";
        }}
      />
    </label>
  );
}

function SaveLink({ recording }: { readonly recording: Recording }) {
  return (
    <button type="button" onClick={() => saveFile("handshake.json", writeRecording(recording))}>
      Save it
    </button>
  );
}

function sumSizes({ records }: Recording): number {
  return records.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

/** @param classicalSize bytes of the same handshake with X25519 */
function sumUp(reading: Reading, classicalSize: number | undefined): string {
  const { recording, group = "no group", cipherSuite = "no cipher suite", messages } = reading;
  const size = `${formatBytes(sumSizes(recording))} in ${formatNumber(recording.records.length)} records`;
  const compared =
    classicalSize === undefined ? "" : ` The same with X25519 alone: ${formatBytes(classicalSize)}.`;
  const retry = messages.some(({ name }) => name === "HelloRetryRequest") ? " after a HelloRetryRequest" : "";
  return `${size}: ${group}${retry}, ${cipherSuite}.${compared}`;
}

const legend = [
  ["mlkem", "ML-KEM"],
  ["ecdh", "elliptic curve"],
  ["publicKey", "public key"],
  ["signature", "signature"],
  ["proof", "tag or HMAC"],
  ["framing", "types, lengths, choices"],
  ["data", "text"],
  ["plain", "other; one square is one byte"],
] as const;
