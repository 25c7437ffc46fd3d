// Reading JSON without rounding its numbers. Pure.

/** exactJSON is what newer browsers have besides: numbers that are written with the digits that they were read with. */
const exactJSON = JSON as unknown as { rawJSON(digits: string): unknown; isRawJSON?(x: unknown): boolean };

/** long finds a number of more digits than every double keeps. All other texts are read without looking at each value. */
const long = /[:[,]\s*-?(0\.0*[1-9]\d\d|[1-9])[\d.]{15}/;

/**
 * exact returns the value of a JSON text. A number that would be rounded is kept as an object that JSON.stringify writes as
 * it was; by a browser that cannot do so, it is rounded.
 */
export function exact(text: string): unknown {
  try {
    return JSON.parse(text, long.test(text) ? keep as (key: string, value: unknown) => unknown : undefined);
  } catch {
    return JSON.parse(text); // in an old browser, or nested too deeply to look at each value
  }
}

/** keep is called with each value. Of an entry's own fields only data is kept: such an object becomes no text and no time. */
function keep(this: object, key: string, value: unknown, { source }: { source: string }): unknown {
  if (typeof value !== "number" || source.length < 16 || source === String(value)) return value;
  return "parentId" in this && key !== "data" ? value : exactJSON.rawJSON(source);
}

/** digits returns a number of an exact value as text; "" = it is none. */
export function digits(x: unknown): string {
  return typeof x === "number" || exactJSON.isRawJSON?.(x) ? JSON.stringify(x) : "";
}
