/** The records in order, between client and server: each with an arrow, and its bytes as a picture to scale. */
import { useMemo } from "preact/hooks";
import { BytePicture, findPointed, Mark } from "../../home/byte-picture.tsx";
import { Verdict } from "../../parts/verdict.tsx";
import { formatBytes } from "../../values.ts";
import type { ByteFlip, Check } from "./checks.ts";
import type { DissectedRecord } from "./dissect.ts";
import { type Field, type Kind, listLeaves } from "./field.ts";
import { type Reading, type Selection, selectField } from "./reading.ts";

/** Squares per row. */
export const columns = { wide: 144, narrow: 64 };

export interface ByteChange {
  readonly flip: ByteFlip;
  /** What both ends find after the change. */
  readonly checks: readonly Check[];
}

/** A field's colour; the style sheet has the colours of the kinds. */
export function colourKind(kind: Kind | undefined) {
  return kind === undefined ? {} : { "--kind": `var(--${kind})` };
}

interface FlightProps {
  readonly reading: Reading;
  readonly selected: Selection;
  /** The selected field. */
  readonly field: Field | undefined;
  readonly change: ByteChange | undefined;
  readonly width: number;
  readonly onSelect: (selection: Selection) => void;
}

export function Flight({ reading, selected, field, change, width, onSelect }: FlightProps) {
  const checks = change?.checks ?? reading.checks;
  const stop = checks.find(({ holds }) => !holds);
  const made = stop === undefined ? checks : checks.slice(0, checks.indexOf(stop) + 1);
  const isReached = (index: number): boolean => stop === undefined || index <= stop.record;
  return (
    <>
      <p class="ends" aria-hidden="true">
        <strong>Client</strong>
        <strong>Server</strong>
      </p>
      <ol class="flight">
        {reading.records.map((record, index) => (
          // Records keep their order.
          <li
            key={index}
            class="flown"
            data-chosen={index === selected.record}
            data-reached={isReached(index)}
          >
            <div class="flown-head">
              <button
                type="button"
                aria-pressed={index === selected.record}
                onClick={() => onSelect(selectField(reading, index, findContent(record.field)))}
              >
                <span class="unseen">{record.fromClient ? "Client to server" : "Server to client"}: </span>
                {record.title}
              </button>
              <span class="hint">
                {formatBytes(record.bytes.length)},{" "}
                {isReached(index) ? nameKeys(record) : "not sent or not read"}
              </span>
              <Marks title={record.title} checks={made.filter((check) => check.record === index)} />
            </div>
            <span class="arrow" data-direction={record.fromClient ? "right" : "left"} aria-hidden="true" />
            {/* biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: the inspector's slider selects bytes with keys */}
            <div
              class="area"
              onClick={(event) => {
                const at = findPointed(event, width, record.bytes.length);
                if (at !== undefined) onSelect({ record: index, at, depth: Number.POSITIVE_INFINITY });
              }}
            >
              <RecordPicture
                record={record}
                width={width}
                field={index === selected.record ? field : undefined}
                at={index === selected.record ? selected.at : undefined}
                flipped={change?.flip.record === index ? change.flip.at : undefined}
              />
            </div>
            {stop?.record === index && stop.alert !== undefined && (
              <div class="answer">
                <span
                  class="arrow"
                  data-direction={stop.by === "client" ? "right" : "left"}
                  aria-hidden="true"
                />
                <Verdict holds={false}>
                  The {stop.by} sends the alert {stop.alert}, and closes
                </Verdict>
              </div>
            )}
          </li>
        ))}
      </ol>
    </>
  );
}

/** Fields around what a record carries. */
const wrappers = ["fragment", "encrypted_record", "TLSInnerPlaintext", "content"];

/** What a record carries: its first message. */
function findContent(field: Field): Field {
  const inner = field.parts.find(({ name }) => wrappers.includes(name));
  if (inner !== undefined) return findContent(inner);
  return wrappers.includes(field.name) ? (field.parts[0] ?? field) : field;
}

function nameKeys({ protection, bytes }: DissectedRecord): string {
  if (protection !== undefined)
    return protection.label.includes("HANDSHAKE") ? "under handshake keys" : "under application keys";
  return bytes[0] === 23 ? "encrypted" : "not encrypted";
}

/** What the receiver has checked, except what holds for every protected record. */
function Marks({ title, checks }: { readonly title: string; readonly checks: readonly Check[] }) {
  const shown = checks.filter(({ claim, holds }) => !holds || claim !== "record authentication");
  return (
    <>
      {shown.map(({ claim, holds }) => (
        <Verdict key={claim} holds={holds}>
          {claim === title ? (holds ? "valid" : "not valid") : claim}
        </Verdict>
      ))}
    </>
  );
}

interface PictureProps {
  readonly record: Pick<DissectedRecord, "bytes" | "plain" | "field">;
  readonly width: number;
  /** The selected field; everything else is dimmed. */
  readonly field?: Field | undefined;
  readonly at?: number | undefined;
  readonly flipped?: number | undefined;
}

export function RecordPicture({
  record: { bytes, plain, field: root },
  width,
  field,
  at,
  flipped,
}: PictureProps) {
  const runs = useMemo(() => joinKinds(root), [root]);
  const colours = Object.fromEntries(runs.map(({ kind }, index) => [`--part-${index}`, `var(--${kind})`]));
  return (
    <div style={colours}>
      <BytePicture bytes={plain ?? bytes} count={bytes.length} parts={runs} columns={width}>
        {field && (
          <path
            class="dimmed"
            d={`${cover(0, field.start, width)}${cover(field.end, bytes.length, width)}`}
          />
        )}
        {flipped !== undefined && <Mark at={flipped} columns={width} kind="flipped" />}
        {at !== undefined && <Mark at={at} columns={width} kind="pointed" />}
      </BytePicture>
    </div>
  );
}

/** Neighbouring leaves of one kind, as parts of the picture. */
function joinKinds(
  root: Field,
): { readonly name: string; readonly bytes: number; readonly kind: Kind | "plain" }[] {
  const runs: { name: string; bytes: number; kind: Kind | "plain" }[] = [];
  for (const { start, end, kind = "plain" } of listLeaves(root)) {
    const last = runs.at(-1);
    if (last?.kind === kind) last.bytes += end - start;
    else runs.push({ name: kind, bytes: end - start, kind });
  }
  return runs;
}

/** An SVG path over squares, row by row. */
function cover(start: number, end: number, width: number): string {
  let path = "";
  for (let at = start; at < end; ) {
    const isWhole = at % width === 0 && end - at >= width;
    const rows = isWhole ? Math.floor((end - at) / width) : 1;
    const count = isWhole ? width : Math.min(end - at, width - (at % width));
    path += `M${at % width} ${Math.floor(at / width)}h${count}v${rows}h-${count}z`;
    at += isWhole ? rows * width : count;
  }
  return path;
}
