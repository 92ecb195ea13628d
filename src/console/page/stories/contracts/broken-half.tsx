/** One changed bit in one of two signatures, and what each side found. */
import { ByteChange } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { type BrokenHalf, reportHalves, reportTogether } from "./steps.ts";

export function BrokenHalfResult({ change, ...verdicts }: BrokenHalf) {
  return (
    <>
      <ByteChange {...change} />
      <Checks checks={[...reportHalves(verdicts), ...reportTogether(verdicts)]} />
    </>
  );
}
