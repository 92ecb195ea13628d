/** The key shares of both ends; a hybrid one is to scale beside its classical part. */
import { useMemo } from "preact/hooks";
import { CountPicture } from "../../home/byte-picture.tsx";
import { formatNumber } from "../../values.ts";
import { cutFields, type Field } from "./field.ts";
import { RecordPicture } from "./flight.tsx";
import { findShares, type Place, type Reading, type Selection, selectField } from "./reading.ts";

/** Squares per row for the classical part, and beside the whole share. */
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
        const [, ...parts] = place.field.parts;
        const classical = parts.length > 1 ? parts.find(({ name }) => !name.startsWith("ML-KEM")) : undefined;
        return (
          <div key={`${place.record} ${place.field.start}`} class="compared">
            <p>
              <button type="button" onClick={() => onSelect(selectField(reading, place.record, place.field))}>
                {isClients ? "Client’s" : "Server’s"} share
              </button>{" "}
              {parts.length > 1 && `${formatNumber(cut.bytes.length)} = `}
              {parts.map(sayPart).join(" ‖ ")}
            </p>
            <p>{classical && `${sayPart(classical)} alone`}</p>
            <RecordPicture record={cut} width={width - narrowColumns - 6} />
            {classical && <CountPicture count={sizeOf(classical)} columns={narrowColumns} />}
          </div>
        );
      })}
    </div>
  );
}

const sizeOf = ({ start, end }: Field): number => end - start;

/** "1,184 ML-KEM-768 encapsulation key" */
function sayPart(part: Field): string {
  return `${formatNumber(sizeOf(part))} ${part.name.replace(" public key", "")}`;
}

/** A share as if it were a record of its own, without its length field. */
function cutShare({ records }: Reading, { record, field }: Place) {
  const start = field.start + 2;
  const bytes = (records[record]?.bytes ?? new Uint8Array()).slice(start, field.end);
  const parts = cutFields(field.parts, start, field.end, -start);
  return { bytes, field: { ...field, start: 0, end: bytes.length, parts } };
}
