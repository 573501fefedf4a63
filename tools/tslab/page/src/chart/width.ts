// width: how wide an element is, as long as it is there.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

export function useWidth(place: RefObject<HTMLElement | null>, atFirst: number): number {
  const [width, setWidth] = useState(atFirst);
  useLayoutEffect(() => {
    if (place.current === null) return;
    const observer = new ResizeObserver(([entry]) => {
      const seen = Math.floor(entry?.contentRect.width ?? 0);
      if (seen > 0) setWidth(seen);
    });
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return width;
}
