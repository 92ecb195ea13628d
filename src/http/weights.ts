/** Weights in the headers with which clients negotiate (RFC 9110, section 12.4.2): "br;q=0.5, gzip". */

/** One element of such a header, in lower case. */
export interface Weighted {
  readonly value: string;
  /** 0 (not acceptable) to 1. An invalid weight counts as 0. */
  readonly weight: number;
}

export function parseWeights(header: string): Weighted[] {
  return header
    .toLowerCase()
    .split(",")
    .map((element) => {
      const [value = "", ...parameters] = element.split(";").map((part) => part.trim());
      const text = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
      const weight = text === undefined ? 1 : Number(text);
      return { value, weight: weight >= 0 && weight <= 1 ? weight : 0 };
    })
    .filter(({ value }) => value !== "");
}
