/** The selected bytes: name, value, meaning, neighbours; and what happens if one of them changes. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Verdict } from "../../parts/verdict.tsx";
import { useUniqueId } from "../../unique-id.ts";
import { narrow, useMedia } from "../../use-media.ts";
import { formatBytes, formatNumber } from "../../values.ts";
import type { ByteFlip, Check } from "./checks.ts";
import type { Field } from "./field.ts";
import { type ByteChange, colourKind } from "./flight.tsx";
import { describeField } from "./notes.ts";
import type { Reading, Selection } from "./reading.ts";

/** Lines of the hexadecimal view. */
const shownLines = 7;

interface InspectorProps {
  readonly reading: Reading;
  readonly selected: Selection;
  /** The selected field and the fields around it. */
  readonly path: readonly Field[];
  readonly change: ByteChange | undefined;
  readonly onSelect: (selection: Selection) => void;
  readonly onFlip: (flip: ByteFlip | undefined) => void;
}

export function Inspector({ reading, selected, path, change, onSelect, onFlip }: InspectorProps) {
  const record = reading.records[selected.record];
  const field = path.at(-1);
  const slider = useUniqueId();
  // On narrow screens, the panel covers the records unless it is short.
  const [isLong, setLong] = useState(false);
  if (record === undefined || field === undefined) return null;
  const shown = record.plain ?? record.bytes;
  const select = (at: number, depth: number): void => onSelect({ ...selected, at, depth });
  const last = record.bytes.length - 1;
  const isInside = record.plain !== undefined && selected.at >= 5 && selected.at <= last - 16;
  const flip = (isInside: boolean): void =>
    onFlip({ record: selected.record, at: selected.at, mask: 1, isInside });
  return (
    <section class="byte-panel" aria-label="The selected bytes" data-long={isLong}>
      <h3>
        {field.name} <span class="size">{formatBytes(field.end - field.start)}</span>
      </h3>
      <div class="about">
        {field.value !== undefined && (
          <p>
            <code>{field.value}</code>
          </p>
        )}
        <p>{describeField(path)}</p>
      </div>
      {field.problem !== undefined && <Verdict holds={false}>{field.problem}</Verdict>}
      <div class="byte-choice">
        <label for={slider}>
          Byte {formatNumber(selected.at)} of record {selected.record + 1}
        </label>
        <input
          id={slider}
          type="range"
          min={0}
          max={last}
          value={selected.at}
          onInput={(event) => select(Number(event.currentTarget.value), Number.POSITIVE_INFINITY)}
        />
      </div>
      <p class="act">
        {change === undefined ? (
          <>
            <button type="button" class="primary" onClick={() => flip(false)}>
              Flip a bit of it{isInside && " on the wire"}
            </button>
            {isInside && (
              <button type="button" onClick={() => flip(true)}>
                Flip it before encryption
              </button>
            )}
          </>
        ) : (
          <button type="button" class="primary" onClick={() => onFlip(undefined)}>
            Restore it
          </button>
        )}
        <button type="button" class="more" aria-expanded={isLong} onClick={() => setLong(!isLong)}>
          {isLong ? "Less" : "More"}
          <span class="unseen"> about the bytes</span>
        </button>
      </p>
      <Findings checks={change?.checks ?? reading.checks} change={change} />
      <HexView bytes={shown} field={field} at={selected.at} mask={change?.flip.mask} />
      <FieldTree root={record.field} path={path} onSelect={select} />
    </section>
  );
}

interface HexProps {
  readonly bytes: Uint8Array;
  readonly field: Field;
  readonly at: number;
  /** The selected byte's changed bits. A bit of the ciphertext changes the same bit of the plaintext. */
  readonly mask: number | undefined;
}

