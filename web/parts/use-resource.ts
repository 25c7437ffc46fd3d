// A resource that lives as long as a component.
import { useEffect, useMemo } from "preact/hooks";
import { resource, type Resource } from "../model/resource.ts";

/** useResource returns a resource (see resource) that ends with its component. key and load are those of the first rendering. */
export function useResource<K, T>(
  key: () => K | null, load: (key: K, signal: AbortSignal) => Promise<T>, keep = false,
): Resource<T> {
  const r = useMemo(() => resource(key, load, keep), []);
  useEffect(() => () => r.end(), []);
  return r;
}
