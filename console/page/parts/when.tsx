/** A time in a table: the day, and the time of day below it. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";

interface WhenProps {
  readonly time: Timestamp | undefined;
  /** Writes the time: "2026-11-23 13:58". */
  readonly format: (time: Timestamp | undefined) => string;
}

export function When({ time, format }: WhenProps) {
  const [day, timeOfDay] = format(time).split(" ");
  return (
    <>
      {day} {timeOfDay && <span class="hint">{timeOfDay}</span>}
    </>
  );
}
