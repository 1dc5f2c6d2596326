import { type RefObject, useLayoutEffect, useRef, useState } from "react";

/** Returns a box to attach, and how wide it is, in pixels; 0 before it is known. */
export function useWidth<T extends Element>(): [RefObject<T | null>, number] {
  const box = useRef<T>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}