/** The field's bytes around the selected one. */
function HexView({ bytes, field, at, mask = 0 }: HexProps) {
  const line = useMedia(narrow) ? 12 : 16;
  const from = Math.max(field.start, Math.min(at - (at % line) - line * 3, field.end - shownLines * line));
  const to = Math.min(field.end, from + shownLines * line);
  const hex = (start: number, end: number): string =>
    Array.from(bytes.subarray(start, end), (byte, index) => {
      const isLast = (start + index - from) % line === line - 1;
      return byte.toString(16).padStart(2, "0") + (isLast ? "\n" : " ");
    }).join("");
  const value = ((bytes[at] ?? 0) ^ mask).toString(16).padStart(2, "0");
  return (
    <pre class="hex-lines">
      {hex(from, at)}
      <mark data-changed={mask !== 0}>{value}</mark>
      {hex(at, at + 1).slice(2)}
      {hex(at + 1, to)}
    </pre>
  );
}

/** What both ends find, and where the connection ends. */
function Findings({
  checks,
  change,
}: {
  readonly checks: readonly Check[];
  readonly change: ByteChange | undefined;
}) {
  const failed = checks.filter(({ holds }) => !holds);
  const [first, ...others] = failed;
  const later = [...new Set(others.map(({ by, claim }) => `${by}: ${claim}`))].filter(
    (text) => text !== `${first?.by}: ${first?.claim}`,
  );
  return (
    <div class="findings" role="status" data-changed={change !== undefined}>
      {first !== undefined ? (
        <>
          <p>
            <Verdict holds={false}>
              The {first.by} stops: {first.claim}
            </Verdict>
          </p>
          <p>{first.found}</p>
          {later.length > 0 && <p class="hint">Checks that would fail after it: {later.join("; ")}.</p>}
        </>
      ) : change !== undefined ? (
        <>
          <Verdict holds={false}>No check fails</Verdict>
          <p>{explainUndetected(change.flip)}</p>
        </>
      ) : (
        <>
          <Verdict holds>All {checks.length} checks of both ends hold.</Verdict>
          <p class="about">{sumUp(checks)}</p>
        </>
      )}
    </div>
  );
}

function explainUndetected({ isInside }: ByteFlip): string {
  return isInside
    ? "Whoever has the traffic keys can write records that authenticate, and Finished covers only the handshake. So the keys must be secret, and be erased."
    : "Receivers must ignore this field (RFC 8446, section 5.1), and nothing else covers it.";
}

function sumUp(checks: readonly Check[]): string {
  const opened = checks.filter(({ claim }) => claim === "record authentication").length;
  const verifiers = new Set(checks.map(({ found }) => found).filter((found) => found !== ""));
  const verified =
    verifiers.size > 0 ? ` and verified the signature, with ${[...verifiers].join(" and ")}` : "";
  return `Your browser decrypted ${opened} records${verified}.`;
}

interface TreeProps {
  readonly root: Field;
  readonly path: readonly Field[];
  readonly onSelect: (at: number, depth: number) => void;
}

/** The record's fields; those on the way to the selected one are open. */
function FieldTree({ root, path, onSelect }: TreeProps) {
  const scroller = useRef<HTMLElement>(null);
  const chosen = path.at(-1);
  useEffect(() => {
    const button = scroller.current?.querySelector<HTMLElement>('[aria-current="true"]');
    if (scroller.current && button)
      scroller.current.scrollTop = button.offsetTop - scroller.current.clientHeight / 2;
  }, [chosen]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
    <section class="field-tree" ref={scroller} aria-label="Fields of the record" tabIndex={0}>
      <Branch field={root} depth={0} path={path} onSelect={onSelect} />
    </section>
  );
}

function Branch({
  field,
  depth,
  path,
  onSelect,
}: Omit<TreeProps, "root"> & { readonly field: Field; readonly depth: number }) {
  const isOpen = path[depth] === field;
  const hasParts = field.parts.length > 0;
  return (
    <>
      <button
        type="button"
        aria-current={path.at(-1) === field}
        aria-expanded={hasParts ? isOpen : undefined}
        style={colourKind(field.kind)}
        onClick={() => onSelect(field.start, depth)}
      >
        <span class="field-name">{field.name}</span>{" "}
        <span class="size">{formatNumber(field.end - field.start)}</span>
        {field.value !== undefined && <code> {field.value}</code>}
      </button>
      {isOpen && hasParts && (
        <ul>
          {field.parts.map((part) => (
            <li key={part.start}>
              <Branch field={part} depth={depth + 1} path={path} onSelect={onSelect} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
