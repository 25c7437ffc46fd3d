// A resource that lives as long as a component.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { resource, type Resource } from "../model/resource.ts";

/** useResource returns a resource (see resource) of the key of the newest rendering, which ends with its component. */
export function useResource<K extends string | number, T>(
  key: K | null, load: (key: K, signal: AbortSignal) => Promise<T>, keep = false,
): Resource<T> {
  const now = useSignal(key);
  const read = useRef(load);
  read.current = load;
  now.value = key;
  const r = useMemo(() => resource(() => now.value, (of: K, signal) => read.current(of, signal), keep), []);
  useEffect(() => r.end, []);
  return r;
}
