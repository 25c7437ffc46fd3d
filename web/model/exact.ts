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
  if (long.test(text)) {
    try {
      return JSON.parse(text, keep as (key: string, value: unknown) => unknown);
    } catch {
      // an old browser, or nested too deeply for it
    }
  }
  return JSON.parse(text);
}

function keep(_: string, value: unknown, { source }: { source: string }): unknown {
  return typeof value === "number" && source.length > 15 && source !== String(value) ? exactJSON.rawJSON(source) : value;
}

/** digits returns a number of an exact value as text; "" = it is none. */
export function digits(x: unknown): string {
  return typeof x === "number" || exactJSON.isRawJSON?.(x) ? JSON.stringify(x) : "";
}
