/** The key shares of both ends, to scale beside X25519's. */
import { useMemo } from "preact/hooks";
import { CountPicture } from "../../home/byte-picture.tsx";
import { formatNumber } from "../../values.ts";
import { cutFields } from "./field.ts";
import { RecordPicture } from "./flight.tsx";
import { findShares, type Place, type Reading, type Selection, selectField } from "./reading.ts";

/** RFC 7748, section 5: what each end sends. */
const x25519Bytes = 32;
/** Squares per row for X25519, and beside the other share. */
const narrowColumns = 16;

interface SharesProps {
  readonly reading: Reading;
  /** Squares per row of the whole picture. */
  readonly width: number;
  readonly onSelect: (selection: Selection) => void;
}

export function Shares({ reading, width, onSelect }: SharesProps) {
  const shares = useMemo(
    () => findShares(reading).map((place) => ({ place, cut: cutShare(reading, place) })),
    [reading],
  );
  return (
    <div>
      {shares.map(({ place, cut }) => {
        const isClients = reading.records[place.record]?.fromClient;
        return (
          <div key={`${place.record} ${place.field.start}`} class="compared">
            <p>
              <button type="button" onClick={() => onSelect(selectField(reading, place.record, place.field))}>
                {isClients ? "Client’s" : "Server’s"} share
              </button>{" "}
              {sayParts(place)}
            </p>
            <p>X25519: {x25519Bytes}</p>
            <RecordPicture record={cut} width={width - narrowColumns - 6} />
            <CountPicture count={x25519Bytes} columns={narrowColumns} />
          </div>
        );
      })}
    </div>
  );
}

/** "1,216 = 1,184 ML-KEM-768 encapsulation key ‖ 32 X25519". */
function sayParts({ field: { start, end, parts } }: Place): string {
  const [, ...values] = parts;
  const listed = values.map(
    (part) => `${formatNumber(part.end - part.start)} ${part.name.replace(" public key", "")}`,
  );
  return `${formatNumber(end - start - 2)} = ${listed.join(" ‖ ")}`;
}

/** A share as if it were a record of its own, without its length field. */
function cutShare({ records }: Reading, { record, field }: Place) {
  const start = field.start + 2;
  const bytes = (records[record]?.bytes ?? new Uint8Array()).slice(start, field.end);
  const parts = cutFields(field.parts, start, field.end, -start);
  return { bytes, field: { ...field, start: 0, end: bytes.length, parts } };
}
